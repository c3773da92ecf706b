"""``kagent calibrate``: threshold and least time behind for each group, from its own past."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from kagent.commands import output, past
from kagent.commands.output import Format, ListColumns, Record
from kagent.durations import to_text
from kagent.text import shown
from kagent.text_table import TableColumn

if TYPE_CHECKING:
    from kagent.history.calibrate import Proposal

COLUMNS = (
    TableColumn("group", "GROUP", least=16),
    TableColumn("threshold", "THRESHOLD", right=True),
    TableColumn("min_behind", "MIN_BEHIND", right=True),
    TableColumn("why", "WHY", least=30, keep="all"),
)

LISTING = ListColumns(COLUMNS, ("cluster", "group", "threshold", "min_behind", "chosen", "tried", "why"))


@click.command()
@past.options(tick=30.0)
@output.options
def command(asked: past.Past, form: Format) -> None:
    """Propose threshold and min_behind for each group, with the evidence.

    --json has all that was tried, too.
    """
    within, base = asked.within, past.policies(asked.settings, ())["settings"]
    with asked.rows() as rows:
        from kagent.history.backtest import backtest
        from kagent.history.calibrate import grid, propose

        found = propose(backtest(rows, grid(base), within, asked.group), within.end - within.start)
    output.print_list(form, LISTING, [record(proposal) for proposal in found], _cells)


def record(proposal: Proposal) -> Record:
    """A row for programs."""
    chosen = proposal.chosen
    pair = {
        "threshold": chosen.threshold if chosen else None,
        "min_behind": chosen.min_behind if chosen else None,
    }
    return {**asdict(proposal), **pair, "why": proposal.sentence()}


def _cells(record: Record) -> dict[str, str]:
    chosen = record["chosen"]
    return {
        "group": shown(str(record["group"])),
        "threshold": f"{chosen['threshold']:g}" if chosen else "-",
        "min_behind": to_text(chosen["min_behind"]) if chosen else "-",
        "why": record["why"],
    }
