"""``kagent up``: pipeline and worker as one supervised process tree, for small clusters."""

from __future__ import annotations

import asyncio
import sys

import click

from kagent.commands.common import child_environment, chosen
from kagent.supervise import Program, supervise


@click.command()
@click.option(
    "--master",
    help="Spark's master; local[1] keeps the footprint small.",
    default="local[1]",
    show_default=True,
)
@click.pass_context
def command(ctx: click.Context, master: str) -> None:
    """Run pipeline and worker until stopped: one command, one log, clean stop."""
    _, name, _ = chosen(ctx)
    python = [sys.executable, "-m", "kagent", "--cluster", name]
    programs = [
        Program("pipeline", [*python, "pipeline", "--master", master]),
        Program("worker  ", [*python, "worker"]),
    ]
    ctx.exit(asyncio.run(supervise(programs, child_environment(ctx))))
