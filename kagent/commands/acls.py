"""``kagent acls``: the least rights of pipeline, worker, subscriber and alert bridge."""

from __future__ import annotations

from dataclasses import asdict

import click

from kagent.commands import output
from kagent.commands.common import chosen
from kagent.kafka.acls import command as as_command
from kagent.kafka.acls import needed_on, rules, to_apply


@click.command()
@click.option("--principals", default="kagent-{role}", show_default=True, help="How the users are named.")
@output.json_option("One line of JSON per right.")
@click.pass_context
def command(ctx: click.Context, principals: str, as_json: bool) -> None:
    """Print the least rights of the four principals as commands of kafka-acls.sh."""
    settings, watched, _ = chosen(ctx)
    home = settings.home or watched
    granted = rules(settings.topics)
    granted["worker"] += to_apply(settings.topics, settings.policies().applied)
    for role, rights in granted.items():
        principal = principals.replace("{role}", role)
        if not as_json:
            click.echo(f"# {role}")
        for rule in rights:
            for cluster in needed_on(rule, settings.topics, watched, home):
                if as_json:
                    line = {"role": role, "principal": principal, "cluster": cluster, **asdict(rule)}
                    click.echo(output.json_line(line))
                else:
                    tools = settings.cluster(cluster)[1].tool_options()
                    click.echo(as_command(rule, principal, tools))
