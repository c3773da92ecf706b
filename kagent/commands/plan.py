"""``kagent plan``: the fewest moves that bring a group near its best, for scenario lines or a live group."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kagent.commands import common, completion, explain, output, worker_plan
from kagent.commands import input_lines as lines
from kagent.commands.output import SHOWN_RATIO, Format, ListColumns
from kagent.contract.words import verdict_words
from kagent.errors import InputError, KagentError
from kagent.text import shown, told_apart
from kagent.text_table import TableColumn

if TYPE_CHECKING:
    from kagent.planner import Plan
    from kagent.planner.comparison import Alternative

BAR = 24
"""Width of the greatest member's bar."""
SHOWN_MOVES = 30
MEMBER_TITLES = ("member", "partitions", "now", "", "after", "")
MOVE_COLUMNS = (
    TableColumn("topic", "TOPIC", least=12),
    TableColumn("partition", "PARTITION", right=True),
    TableColumn("lag", "LAG", rank=2, right=True),
    TableColumn("from", "FROM", rank=1, least=14),
    TableColumn("to", "TO", least=14),
)

MOVES = ListColumns(MOVE_COLUMNS, ("id", "topic", "partition", "lag", "from", "to"))


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
@click.option(
    "--worker",
    "url",
    metavar="URL",
    help="A worker's address; by default the settings' own, if one answers there.",
)
@click.option(
    "--live", is_flag=True, help="Plan with the lag that the cluster shows now, whatever a worker knows."
)
@output.options
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    group: str | None,
    tolerance: float,
    max_moves: int | None,
    url: str | None,
    live: bool,
    form: Format,
) -> None:
    """Plan for the live group GROUP, or for the scenarios in FILE (JSON lines; standard input by default).

    A name is taken for a file if there is one, else for a group; --group NAME is always a group.

    Where a worker answers, its plan is printed: the moves and the skew that `kagent explain` prints at the same moment. The
    worker plans anew at each tick and may choose other moves of equal worth, so an older message may name others. Without a worker, or with --live, --tolerance or --max-moves, the plan rests on the lag that the cluster shows now; that ratio is
    called max/mean lag, as in `kagent lag`.

    The format of a line is in docs/planner.md. A line that cannot be read gets an error, the others their answer;
    the exit code is then 2. --output yaml and csv, --sort and --top are about the moves.
    """
    # click's FloatRange lets NaN through: it compares neither below nor above.
    if math.isnan(tolerance):
        raise InputError("--tolerance: a number is expected")
    note = ""
    group = source if common.is_group(source, group) else group
    if group is not None and not live and _as_judged(ctx):
        story = _story(ctx, group, url)
        if story is not None:
            _output_judged(worker_plan.document(story), form)
            return
        note = "No worker has answered with its plan; this one rests on the lag that the cluster shows now."
    if group is not None and url:
        raise InputError(
            "--worker prints the worker's own plan: --live, --tolerance and --max-moves do not go with it."
        )
    found = [common.live(ctx, group)] if group is not None else lines.objects(common.opened(ctx, source))
    if note:  # only now: without a cluster there is no plan that it could be about
        click.echo(note, err=True)
    if _answer(found, tolerance, max_moves, form, "skew" if group is None else SHOWN_RATIO):
        ctx.exit(2)


