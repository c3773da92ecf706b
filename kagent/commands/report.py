"""``kagent report``: one self-contained HTML page about a group or a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import orjson

from kagent.commands import past
from kagent.commands.output import say
from kagent.errors import InputError
from kagent.text import counted


@click.command()
@past.options(tick=10.0)
@click.option(
    "--top", type=click.IntRange(1, 100), default=10, show_default=True, help="Show at most this many groups."
)
@click.option(
    "--keys", type=click.Path(dir_okay=False), help="What `kagent keys --json` wrote, to show with the group."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), default="kagent-report.html", show_default=True
)
def command(asked: past.Past, top: int, keys: str | None, output: str) -> None:
    """Write an HTML page about GROUP, or about a cluster's groups: lag, skew, incidents and, with --keys, hot keys."""
    hot, within, policies = _keys(keys), asked.within, past.policies(asked.settings, ())
    _refuse_unwritable(Path(output))
    with asked.rows() as rows:
        from kagent.history.backtest import backtest
        from kagent.history.report import BUCKETS, cells, page, section

        # Two points for each bucket of the drawing: finer ones could not be seen.
        every = max(within.tick, (within.end - within.start) // (2 * BUCKETS))
        found = backtest(rows, policies, within, asked.group, every)[:top]
        heat = cells(rows, within, [row["group"] for row in found])
    made = [
        section(row, heat.get(row["group"], []), policies["settings"](row["group"]).threshold, within, hot)
        for row in found
    ]
    try:
        Path(output).write_text(
            page(asked.group or f"Cluster {asked.cluster}", within, made), encoding="utf-8"
        )
    except OSError as error:
        raise InputError(f"{output} cannot be written ({error.strerror}).") from error
    say(f"{output}: {counted(len(made), 'group')}.")


def _refuse_unwritable(output: Path) -> None:
    """Said at once, not after the minutes in which Spark reads the past."""
    folder = output.parent
    if not folder.is_dir():
        raise InputError(f"{output} cannot be written: the folder {folder} does not exist.")
    if not os.access(output if output.exists() else folder, os.W_OK):
        raise InputError(f"{output} cannot be written: no permission.")


def _keys(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        found: dict[str, Any] = orjson.loads(Path(path).read_bytes())
        return {"topic": found["topic"], "hot": found["hot"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not what `kagent keys --json` wrote.") from error
