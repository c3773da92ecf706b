"""``kagent jars``: fetch the Java archives into the cache."""

from __future__ import annotations

import click

from kagent.commands import output
from kagent.commands.common import effective
from kagent.embedded import jars
from kagent.embedded.java import java


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Fetch the Java archives of connector, history and embedded broker into the cache, once."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    java()
    wanted = {
        "Spark's Kafka connector": [effective(ctx).pipeline.connector],
        "Delta Lake": [jars.DELTA],
        "embedded broker": [jars.BROKER, jars.LOGGER],
    }
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("jars", total=len(wanted))
        for name, coordinates in wanted.items():
            progress.update(task, description=name)
            if not console.is_terminal:
                console.print(f"{name}: looked for in {jars.cache()}, else fetched", highlight=False)
            found = jars.resolve(*coordinates)
            if not console.is_terminal:
                console.print(f"{name}: {len(found)} jars", highlight=False)
            progress.advance(task)
    output.say(f"Jars are in {jars.cache()}.")
