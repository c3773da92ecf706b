"""``kagent assign``: what a strategy would give, for scenario lines or for a live group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from kagent.commands import common, completion, output
from kagent.commands import input_lines as lines
from kagent.commands.output import SHOWN_RATIO, Format, ListColumns
from kagent.errors import InputError
from kagent.strategies import STRATEGIES, Assignment, Scenario
from kagent.strategies.assign_answer import ALL, answered, plain
from kagent.strategies.quality import measured
from kagent.text import shown
from kagent.text_table import TableColumn

SHOWN = 50
"""Most partitions that a row of a member names."""
SIDE_BY_SIDE = ListColumns(
    (TableColumn("fewest", "PARTITIONS"), TableColumn("skew", SHOWN_RATIO)),
    ("id", "strategy", "fewest", "most", "greatest_lag", "skew", "moves", "remarks"),
)
"""A strategy a row; of the columns those whose heading is no field."""
MEMBERS = ListColumns((), ("id", "member", "partitions", "lag", "which"))
"""A member a row."""


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
@output.options
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    strategy: str | None,
    group: str | None,
    balance: float | None,
    form: Format,
) -> None:
    """Compute assignments for the live group GROUP, or for the scenarios in FILE (JSON lines; standard input by default).

    A name is taken for a file if there is one, else for a group; --group NAME is always a group.

    The format of a line is in docs/strategies.md. What the cluster does not tell of a live
    group is assumed, and printed on standard error. A line that cannot be read gets an error, the others their answer;
    the exit code is then 2. --output yaml and csv, --sort and --top are about the strategies, or the members of one.
    """
    if strategy not in (None, ALL, *STRATEGIES):
        raise InputError(
            f'--strategy: "{shown(strategy or "")}" is not known; there are {", ".join(STRATEGIES)}, all'
        )
    group = source if common.is_group(source, group) else group
    failed, rows = False, []
    ratio = "skew" if group is None else SHOWN_RATIO
    # A live group's own assignor may have no counterpart here: all are shown side by side.
    strategy = strategy or (ALL if group else None)
    for where, read in [common.live(ctx, group)] if group else lines.objects(common.opened(ctx, source)):
        answer = answered(where, _checked(read), lines.ident(read), strategy, balance)
        failed = failed or bool(answer["error"])
        if form.output == "json":
            click.echo(json.dumps(plain(answer)))
        elif form.is_table or answer["error"]:
            _print(answer, form, ratio)
        else:
            rows += _records(answer)
    if form.output in ("yaml", "csv"):
        listing = SIDE_BY_SIDE if strategy == ALL or any("strategy" in row for row in rows) else MEMBERS
        output.print_records(form.chosen(rows, listing), form.output, listing.fields)
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


def _print(answer: dict[str, Any], form: Format, ratio: str) -> None:
    if answer["error"]:
        click.echo(f"kagent: {answer['error']['message']}", err=True)
        return
    title = shown(str(answer["id"])) if answer["id"] is not None else None
    rows = form.chosen(_records(answer), SIDE_BY_SIDE if answer["all"] else MEMBERS)
    if answer["all"]:
        headers = ("strategy", "partitions", "greatest lag", ratio, "moves", "remarks")
        output.print_table(headers, map(_strategy_cells, rows), title, form.wide)
        return
    for name, given in answer["strategies"].items():
        heading = f"{title}: {name}" if title else name
        output.print_table(
            ("member", "partitions", "lag", "which"), map(_member_cells, rows), heading, form.wide
        )
        for note in given.notes:
            click.echo(f"note: {note}")


def _records(answer: dict[str, Any]) -> list[output.Record]:
    """The rows: a strategy each, or the members of the one that was asked for."""
    if answer["all"]:
        return [{"id": answer["id"], **row} for row in _side_by_side(answer)]
    given = next(iter(answer["strategies"].values()))
    return [{"id": answer["id"], **row} for row in _members(answer["scenario"], given)]


def _strategy_cells(row: output.Record) -> tuple[str, ...]:
    if row["fewest"] is None:
        return row["strategy"], "-", "-", "-", "-", row["remarks"]
    skew = "-" if row["skew"] is None else f"{row['skew']:.2f}"
    return (
        row["strategy"],
        f"{row['fewest']}–{row['most']}",
        str(row["greatest_lag"]),
        skew,
        str(row["moves"]),
        row["remarks"],
    )


def _member_cells(row: output.Record) -> tuple[str, ...]:
    which = " ".join(shown(name) for name in row["which"][:SHOWN]) + (
        " …" if len(row["which"]) > SHOWN else ""
    )
    return shown(row["member"]), str(row["partitions"]), "-" if row["lag"] is None else str(row["lag"]), which


def _side_by_side(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, given in answer["strategies"].items():
        if not isinstance(given, Assignment):
            # A strategy that cannot be computed keeps its row: left out, it would look forgotten.
            nothing = dict.fromkeys(("fewest", "most", "greatest_lag", "skew", "moves"))
            yield {"strategy": name, **nothing, "remarks": given["message"]}
            continue
        numbers = measured(answer["scenario"], given)
        yield {
            "strategy": name,
            "fewest": numbers.fewest,
            "most": numbers.most,
            "greatest_lag": numbers.greatest_lag,
            "skew": numbers.skew,
            "moves": numbers.moves,
            "remarks": "; ".join(given.notes),
        }


def _members(scenario: Scenario, given: Assignment) -> Iterator[dict[str, Any]]:
    lag, start = scenario.lag(), scenario.layout.start
    for member, rows in given.to_dict().items():
        # Lag is one array over all topics; `start` is each topic's first place in it.
        total = sum(int(lag[start[scenario.layout.code_of[t]] + p]) for t, p in rows)
        yield {
            "member": member,
            "partitions": len(rows),
            "lag": total if scenario.lags else None,
            # As data, not as it is shown: a reader looks for the topic's own name.
            "which": [f"{t}-{p}" for t, p in rows],
        }
