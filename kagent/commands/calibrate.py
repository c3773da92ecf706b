"""``kagent calibrate``: threshold and least time behind for each group, from its own past."""

from __future__ import annotations

from dataclasses import asdict

import click
import orjson

from kagent.commands import past
from kagent.commands.output import print_table
from kagent.text import shown


@click.command()
@past.options(tick=30.0)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per group, with all that was tried.")
def command(asked: past.Past, as_json: bool) -> None:
    """Propose threshold and min_behind for each group, with the evidence."""
    from kagent.history.backtest import backtest
    from kagent.history.calibrate import grid, propose

    within, base = asked.within, past.policies(asked.settings, ())["settings"]
    with asked.rows() as rows:
        found = propose(backtest(rows, grid(base), within, asked.group), within.end - within.start)
    if as_json:
        for proposal in found:
            click.echo(orjson.dumps({**asdict(proposal), "why": proposal.sentence()}).decode())
        return
    print_table(
        ("group", "threshold", "min_behind", "why"),
        [
            (
                shown(p.group, 60),
                f"{p.chosen.threshold:g}" if p.chosen else "-",
                f"{p.chosen.min_behind:g}" if p.chosen else "-",
                p.sentence(),
            )
            for p in found
        ],
    )
