"""``kagent assign``: what a strategy would give, for scenario lines or for a live group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from kagent.commands import common, completion, lines, output
from kagent.errors import InputError
from kagent.strategies import STRATEGIES, Assignment, Scenario, assign
from kagent.strategies.measure import measured
from kagent.strategies.scenario import refuse_contradiction
from kagent.text import shown

ALL = "all"
MOST_PARTITIONS = 20_000_000
"""More than this on one line is taken for a mistake."""


@click.command()
@click.argument("source", metavar="[GROUP | FILE]", default="-", shell_complete=completion.groups)
@click.option(
    "--strategy", metavar="NAME", help=f"One of {', '.join(STRATEGIES)}, or all. Else the line's own."
)
@click.option("--group", metavar="NAME", hidden=True, help="The live group of this name.")
@click.option(
    "--balance",
    type=click.FloatRange(0, 1),
    help="What lag-global evens out: 0 counts, 1 lag, in between both. [default: 0.5]",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per scenario.")
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    strategy: str | None,
    group: str | None,
    balance: float | None,
    as_json: bool,
) -> None:
    """Compute assignments for the live group GROUP, or for the scenarios in FILE (JSON lines; standard input by default).

    A name is taken for a file if there is one, else for a group; --group NAME is always a group.

    The format of a line is in docs/strategies.md. What the cluster does not tell of a live
    group is assumed, and printed on standard error. A line that cannot be read gets an error, the others their answer;
    the exit code is then 2.
    """
    if strategy not in (None, ALL, *STRATEGIES):
        raise InputError(
            f'--strategy: "{shown(strategy or "")}" is not known; there are {", ".join(STRATEGIES)}, all'
        )
    group = source if common.is_group(source, group) else group
    failed = False
    strategy = strategy or (ALL if group else None)
    for where, read in [common.live(ctx, group)] if group else lines.objects(common.opened(ctx, source)):
        answer = _answer(where, read, strategy, balance)
        failed = failed or bool(answer["error"])
        if as_json:
            click.echo(json.dumps(_plain(answer)))
        else:
            _print(answer)
    if failed:
        ctx.exit(2)


def _answer(where: str, read: Any, strategy: str | None, balance: float | None) -> dict[str, Any]:
    """id, scenario and per strategy an Assignment or an error; ``error`` is the first error."""
    if isinstance(read, InputError):
        return {"id": None, "strategies": {}, "error": _error(where, read)}
    answer: dict[str, Any] = {
        "id": lines.ident(read),
        "strategies": {},
        "error": None,
        "all": strategy == ALL,
    }
    try:
        lines.refuse_ident(read)
        scenario = _scenario(read)
        names = _names(read, strategy)
    except InputError as error:
        return {**answer, "error": _error(where, error)}
    answer["scenario"] = scenario
    for name in names:
        try:
            if not STRATEGIES[name].settles_claims:
                refuse_contradiction(scenario)
            knob = {} if balance is None or name != "lag-global" else {"balance": balance}
            answer["strategies"][name] = assign(name, scenario, **knob)
        except InputError as error:
            answer["strategies"][name] = _error(where, error)
            if strategy != ALL:
                answer["error"] = _error(where, error)
    return answer


def _scenario(line: dict[str, Any]) -> Scenario:
    counts = line.get("partitions_per_topic")
    if isinstance(counts, dict):
        total = sum(count for count in counts.values() if isinstance(count, int))
        if total > MOST_PARTITIONS:
            raise InputError(f"partitions_per_topic: {total} partitions are more than {MOST_PARTITIONS}")
    return Scenario.from_json(line)


def _names(line: dict[str, Any], strategy: str | None) -> list[str]:
    if strategy == ALL:
        return list(STRATEGIES)
    name = strategy or line.get("strategy")
    if name is None:
        raise InputError("strategy: it is missing; name one with --strategy")
    if not isinstance(name, str) or name not in STRATEGIES:
        raise InputError(f'strategy: "{shown(str(name))}" is not known; there are {", ".join(STRATEGIES)}')
    return [name]


def _error(where: str, error: InputError) -> dict[str, str]:
    return {"class": type(error).__name__, "message": f"{where}: {error}"}


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What ``--json`` prints."""
    head = {"id": answer["id"]}
    if not answer.get("all"):
        given = next(iter(answer["strategies"].values()), None)
        return {**head, **_result(given), "error": answer["error"]}
    results = {}
    for name, given in answer["strategies"].items():
        failed = not isinstance(given, Assignment)
        results[name] = {**_result(given), "error": given if failed else None}
        if not failed:
            numbers = measured(answer["scenario"], given)
            results[name]["measure"] = {field: getattr(numbers, field) for field in numbers.__slots__}
    return {**head, "strategies": results, "error": answer["error"]}


def _result(given: Any) -> dict[str, Any]:
    if not isinstance(given, Assignment):
        return {"assignment": None}
    result: dict[str, Any] = {"assignment": given.to_dict()}
    if given.notes:
        result["notes"] = list(given.notes)
    if given.withheld is not None:
        result["withheld"] = {member: rows for member, rows in given.withheld.to_dict().items() if rows}
    return result


def _print(answer: dict[str, Any]) -> None:
    if answer["error"]:
        click.echo(f"kagent: {answer['error']['message']}", err=True)
        return
    title = shown(str(answer["id"])) if answer["id"] is not None else None
    if answer["all"]:
        headers = ("strategy", "partitions", "greatest lag", "skew", "moves", "remarks")
        output.print_table(headers, _side_by_side(answer), title)
        return
    for name, given in answer["strategies"].items():
        heading = f"{title}: {name}" if title else name
        rows = _members(answer["scenario"], given)
        output.print_table(("member", "partitions", "lag", "which"), rows, heading)
        for note in given.notes:
            click.echo(f"note: {note}")


def _side_by_side(answer: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, given in answer["strategies"].items():
        if not isinstance(given, Assignment):
            yield name, "-", "-", "-", "-", given["message"]
            continue
        numbers = measured(answer["scenario"], given)
        skew = "-" if numbers.skew is None else f"{numbers.skew:.2f}"
        spread = f"{numbers.fewest}–{numbers.most}"
        yield name, spread, str(numbers.greatest_lag), skew, str(numbers.moves), "; ".join(given.notes)


def _members(scenario: Scenario, given: Assignment) -> Iterator[tuple[str, ...]]:
    lag, start = scenario.lag(), scenario.layout.start
    for member, rows in given.to_dict().items():
        total = sum(int(lag[start[scenario.layout.code_of[t]] + p]) for t, p in rows)
        which = " ".join(f"{shown(t)}-{p}" for t, p in rows[:50]) + (" …" if len(rows) > 50 else "")
        yield shown(member), str(len(rows)), str(total) if scenario.lags else "-", which
