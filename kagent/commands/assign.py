"""``kagent assign``: what a strategy would give, for scenario lines or for a live group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from kagent.commands import common, completion, output
from kagent.commands import input_lines as lines
from kagent.errors import InputError
from kagent.strategies import STRATEGIES, Assignment, Scenario
from kagent.strategies.assign_answer import ALL, answered, plain
from kagent.strategies.quality import measured
from kagent.text import shown


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
        answer = answered(where, _checked(read), lines.ident(read), strategy, balance)
        failed = failed or bool(answer["error"])
        if as_json:
            click.echo(json.dumps(plain(answer)))
        else:
            _print(answer)
    if failed:
        ctx.exit(2)


def _checked(read: Any) -> Any:
    """The line, or the error that its ``id`` cannot be given back."""
    try:
        if not isinstance(read, InputError):
            lines.refuse_ident(read)
    except InputError as error:
        return error
    return read


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
