"""``kagent history``: lag, log ends, group changes and recommendations, kept as Delta tables."""

from __future__ import annotations

import logging
import signal

import click

from kagent.commands.spans import Span
from kagent.commands.suggesting_group import SuggestingGroup
from kagent.errors import KagentError
from kagent.text import counted

log = logging.getLogger("kagent.history")


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Keep and maintain the history (Delta tables)."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    # py4j logs a traceback when the JVM goes away, also at an ordered stop.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


PATH = click.option("--path", help="Folder or URL of the history, in place of pipeline.history.")
MASTER = click.option("--master", default="local[1]", show_default=True, help="Spark's master.")


@command.command("write")
@PATH
@MASTER
@click.option("--checkpoint", help="Folder or URL of the stream's checkpoint.")
@click.option(
    "--trigger",
    type=Span(least=1.0),
    help="Time between writes: how fine the history is; by default pipeline.history_interval.",
)
@click.option("--available-now", is_flag=True, help="Catch up and stop.")
@click.pass_context
def write(
    ctx: click.Context,
    path: str | None,
    master: str,
    checkpoint: str | None,
    trigger: float | None,
    available_now: bool,
) -> None:
    """Write the history until stopped."""
    # `schema` needs no settings, which take longer to import than all else that it needs.
    from kagent.commands.common import chosen
    from kagent.commands.spark import log_path, output_to, stop_on_signal

    settings, name, cluster = chosen(ctx)
    # Spark takes seconds to load, and longer to start.
    log.info("Starting for cluster %s at %s.", name, cluster.bootstrap)
    from kagent.history.history_service import Keeper
    from kagent.history.past_range import place_of
    from kagent.pipeline.restarts import SparkDied

    keeper = Keeper(
        settings, name, cluster, place_of(settings, path), master, checkpoint, trigger, available_now
    )
    for sign in (signal.SIGTERM, signal.SIGINT):
        # The batch under way is finished: ended within it, Spark would do it again at the next start.
        signal.signal(sign, stop_on_signal(keeper.stop))
    # A file of its own: `report` and the like begin theirs anew while this runs.
    spark_log = log_path(settings, "spark-history.log")
    try:
        keeper.run(output_to(spark_log))
    except SparkDied as died:
        if not keeper.stop.is_set():
            log.error("%s; the stream has kept its place. Spark's own lines are in %s.", died, spark_log)
            ctx.exit(1)


@command.command("maintain")
@PATH
@MASTER
@click.option(
    "--keep-days",
    type=click.IntRange(min=1),
    default=90,
    show_default=True,
    help="Drop days older than this.",
)
@click.pass_context
def maintain(ctx: click.Context, path: str | None, master: str, keep_days: int) -> None:
    """Join small files, and drop old days and unused files."""
    from kagent.commands.common import effective
    from kagent.commands.past import refuse_no_history
    from kagent.commands.spark import started
    from kagent.history.past_range import place_of

    settings = effective(ctx)
    history = place_of(settings, path)
    refuse_no_history(history)
    with started(settings, master, "Maintaining the history") as spark:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        from kagent.history.delta_writer import maintain as run

        try:
            found = run(spark, history, keep_days)
        except (PySparkException, Py4JJavaError) as error:
            # The rest is the JVM's stack trace.
            reason = str(error).strip().splitlines()[0][:200]
            raise KagentError(
                f"The history at {history.place} could not be maintained ({reason})."
            ) from error
    for table, files in found.items():
        click.echo(f"{table}: {counted(files, 'file')}")


@command.command("schema")
def schema() -> None:
    """Print the tables and their columns."""
    from kagent.history.tables import SCHEMAS
    from kagent.pipeline.sql_schema import columns

    for name in SCHEMAS:
        click.echo(name)
        for column, kind in columns(SCHEMAS[name]):
            click.echo(f"  {column:<14} {kind}")