def _as_judged(ctx: click.Context) -> bool:
    """Whether the worker's own plan is an answer: no option asks for another one."""
    # Not by value: --tolerance 0.05 asks for a plan of its own, though it is the default.
    given = {
        name
        for name in ("tolerance", "max_moves")
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    return not given


def _story(ctx: click.Context, group: str, url: str | None) -> dict[str, Any] | None:
    settings, name, _ = common.chosen(ctx)
    address = url or explain.worker_url(settings)
    # A worker that was named is waited for; one that may not run must not delay the plan.
    patience = explain.PATIENCE if url else explain.KNOCK
    meant = explain.AskedGroup.of(settings, name, group)
    found = explain.worker_story(address, meant, patience, bool(url), settings.worker.http)
    return found if found and "group" in found else None


def _answer(
    found: Iterable[tuple[str, Any]], tolerance: float, max_moves: int | None, form: Format, ratio: str
) -> bool:
    """Print the plan of each scenario; whether one could not be read."""
    from kagent.planner.plan_answer import plain

    failed, moves = False, []
    for where, read in found:
        ident = lines.ident(read)
        try:
            plan, others = _planned(read, tolerance, max_moves)
        except KagentError as error:
            failed = True
            _refuse(f"{where}: {error}", error, ident, form)
            continue
        document = plain(ident, plan, others)
        if form.output == "json":
            click.echo(json.dumps(document))
        elif form.is_table:
            _print(ident, plan, document["alternatives"], form, ratio)
        else:
            moves += [{"id": ident, **move} for move in document["moves"]]
    if form.output in ("yaml", "csv"):
        output.print_records(form.chosen(moves, MOVES), form.output, MOVES.fields)
    return failed


def _refuse(sentence: str, error: KagentError, ident: Any, form: Format) -> None:
    if form.output == "json":
        named = {"class": type(error).__name__, "message": sentence}
        click.echo(json.dumps({"id": ident, "error": named}))
    else:
        click.echo(f"kagent: {sentence}", err=True)


def _planned(read: Any, tolerance: float, max_moves: int | None) -> tuple[Plan, tuple[Alternative, ...]]:
    from kagent.planner.plan_answer import planned

    if isinstance(read, InputError):
        raise read
    lines.refuse_ident(read)
    return planned(read, tolerance, max_moves)


def _print(ident: Any, plan: Plan, others: Sequence[output.Record], form: Format, ratio: str) -> None:
    title = shown(str(ident)) if ident is not None else None
    output.print_table(MEMBER_TITLES, _members(plan, form), title, form.wide)
    output.say(_sentence(plan, ratio))
    for note in plan.notes:
        output.say(f"note: {shown(note, 1000)}")
    moves = [_move(m.topic, m.partition, m.lag, m.source, m.to) for m in plan.moves]
    _print_moves(moves, _names(plan.problem.members, form), form)
    if len(plan.frontier) > 1:
        output.print_table(("moves", "greatest", ""), _frontier(plan.frontier), wide=form.wide)
    _print_alternatives(others, "greatest", ratio, form)


def _move(topic: str, partition: int, lag: float, source: str | None, to: str) -> output.Record:
    return {"topic": topic, "partition": partition, "lag": lag, "from": source, "to": to}


def _names(members: Sequence[str], form: Format) -> Mapping[str, str]:
    """What the tables call the members: short names, but in full with ``--wide``."""
    return dict(zip(members, members, strict=True)) if form.wide else told_apart(members)


def _print_moves(moves: Sequence[output.Record], names: Mapping[str, str], form: Format) -> None:
    if not moves:
        return
    found = form.chosen(moves, MOVES)
    # The table is for a look; --wide and --json have all moves.
    shown_moves = found if form.wide else found[:SHOWN_MOVES]
    # Apart from all members, not only those of the column: what is left of a name must say which of them it is.
    members = [shown(name) for name in names.values()]
    beside = {"from": members, "to": members}
    output.print_rows(MOVE_COLUMNS, [_move_cells(move, names) for move in shown_moves], form.wide, beside)
    click.echo()
    if len(found) > len(shown_moves):
        output.say(f"… and {len(found) - len(shown_moves)} more (--wide shows them all)")


def _move_cells(move: output.Record, names: Mapping[str, str]) -> dict[str, str]:
    return {
        "topic": shown(move["topic"]),
        "partition": str(move["partition"]),
        "lag": _amount(float(move["lag"])),
        "from": "-" if move["from"] is None else shown(names.get(move["from"], move["from"])),
        "to": shown(names.get(move["to"], move["to"])),
    }


def _output_judged(found: dict[str, Any], form: Format) -> None:
    """Print the worker's plan in the form that was asked for."""
    if form.output == "json":
        click.echo(json.dumps(found))
    elif not form.is_table:
        moves = [{"id": found["id"], **move} for move in found["moves"]]
        output.print_records(form.chosen(moves, MOVES), form.output, MOVES.fields)
    else:
        _print_judged(found, form)


def _print_judged(found: dict[str, Any], form: Format) -> None:
    names = _names([m["member"] for m in found["members"]], form)
    if found["members"]:
        output.print_table(MEMBER_TITLES, _judged_members(found, names), shown(str(found["id"])), form.wide)
    else:
        # A healthy group is planned for no member: a table of its header alone would look broken.
        output.say(shown(str(found["id"])))
    output.say(_judged_sentence(found))
    if found["blind"]:
        output.say(f"kagent cannot judge this group now: {shown(found['blind'], 1000)}.")
    _print_moves(found["moves"], names, form)
    reached = _reached(found)
    if len(found["frontier"]) > 1:
        output.print_table(("moves", reached, ""), _frontier(found["frontier"]), wide=form.wide)
    _print_alternatives(found["alternatives"], reached, "skew", form)


def _reached(found: dict[str, Any]) -> str:
    """The title of what the frontier and the strategies are compared by.

    Where speeds and inflow are known, the plan shortens the time until all is drained. Records that still arrive count in it, so
    it is another number than the greatest work in the table of members, and has another title.
    """
    after = found["greatest"]["after"]
    if found["work_unit"] != "seconds" or not found["frontier"] or after is None:
        return "greatest"
    return "greatest" if abs(found["frontier"][-1][1] - after) < 0.01 else "drained in s"


def _judged_sentence(found: dict[str, Any]) -> str:
    now, after, count = found["skew"]["now"], found["skew"]["after"], found["move_count"]
    at, words = (
        time.strftime("%H:%M:%S UTC", time.gmtime(found["as_of"] / 1000)),
        # As `kagent explain` has it: without an open incident there is no verdict that could be out of date.
        "not judged now" if found["blind"] and not found["members"] else verdict_words(found["verdict"]),
    )
    if found["blind"] and not found["members"]:
        return f"{words}: there is no plan"
    if not count or after is None:
        skew = "" if now is None else f", skew {now:.2f}"
        return f"{words}: no move helps{skew}; as the worker judged it at {at}"
    noun = "move" if count == 1 else "moves"
    unit = "s to process its lag" if found["work_unit"] == "seconds" else "records"
    greatest = f"most loaded member {_amount(found['greatest']['now'])} → {_amount(found['greatest']['after'])} {unit}"
    return (
        f"{words}: {count} {noun}; {greatest}, skew {now:.2f} → {after:.2f}; as the worker judged it at {at}"
    )


def _judged_members(found: dict[str, Any], names: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    # A message may hold fewer moves than it counts: then the partitions afterwards are not known.
    after = worker_plan.held_after(found) if found["move_count"] == len(found["moves"]) else {}
    values = [
        value for m in found["members"] for value in (m["work_now"], m["work_after"]) if value is not None
    ]
    most = max(values, default=0.0)
    for m in found["members"]:
        then = after.get(m["member"], m["partitions"])
        counts = str(then) if then == m["partitions"] else f"{m['partitions']} → {then}"
        work = [m["work_now"] or 0.0, m["work_now"] if m["work_after"] is None else m["work_after"]]
        bars = [cell for value in work for cell in (_amount(value or 0.0), _bar(value or 0.0, most))]
        yield shown(names[m["member"]]), counts, *bars


def _amount_or_never(value: float | None) -> str:
    return "never" if value is None else _amount(value)


def _sentence(plan: Plan, ratio: str) -> str:
    weighed = plan.problem.cost is not None or plan.problem.speed is not None
    unit = "s until drained" if plan.objective == "drain" else "of work" if weighed else "records"
    reach = f"most loaded member {_amount(plan.now)} → {_amount(plan.after)} {unit}, {ratio} {plan.skew_now:.2f} → {plan.skew_after:.2f}"
    best = f"best assignment {_amount(plan.best)}, lower bound {_amount(plan.lower_bound)}"
    moves = f"{plan.move_count} moves" if plan.move_count != 1 else "1 move"
    proof = (
        " (proven fewest)" if plan.move_count == plan.move_bound else f" (at least {plan.move_bound} needed)"
    )
    price = "" if plan.r_score is None else f"; R-score {plan.r_score:.3f}"
    return f"{verdict_words(plan.verdict)}: {moves}{proof if plan.moves else ''}; {reach}; {best}{price}"


def _amount(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _bar(value: float, most: float) -> str:
    cells = (BAR if not math.isfinite(value) else BAR * value / most) if most > 0 else 0
    # Block elements come in eighths of a cell (U+2588 to U+258F).
    eighths = round(cells * 8)
    glyphs = " ▏▎▍▌▋▊▉█" if (sys.stdout.encoding or "").lower().startswith("utf") else "    #####"
    return glyphs[8] * (eighths // 8) + (glyphs[eighths % 8].strip())


def _members(plan: Plan, form: Format) -> Iterator[tuple[str, ...]]:
    import numpy as np

    now, after = plan.values
    names = _names(plan.problem.members, form)
    finite = [value for value in (*now.tolist(), *after.tolist()) if math.isfinite(value)]
    most = max(finite, default=0.0)
    count = len(plan.problem.members)
    had = np.bincount(plan.problem.owner[plan.problem.owner >= 0], minlength=count)
    has = np.bincount(plan.assigned[plan.assigned >= 0], minlength=count)
    # stable: members with equal work keep one order, whatever numpy's quicksort would do.
    for at in np.argsort(-now, kind="stable").tolist():
        counts = str(had[at]) if had[at] == has[at] else f"{had[at]} → {has[at]}"
        yield (
            shown(names[plan.problem.members[at]]), counts, _amount(float(now[at])), _bar(float(now[at]), most),
            _amount(float(after[at])), _bar(float(after[at]), most),
        )  # fmt: skip


def _frontier(points: Sequence[tuple[int, float]]) -> Iterator[tuple[str, ...]]:
    most = max((value for _, value in points if math.isfinite(value)), default=0.0)
    reached: str | None = None
    for moves, greatest in points:
        # A move that gains nothing to be seen has no row.
        if _amount(greatest) == reached:
            continue
        reached = _amount(greatest)
        yield str(moves), _amount(greatest), _bar(greatest, most)


def _print_alternatives(others: Sequence[output.Record], reached: str, ratio: str, form: Format) -> None:
    """What every strategy would give, if any was tried. ``reached``, ``ratio``: the titles of the two measures."""
    if others:
        headers = ("strategy", reached, ratio, "moves", "feasible", "unsafe")
        output.print_table(headers, [_alternative(one) for one in others], wide=form.wide)


def _alternative(one: output.Record) -> tuple[str, ...]:
    greatest = _amount_or_never(one["greatest"])
    return (
        one["strategy"],
        greatest,
        f"{one['skew']:.2f}",
        str(one["moves"]),
        one["feasible"],
        one["unsafe"] or "",
    )
