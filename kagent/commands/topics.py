"""``kagent topics``: create kagent's own topics where they are missing, and say what is wrong with those that exist."""

from __future__ import annotations

from dataclasses import asdict

import click

from kagent.commands import output
from kagent.commands.common import admin_of, chosen
from kagent.commands.output import Format, ListColumns, Record
from kagent.text_table import TableColumn

COLUMNS = (
    TableColumn("topic", "TOPIC", least=20),
    TableColumn("state", "STATE"),
    TableColumn("problem", "PROBLEM", rank=1, least=20, keep="start"),
)

LISTING = ListColumns(COLUMNS, ("topic", "state", "problem"))


@click.command()
@click.option("--check", is_flag=True, help="Only report; create nothing.")
@output.options
@click.pass_context
def command(ctx: click.Context, check: bool, form: Format) -> None:
    """Create what is missing and report what is wrong (exit code 1)."""
    settings, name, _ = chosen(ctx)
    from kagent.kafka.topics import delivery_log, ensure, of_tables, wanted

    needed = [*wanted(settings.topics), delivery_log(settings.topics)]
    home = settings.home_cluster(name)
    with output.waiting_for(home.bootstrap):
        findings = ensure(admin_of(home), settings.topics, not check, needed, of_tables(settings.topics))
    if form.is_table:  # a line each: the command that mends a topic must not be cut
        for finding in findings:
            problem = f"it {finding.problem}" if finding.problem else None
            click.echo(": ".join(filter(None, (finding.topic, finding.state, problem))))
    else:
        output.print_list(form, LISTING, [asdict(finding) for finding in findings], _cells)
    if any(finding.state == "wrong" for finding in findings):
        ctx.exit(1)


def _cells(record: Record) -> dict[str, str]:
    return {name: str(record[name] or "") for name in ("topic", "state", "problem")}
