"""``kagent backtest``: what kagent would have published."""

from __future__ import annotations

import click
import orjson

from kagent.commands import output, past
from kagent.commands.output import Format, ListColumns, Record
from kagent.text import shown
from kagent.text_table import TableColumn

COLUMNS = (
    TableColumn("group", "GROUP", least=32),
    TableColumn("policy", "POLICY", rank=4, least=8),
    TableColumn("openings", "OPENED", right=True),
    TableColumn("by_itself", "ENDED BY ITSELF", rank=2, right=True),
    TableColumn("flaps", "FLAPS", rank=3, right=True),
    TableColumn("skew_hours", "HOURS OF SKEW", rank=1, right=True),
    TableColumn("moves", "MOVES", rank=5, right=True),
    TableColumn("saved", "DRAIN SAVED", rank=6, least=14, keep="start"),
)
LISTING = ListColumns(
    COLUMNS,
    ("cluster", "group", "policy", "judged", "openings", "flaps", "by_itself", "skew_hours", "moves", "saved", "dropped"),
)  # fmt: skip
DOCUMENTS = ("saved", "dropped", "messages")
"""Fields that hold JSON."""


@click.command()
@past.options(tick=10.0)
@click.option(
    "--policy",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="A policy file; several: side by side.",
)
@output.options
def command(asked: past.Past, files: tuple[str, ...], form: Format) -> None:
    """Replay the past through the judgement and say what would have been recommended.

    --json has the messages, too.
    """
    chosen = past.policies(asked.settings, files)
    with asked.rows() as rows:
        from kagent.history.backtest import backtest

        found = backtest(rows, chosen, asked.within, asked.group)
    # A dump of __consumer_offsets holds commits alone.
    if form.is_table and asked.dump and not asked.ends:
        output.say(
            "Without --ends, the highest commit of any group is taken as the log end: the lag is a lower bound."
        )
    records = [_record(row, with_messages=form.output == "json") for row in found]
    output.print_list(form, LISTING, records, _cells)


def _record(row: Record, with_messages: bool) -> Record:
    """A row for programs: without the ticks, and with the messages only in JSON."""
    left_out = {"ticks"} if with_messages else {"ticks", "messages"}
    return {
        name: orjson.loads(value) if name in DOCUMENTS else value
        for name, value in row.items()
        if name not in left_out
    }


def _cells(row: Record) -> dict[str, str]:
    saved = sorted(row["saved"].items(), key=lambda pair: -pair[1])
    best = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in saved[:3] if seconds > 0)
    counts = {name: str(row[name]) for name in ("openings", "flaps", "by_itself", "moves", "policy")}
    return {
        **counts,
        "group": shown(str(row["group"])),
        "skew_hours": f"{row['skew_hours']:.1f}",
        "saved": best or "-",
    }
