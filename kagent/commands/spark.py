"""A Spark session for one command: its lines in a log file, and on a terminal a bar with what is done and what is left."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from kagent.commands import output
from kagent.text_table import shortened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from kagent.settings import Settings

LOG = "spark.log"
POLL_S = 0.5
STOPPING = b"Stopping once the batch under way is finished.\n"
BESIDE = 50
"""Columns of what stands beside the work's name: a bar, ``1000 of 2000 tasks``, both times, and the gaps."""


@contextlib.contextmanager
def started(settings: Settings, master: str, what: str, delta: bool = True) -> Iterator[SparkSession]:
    """A session that ends with the block. ``what``: the work, for the bar. The log file is named when something fails."""
    log = log_path(settings)
    try:
        with bar("Starting Spark") as progress:  # before the imports, which take a second themselves
            from kagent.pipeline.restarts import ending, quiet_about_java
            from kagent.pipeline.spark_session import session

            with output_to(log):  # the JVM keeps the streams that it was started with
                running = session(settings.pipeline, master, delta=delta)
            quiet_about_java()
            with ending(running) as spark, watched(spark, progress, what):
                yield spark
    except Exception:
        output.say(f"Spark's own lines are in {log}.", err=True)
        raise


def stop_on_signal(stop: threading.Event) -> Callable[[int, FrameType | None], None]:
    """A signal handler that sets ``stop``, and says on a terminal what it waits for: Spark's batch takes up to a minute."""
    # A descriptor of its own: while Spark starts, standard error leads to the log.
    terminal = os.dup(2)

    def handle(number: int, frame: FrameType | None) -> None:
        if not stop.is_set() and os.isatty(terminal):
            # Not by a stream: its lock may be held by what the signal interrupted.
            os.write(terminal, STOPPING)
        stop.set()

    return handle


def log_path(settings: Settings, name: str = LOG) -> Path:
    """The log file in the data folder, or in the temporary folder if that cannot be written."""
    folder = Path(settings.data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    except OSError:
        return Path(tempfile.gettempdir()) / f"kagent-{name}"
    return folder / name


@contextlib.contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Processes started in the block write standard output and error to this file. On file descriptors, as the JVM inherits them.

    Standard output too: Delta's VACUUM prints a line there, between the command's own.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        for number, before in enumerate(kept, 1):
            os.dup2(before, number)
            os.close(before)
        os.close(file)


@contextlib.contextmanager
def bar(first: str) -> Iterator[Any]:
    """A rich progress bar on standard error, with one task; invisible where no terminal is."""
    from rich.console import Console

    # A descriptor of its own: while Spark starts, standard error leads to the log, and the bar would stand still.
    with (
        open(os.dup(2), "w", encoding="utf-8", errors="replace") as terminal,
        _progress(Console(file=terminal), first) as progress,
    ):
        yield progress


def _progress(console: Console, first: str) -> Progress:
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    what = max(10, console.width - BESIDE)
    columns = (
        # The name gives way, not the times: rich would leave out the last columns.
        SpinnerColumn(), TextColumn("{task.fields[what]}", markup=False), BarColumn(bar_width=10),
        TextColumn("{task.completed:.0f} of {task.total:.0f} tasks", style="dim"), TimeElapsedColumn(), _time_left(),
    )  # fmt: skip
    progress = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
    progress.add_task("", total=1, what=shortened(first, what))
    return progress


def _time_left() -> ProgressColumn:
    """How long it still takes, once something is done: before, rich shows ``-:--:--``, which looks like a fault beside one long task."""
    from rich.progress import Task, TimeRemainingColumn
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            return Text() if task.time_remaining is None else super().render(task)

    return TimeLeft()


def describe(progress: Any, what: str) -> None:
    """Say what is being done now, as wide as the terminal lets it."""
    progress.update(progress.task_ids[0], what=shortened(what, max(10, progress.console.width - BESIDE)))


@contextlib.contextmanager
def watched(spark: SparkSession, progress: Any, what: str) -> Iterator[None]:
    """Keep the bar at what Spark's stages have done."""
    done = threading.Event()
    describe(progress, what)

    def poll() -> None:
        while not done.wait(POLL_S):
            with contextlib.suppress(
                Exception
            ):  # the session may end at any moment; the bar is only a comfort
                finished, total = tasks(spark)
                progress.update(progress.task_ids[0], completed=finished, total=max(1, total))

    # A thread: the command itself waits in Py4J for Spark's answer.
    thread = threading.Thread(target=poll, name="kagent-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2 * POLL_S)


def tasks(spark: SparkSession) -> tuple[int, int]:
    """Finished and all tasks of the stages that run now."""
    # Of active stages only: Spark does not know how many stages a query will have.
    tracker = spark.sparkContext.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
    return sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
