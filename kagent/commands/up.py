"""``kagent up``: pipeline, worker and history as one supervised process tree, for small clusters."""

from __future__ import annotations

import asyncio
import sys

import click

from kagent.commands.common import child_environment, chosen
from kagent.process_tree import Program, supervise
from kagent.settings import Settings


@click.command()
@click.option(
    "--master",
    help="Spark's master; local[1] keeps the footprint small.",
    default="local[1]",
    show_default=True,
)
@click.pass_context
def command(ctx: click.Context, master: str) -> None:
    """Run pipeline and worker (and the history's writer, if pipeline.history is set) until stopped."""
    settings, name, _ = chosen(ctx)
    ctx.exit(asyncio.run(supervise(programs(settings, name, master), child_environment(ctx))))


def programs(settings: Settings, cluster: str, master: str) -> list[Program]:
    """What runs side by side for this cluster."""
    python = [sys.executable, "-m", "kagent", "--cluster", cluster]
    found = [
        Program("pipeline", [*python, "pipeline", "--master", master]),
        Program("worker  ", [*python, "worker"]),
    ]
    if settings.pipeline.history:
        found.append(Program("history ", [*python, "history", "write"]))
    return found
