"""``kagent topics``: create kagent's own topics where they are missing, and say what is wrong with those that exist."""

from __future__ import annotations

from dataclasses import asdict

import click
import orjson

from kagent.commands.common import chosen
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure, positions, wanted


@click.command()
@click.option("--check", is_flag=True, help="Only report; create nothing.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per topic.")
@click.pass_context
def command(ctx: click.Context, check: bool, as_json: bool) -> None:
    """Create what is missing and report what is wrong (exit code 1)."""
    settings, name, _ = chosen(ctx)
    needed = [*wanted(settings.topics), positions(settings.topics)]
    findings = ensure(Admin(settings.home_cluster(name)), settings.topics, not check, needed)
    for finding in findings:
        if as_json:
            click.echo(orjson.dumps(asdict(finding)).decode())
        else:
            click.echo(
                f"{finding.topic}: {finding.state}" + (f": {finding.problem}" if finding.problem else "")
            )
    if any(finding.state == "wrong" for finding in findings):
        ctx.exit(1)
