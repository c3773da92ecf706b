"""``kagent lag``: the lag of groups as the cluster tells it, with the columns of ``kafka-consumer-groups.sh``."""

from __future__ import annotations

from dataclasses import asdict

import click

from kagent.commands import output
from kagent.commands.common import chosen
from kagent.errors import InputError
from kagent.kafka.admin import Admin
from kagent.kafka.group_lag import Row, ShownGroup, shown_lag
from kagent.text import shown

HEADER = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)


@click.command()
@click.argument("groups", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per partition.")
@click.pass_context
def command(ctx: click.Context, groups: tuple[str, ...], as_json: bool) -> None:
    """Show the lag of GROUPS, or of all groups. `-` stands for no commit."""
    _, _, cluster = chosen(ctx)
    admin = Admin(cluster)
    found = shown_lag(admin, groups or None)
    gone = [g.group.group for g in found if groups and not g.rows and _nobody(g)]
    if gone:
        names = ", ".join(shown(name) for name in gone)
        raise InputError(f"There is no group {names} on this cluster (or no right to describe it).")
    if not found:
        click.echo(
            f"{cluster.bootstrap} shows no consumer group: there is none, or no right to describe it.",
            err=True,
        )
    for group in found:
        _json(group) if as_json else _table(group)


def _nobody(group: ShownGroup) -> bool:
    return group.group.state in ("dead", "unknown") and group.group.type not in ("share", "streams")


def _json(group: ShownGroup) -> None:
    extra = {
        "state": group.group.state,
        "type": group.group.type,
        "protocol": group.group.protocol,
        "skew": group.skew,
    }
    for row in group.rows:
        click.echo(output.json_line({**asdict(row), **extra}))


def _table(group: ShownGroup) -> None:
    if not group.rows:
        click.echo(_sentence(group) + "\n")
        return
    lines = [HEADER, *(_cells(row) for row in group.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADER))]
    for line in lines:
        click.echo(" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    click.echo(_sentence(group) + "\n")


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (row.committed, row.log_end, row.lag)
    committed, end, lag = ("-" if n is None else str(n) for n in numbers)
    names = (row.member_id, row.host, row.client_id)
    member, host, client = (shown(n) if n else "-" for n in names)
    note = f" ({row.lost} lost)" if row.lost else " (void)" if row.void else ""
    return (
        shown(row.group),
        shown(row.topic),
        str(row.partition),
        committed,
        end,
        lag + note,
        member,
        host,
        client,
    )


def _sentence(group: ShownGroup) -> str:
    name, count = shown(group.group.group), len(group.group.members)
    total = sum(row.lag or 0 for row in group.rows)
    skew = "" if group.skew is None else f", member skew {group.skew:.2f}"
    if group.group.type == "share":
        return f"{name}: a share group, which has no lag"
    problems = sorted({row.problem for row in group.rows if row.problem})
    unknown = f"; log offsets unknown: {shown('; '.join(problems))}" if problems else ""
    return (
        f"{name}: {group.group.state}, {count} member{'' if count == 1 else 's'}, lag {total}{skew}{unknown}"
    )
