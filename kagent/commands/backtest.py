"""``kagent backtest``: what kagent would have said."""

from __future__ import annotations

import click
import orjson

from kagent.commands import past
from kagent.commands.output import print_table
from kagent.text import shown


@click.command()
@past.options(tick=10.0)
@click.option(
    "--policy",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="A policy file; several: side by side.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One line of JSON per group and policy, messages included."
)
def command(asked: past.Past, files: tuple[str, ...], as_json: bool) -> None:
    """Replay the past through the judgement and say what would have been recommended."""
    chosen = past.policies(asked.settings, files)
    from kagent.history.backtest import backtest

    with asked.rows() as rows:
        found = backtest(rows, chosen, asked.within, asked.group)
    if as_json:
        for row in found:
            parsed = {k: orjson.loads(row[k]) for k in ("saved", "dropped", "messages")}
            click.echo(orjson.dumps({**{k: v for k, v in row.items() if k != "ticks"}, **parsed}).decode())
        return
    if asked.dump and not asked.ends:
        click.echo(
            "Without --ends a log end is taken as the highest commit of any group: lag reads as its least."
        )
    print_table(
        ("group", "policy", "opened", "flaps", "ended by itself", "hours of skew", "moves", "drain saved"),
        [_shown(row) for row in found],
    )


def _shown(row: dict[str, object]) -> tuple[str, ...]:
    saved = sorted(orjson.loads(str(row["saved"])).items(), key=lambda pair: -pair[1])
    best = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in saved[:3] if seconds > 0) or "-"
    counts = tuple(str(row[name]) for name in ("openings", "flaps", "by_itself"))
    return (
        shown(str(row["group"]), 60),
        str(row["policy"]),
        *counts,
        f"{row['skew_hours']:.1f}",
        str(row["moves"]),
        best,
    )
