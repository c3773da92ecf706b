"""``kagent backtest``: what kagent would have said."""

from __future__ import annotations

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
@click.option(
    "--policy",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="A policy file; several: side by side.",
)
@click.option("--path", help="Folder or URL of the history.")
@click.option("--dump", help="A raw dump of __consumer_offsets (Parquet or JSON lines) instead of a history.")
@click.option("--ends", help="Log ends beside the dump: topic, partition, time, log_end.")
@click.option("--group", help="Only groups that match this glob.")
@click.option(
    "--tick",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between judgements.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option(
    "--json", "as_json", is_flag=True, help="One line of JSON per group and policy, messages included."
)
@click.pass_context
def command(
    ctx: click.Context,
    start: str,
    end: str,
    files: tuple[str, ...],
    path: str | None,
    dump: str | None,
    ends: str | None,
    group: str | None,
    tick: float,
    master: str,
    as_json: bool,
) -> None:
    """Replay the past through the judgement and say what would have been recommended."""
    settings = effective(ctx)
    within, chosen = past.between(start, end, tick), past.policies(settings, files)
    from kagent.pipeline.backtest import backtest
    from kagent.pipeline.service import ending
    from kagent.pipeline.session import session

    name = past.cluster_name(settings, (ctx.find_root().obj or {}).get("cluster"))
    with ending(session(settings.pipeline, master, delta=True)) as spark:
        found = backtest(past.rows_of(spark, settings, name, path, dump, ends, within), chosen, within, group)
    if as_json:
        for row in found:
            parsed = {k: orjson.loads(row[k]) for k in ("saved", "dropped", "messages")}
            click.echo(orjson.dumps({**{k: v for k, v in row.items() if k != "ticks"}, **parsed}).decode())
        return
    if dump and not ends:
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
