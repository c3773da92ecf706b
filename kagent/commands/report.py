"""``kagent report``: one self-contained HTML page about a group or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from kagent.commands import past
from kagent.commands.common import effective
from kagent.errors import InputError


@click.command()
@click.option(
    "--from", "start", default="7d", show_default=True, help="Begin: 7d, 12h, or an ISO time (UTC)."
)
@click.option("--to", "end", default="now", show_default=True, help="End.")
@click.option("--group", help="Only groups that match this glob.")
@click.option(
    "--top", type=click.IntRange(1, 100), default=10, show_default=True, help="At most so many groups."
)
@click.option("--path", help="Folder or URL of the history.")
@click.option("--dump", help="A raw dump of __consumer_offsets instead of a history.")
@click.option("--ends", help="Log ends beside the dump: topic, partition, time, log_end.")
@click.option(
    "--keys", type=click.Path(dir_okay=False), help="What `kagent keys --json` wrote, to show with the group."
)
@click.option(
    "--tick",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between judgements.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), default="kagent-report.html", show_default=True
)
@click.pass_context
def command(
    ctx: click.Context,
    start: str,
    end: str,
    group: str | None,
    top: int,
    path: str | None,
    dump: str | None,
    ends: str | None,
    keys: str | None,
    tick: float,
    master: str,
    output: str,
) -> None:
    """Write the report."""
    settings = effective(ctx)
    within, hot = past.between(start, end, tick), _keys(keys)
    from kagent.pipeline.backtest import backtest
    from kagent.pipeline.report import BUCKETS, cells, page, section
    from kagent.pipeline.service import ending
    from kagent.pipeline.session import session

    name = past.cluster_name(settings, (ctx.find_root().obj or {}).get("cluster"))
    policies = past.policies(settings, ())
    with ending(session(settings.pipeline, master, delta=True)) as spark:
        rows = past.rows_of(spark, settings, name, path, dump, ends, within)
        every = max(within.tick, (within.end - within.start) // (2 * BUCKETS))
        found = backtest(rows, policies, within, group, every)[:top]
        heat = cells(rows, within, [row["group"] for row in found])
    made = [
        section(row, heat.get(row["group"], []), policies["settings"](row["group"]).threshold, within, hot)
        for row in found
    ]
    try:
        Path(output).write_text(page(group or f"Cluster {name}", within, made), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written ({error.strerror}).") from error
    click.echo(f"{output}: {len(made)} groups.")


def _keys(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        found: dict[str, Any] = orjson.loads(Path(path).read_bytes())
        return {"topic": found["topic"], "hot": found["hot"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not what `kagent keys --json` wrote.") from error
