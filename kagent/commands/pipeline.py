"""``kagent pipeline``: the Spark stream from ``__consumer_offsets`` to group events."""

from __future__ import annotations

import logging
import signal

import click

from kagent.commands.common import chosen, verbose
from kagent.commands.spans import Span
from kagent.commands.spark import stop_on_signal
from kagent.errors import SettingsError

CRASHED = 1


@click.command()
@click.option("--checkpoint", help="Folder or URL of the stream's checkpoint.")
@click.option("--trigger", type=Span(least=0.1), help="Time between triggers.")
@click.option("--master", help="Spark's master, such as local[2] or spark://host:7077.")
@click.option("--available-now", is_flag=True, help="Catch up and stop.")
@click.option("--replay", is_flag=True, help="Read all from the log's start once, to fill a gap, and stop.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics here.")
@click.option("--metrics-host", help="Address for the metrics.")
@click.pass_context
def command(
    ctx: click.Context,
    checkpoint: str | None,
    trigger: float | None,
    master: str | None,
    available_now: bool,
    replay: bool,
    metrics_port: int | None,
    metrics_host: str | None,
) -> None:
    """Read __consumer_offsets and write group events until stopped."""
    # A replay reads all of the log each time; with a checkpoint it would go on where it stopped.
    if replay and checkpoint:
        raise SettingsError(
            "--replay reads all of the log and stores no position: --checkpoint does not go with it."
        )
    level = logging.DEBUG if verbose(ctx) else logging.INFO
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("kagent").setLevel(level)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    settings, name, cluster = chosen(ctx)
    # Spark takes seconds to load, and longer to start.
    logging.getLogger("kagent.pipeline").info("Starting for cluster %s at %s.", name, cluster.bootstrap)
    from kagent.pipeline.restarts import SparkDied
    from kagent.pipeline.stream_metrics import Metrics
    from kagent.pipeline.stream_service import Pipeline, check

    # Before Spark: what is missing is then a sentence and not a Java stack trace.
    check(settings, master)
    metrics = Metrics(name)
    pipeline = Pipeline(
        settings, name, cluster, master, checkpoint, trigger, available_now, replay, metrics=metrics
    )
    for sign in (signal.SIGTERM, signal.SIGINT):
        # The batch under way is finished: else its offsets are not in the checkpoint, and it comes twice.
        signal.signal(sign, stop_on_signal(pipeline.stop))
    port = metrics_port or settings.pipeline.metrics_port
    if port:
        metrics.serve(metrics_host or settings.pipeline.metrics_host, port)
    try:
        pipeline.run()
    except SparkDied as died:
        if not pipeline.stop.is_set():
            logging.getLogger("kagent.pipeline").error("%s; the stream has kept its place.", died)
            ctx.exit(CRASHED)
