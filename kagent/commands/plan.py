"""``kagent plan``: the fewest moves that bring a group near its best, for scenario lines or a live group."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from kagent.commands import common, completion, output
from kagent.commands import input_lines as lines
from kagent.errors import InputError, KagentError
from kagent.planner import Plan
from kagent.planner.comparison import Alternative
from kagent.planner.plan_answer import plain, planned
from kagent.text import shown

BAR = 24
"""Width of the greatest member's bar."""
SHOWN_MOVES = 30


@click.command()
@click.argument("source", metavar="[GROUP | FILE]", default="-", shell_complete=completion.groups)
@click.option("--group", hidden=True, help="The live group of this name.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 10),
    default=0.05,
    show_default=True,
    help="How near the best the greatest member work has to come; 0.05 is 5 %.",
)
@click.option("--max-moves", type=click.IntRange(0), help="Move no more than this.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per scenario.")
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    group: str | None,
    tolerance: float,
    max_moves: int | None,
    as_json: bool,
) -> None:
    """Plan for the live group GROUP, or for the scenarios in FILE (JSON lines; standard input by default).

    A name is taken for a file if there is one, else for a group; --group NAME is always a group.

    The format of a line is in docs/planner.md. A line that cannot be read gets an error, the others their answer;
    the exit code is then 2.
    """
    if math.isnan(tolerance):
        raise InputError("--tolerance: a number is expected")
    group = source if common.is_group(source, group) else group
    failed = False
    for where, read in (
        [common.live(ctx, group)] if group is not None else lines.objects(common.opened(ctx, source))
    ):
        ident = lines.ident(read)
        try:
            told, others = _planned(read, tolerance, max_moves)
        except KagentError as error:
            failed = True
            sentence = f"{where}: {error}"
            if as_json:
                named = {"class": type(error).__name__, "message": sentence}
                click.echo(json.dumps({"id": ident, "error": named}))
            else:
                click.echo(f"kagent: {sentence}", err=True)
            continue
        if as_json:
            click.echo(json.dumps(plain(ident, told, others)))
        else:
            _print(ident, told, others)
    if failed:
        ctx.exit(2)


def _planned(read: Any, tolerance: float, max_moves: int | None) -> tuple[Plan, tuple[Alternative, ...]]:
    if isinstance(read, InputError):
        raise read
    lines.refuse_ident(read)
    return planned(read, tolerance, max_moves)


def _print(ident: Any, told: Plan, others: tuple[Alternative, ...]) -> None:
    title = shown(str(ident)) if ident is not None else None
    output.print_table(("member", "partitions", "now", "", "after", ""), _members(told), title)
    click.echo(_sentence(told))
    for note in told.notes:
        click.echo(f"note: {shown(note, 1000)}")
    if told.moves:
        output.print_table(("topic", "partition", "lag", "from", "to"), _moves(told))
        if len(told.moves) > SHOWN_MOVES:
            click.echo(f"… and {len(told.moves) - SHOWN_MOVES} more (--json lists them all)")
    if len(told.frontier) > 1:
        output.print_table(("moves", "greatest", ""), _frontier(told))
    if others:
        headers = ("strategy", "greatest", "skew", "moves", "feasible", "unsafe")
        output.print_table(headers, _others(others))


def _sentence(told: Plan) -> str:
    unit = "s until drained" if told.objective == "drain" else "of work"
    reach = f"greatest {_amount(told.now)} → {_amount(told.after)} {unit}, skew {told.skew_now:.2f} → {told.skew_after:.2f}"
    best = f"best known {_amount(told.best)}, none below {_amount(told.lower_bound)}"
    moves = f"{told.move_count} moves" if told.move_count != 1 else "1 move"
    proof = (
        ", proven fewest" if told.move_count == told.move_bound else f", at least {told.move_bound} needed"
    )
    price = "" if told.r_score is None else f"; R-score {told.r_score:.3f}"
    return f"{told.verdict}: {moves}{proof if told.moves else ''}; {reach}; {best}{price}"


def _amount(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _bar(value: float, most: float) -> str:
    cells = (BAR if not math.isfinite(value) else BAR * value / most) if most > 0 else 0
    eighths = round(cells * 8)
    glyphs = " ▏▎▍▌▋▊▉█" if (sys.stdout.encoding or "").lower().startswith("utf") else "    #####"
    return glyphs[8] * (eighths // 8) + (glyphs[eighths % 8].strip())


def _members(told: Plan) -> Iterator[tuple[str, ...]]:
    now, after = told.values
    finite = [value for value in (*now.tolist(), *after.tolist()) if math.isfinite(value)]
    most = max(finite, default=0.0)
    count = len(told.problem.members)
    had = np.bincount(told.problem.owner[told.problem.owner >= 0], minlength=count)
    has = np.bincount(told.assigned[told.assigned >= 0], minlength=count)
    for at in np.argsort(-now, kind="stable").tolist():
        counts = str(had[at]) if had[at] == has[at] else f"{had[at]} → {has[at]}"
        yield (
            shown(told.problem.members[at]), counts, _amount(float(now[at])), _bar(float(now[at]), most),
            _amount(float(after[at])), _bar(float(after[at]), most),
        )  # fmt: skip


def _moves(told: Plan) -> Iterator[tuple[str, ...]]:
    for move in told.moves[:SHOWN_MOVES]:
        source = "-" if move.source is None else shown(move.source)
        yield shown(move.topic), str(move.partition), _amount(move.lag), source, shown(move.to)


def _frontier(told: Plan) -> Iterator[tuple[str, ...]]:
    most = max((value for _, value in told.frontier if math.isfinite(value)), default=0.0)
    for moves, greatest in told.frontier:
        yield str(moves), _amount(greatest), _bar(greatest, most)


def _others(others: tuple[Alternative, ...]) -> Iterator[tuple[str, ...]]:
    for one in others:
        yield (
            one.strategy,
            _amount(one.greatest),
            f"{one.skew:.2f}",
            str(one.moves),
            one.feasible,
            one.unsafe or "",
        )
