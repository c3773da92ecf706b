"""``kagent pipeline``: the Spark stream from ``__consumer_offsets`` to group events."""

from __future__ import annotations

import logging
import signal

import click

from kagent.commands.common import chosen, verbose


@click.command()
@click.option("--checkpoint", help="Folder or URL where the stream keeps its place.")
@click.option("--trigger", type=click.FloatRange(min=0.1), help="Seconds between triggers.")
@click.option("--master", help="Spark's master, such as local[2] or spark://host:7077.")
@click.option("--available-now", is_flag=True, help="Catch up and stop.")
@click.option("--replay", is_flag=True, help="Read all from the log's start once, to fill a gap, and stop.")
@click.pass_context
def command(
    ctx: click.Context,
    checkpoint: str | None,
    trigger: float | None,
    master: str | None,
    available_now: bool,
    replay: bool,
) -> None:
    """Read __consumer_offsets and write group events until stopped."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    settings, name, cluster = chosen(ctx)
    from kagent.pipeline.run import Pipeline

    pipeline = Pipeline(settings, name, cluster, master, checkpoint, trigger, available_now, replay)
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: pipeline.stop.set())
    pipeline.run()
    if verbose(ctx):
        click.echo("The pipeline has stopped.", err=True)
