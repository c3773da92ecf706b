"""``kagent calibrate``: threshold and least time behind for each group, from its own past."""

from __future__ import annotations

from dataclasses import asdict

import click
import orjson

from kagent.commands import past
from kagent.commands.common import effective
from kagent.commands.output import print_table
from kagent.names import shown


@click.command()
@click.option(
    "--from", "start", default="7d", show_default=True, help="Begin: 7d, 12h, or an ISO time (UTC)."
)
@click.option("--to", "end", default="now", show_default=True, help="End.")
@click.option("--path", help="Folder or URL of the history.")
@click.option("--dump", help="A raw dump of __consumer_offsets instead of a history.")
@click.option("--ends", help="Log ends beside the dump: topic, partition, time, log_end.")
@click.option("--group", help="Only groups that match this glob.")
@click.option(
    "--tick",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="Seconds between judgements.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per group, with all that was tried.")
@click.pass_context
def command(
    ctx: click.Context,
    start: str,
    end: str,
    path: str | None,
    dump: str | None,
    ends: str | None,
    group: str | None,
    tick: float,
    master: str,
    as_json: bool,
) -> None:
    """Propose threshold and min_behind for each group, with the evidence."""
    settings = effective(ctx)
    within = past.between(start, end, tick)
    from kagent.pipeline.backtest import backtest
    from kagent.pipeline.calibrate import grid, propose
    from kagent.pipeline.service import ending
    from kagent.pipeline.session import session

    name = past.cluster_name(settings, (ctx.find_root().obj or {}).get("cluster"))
    base = past.policies(settings, ())["settings"]
    with ending(session(settings.pipeline, master, delta=True)) as spark:
        rows = past.rows_of(spark, settings, name, path, dump, ends, within)
        found = propose(backtest(rows, grid(base), within, group), within.end - within.start)
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
