"""``kagent up``: pipeline, worker and history as one supervised process tree, for small clusters."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from kagent.client.incident_text import clock, in_first_hour, state_line
from kagent.commands import output
from kagent.commands.common import asked, child_environment, chosen, verbose
from kagent.commands.explain import worker_url
from kagent.contract.recommendation import State
from kagent.errors import KagentError
from kagent.kafka.names import run
from kagent.policy import Policy, make_policy
from kagent.process_tree import Program, supervise

if TYPE_CHECKING:
    from kagent.settings import Cluster, Settings

# On a terminal, the many lines of Spark and Faust would hide what matters.
LOG = "up.log"
LOUD = ("ERROR", "CRITICAL", "WARNING kagent.", "Traceback", "ended with exit code", "kagent: ")
"""A line of a process that has one of these is printed; all lines are in the log file. A client library warns of every retry."""
USUAL = ("not found in cluster metadata", "Thread keepalive is not responding")
"""But not these: at its first start Faust asks for its changelogs before it creates them, and on a busy machine its threads wait for
the processor. A topic that is missed later, or a worker that hangs, makes kagent blind, which the state line says."""
FIRST_PROGRESS_MS = 180_000
"""How long Spark may take to load before a missing pipeline counts as a fault."""


@click.command()
@click.option(
    "--master",
    help="Spark's master; local[1] keeps the footprint small.",
    default="local[1]",
    show_default=True,
)
@click.pass_context
def command(ctx: click.Context, master: str) -> None:
    """Run pipeline and worker (and the history's writer, if pipeline.history is set) until stopped.

    What the processes print goes to a log file in the data folder; --verbose prints it too.
    """
    settings, name, cluster = chosen(ctx)
    with log_file(Path(settings.data)) as (path, log):
        for line in introduction(settings, name, cluster, asked(ctx, "config"), path):
            click.echo(line)
        write = functools.partial(writer, log, verbose(ctx), click.echo)
        ctx.exit(
            run(
                _supervised(
                    settings,
                    name,
                    programs(settings, name, master, verbose(ctx)),
                    child_environment(ctx),
                    write,
                )
            )
        )


def programs(settings: Settings, cluster: str, master: str, loud: bool = False) -> list[Program]:
    """What runs side by side for this cluster."""
    python = [sys.executable, "-m", "kagent", "--cluster", cluster, *(["--verbose"] if loud else [])]
    found = [
        Program("pipeline", [*python, "pipeline", "--master", master]),
        Program("worker  ", [*python, "worker"]),
    ]
    if settings.pipeline.history:
        found.append(Program("history ", [*python, "history", "write"]))
    return found


def introduction(
    settings: Settings, name: str, cluster: Cluster, config: str | None, log: Path
) -> Iterator[str]:
    """What a person needs who has just started it: addresses, places, the next command."""
    url = worker_url(settings)
    command = f"kagent watch{f' --config {config}' if config else f' -b {cluster.bootstrap}'}"
    yield f"cluster    {name} at {cluster.bootstrap}"
    yield f"page       {url}/"
    yield f"metrics    {url}/metrics"
    yield f"settings   {config or 'defaults and variables; `kagent settings` prints them'}"
    yield f"data       {settings.data}"
    yield f"log        {log}"
    yield f"next       {command}"
    yield "state      starting; Ctrl-C stops"


@contextlib.contextmanager
def log_file(folder: Path) -> Iterator[tuple[Path, IO[str]]]:
    """The log file of this run, opened. Raises KagentError if the folder cannot be used."""
    path = folder / LOG
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise KagentError(
            f"The data folder {folder} cannot be used ({error.strerror}): set `data` or KAGENT_DATA."
        ) from error
    with log:
        yield path, log


def writer(
    log: IO[str], loud: bool, echo: Callable[[str], object], stopping: Callable[[], bool] = lambda: False
) -> Callable[[str], None]:
    """Writes every line to the log, and prints those that a person must see: what breaks off while all ``stopping`` is none."""

    def write(line: str) -> None:
        log.write(line + "\n")
        if loud or (_has(line, LOUD) and not _has(line, USUAL) and not stopping()):
            echo(line)

    return write


def _has(line: str, words: Sequence[str]) -> bool:
    return any(word in line for word in words)


async def _supervised(
    settings: Settings,
    name: str,
    programs: Sequence[Program],
    env: Mapping[str, str],
    write: Callable[[Callable[[], bool]], Callable[[str], None]],
) -> int:
    """Run the programs until stopped, and print what the state messages say when it changes."""
    stop = asyncio.Event()
    printing = [asyncio.create_task(_print_states(settings, name)), asyncio.create_task(_print_stop(stop))]
    try:
        return await supervise(programs, env, write(stop.is_set), stop)
    finally:
        for task in printing:
            task.cancel()
        await asyncio.gather(*printing, return_exceptions=True)


async def _print_stop(stop: asyncio.Event) -> None:
    await stop.wait()
    click.echo("state      stopping")


async def _print_states(settings: Settings, name: str) -> None:
    from kagent.client.client import recommendations

    last, policy = "", make_policy(settings.policy)
    home, began_ms = settings.home_cluster(name), int(time.time() * 1000)
    while True:
        with contextlib.suppress(KagentError):  # the topics are not there yet, or the cluster is away
            async for message in recommendations(home, topic=settings.topics.recommendations, states=True):
                if not isinstance(message, State) or message.cluster != name:
                    continue
                # A state comes every 30 s: only what changed is news, and not how late a stream is by now.
                words = state(message, began_ms, policy)
                now = re.sub(r"\d+", "", words.partition("(")[0]) + str(message.open)
                if now != last and message.time >= began_ms:
                    last = now
                    output.say(f"state      {words}", indent=11)
        await asyncio.sleep(1)


def state(message: State, began_ms: int, policy: Policy) -> str:
    """The state in words; while Spark loads, what is waited for in place of what is missing. ``began_ms``: since the epoch."""
    if (message.oldest_progress or 0) < began_ms and message.time < began_ms + FIRST_PROGRESS_MS:
        return "the worker is ready and waits for the pipeline: Spark takes a minute or two to load"
    later = f" {in_first_hour(message.learning, message.learning_until)}" if message.learning else ""
    return f"{state_line(message)}.{_first_verdicts(message, policy)}{later}"


def _first_verdicts(message: State, policy: Policy) -> str:
    """When a badly spread group is reported at the latest, while that is still to come."""
    # An open incident is a verdict: the first ones are not expected any more.
    if not message.learning or message.learning_until is None or message.open:
        return ""
    # Here, as it loads numpy, for which `kagent up --help` and the first line of `kagent up` need not wait.
    from kagent.detect.evidence import NEW_MS, first_verdict_s

    by_ms = message.learning_until - NEW_MS + int(first_verdict_s(policy) * 1000)
    return f" First verdicts are expected by {clock(by_ms)}." if by_ms > message.time else ""
