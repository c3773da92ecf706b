"""One command, one log, clean stop: processes run side by side, each restarted with back-off when it dies.

A process that ends with exit code 2 has reported what is wrong; starting it again would not help, so all stop.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kagent.retry import pause_s

MISUSE = 2
HEALTHY_AFTER = 60.0
"""Seconds after which a process counts as having started well, so that its next back-off begins small again."""
STOP_WITHIN = 30.0
# From Linux's prctl.h; Python has no name for it.
PR_SET_PDEATHSIG = 1
LINE_BYTES = 1 << 20
"""Longest line of a log that is copied; asyncio's own limit of 64 KiB is less than some of Spark's query plans."""


@dataclass(frozen=True, slots=True)
class Program:
    """A process to keep running; ``name`` leads each of its lines in the common log."""

    name: str
    argv: Sequence[str]


_forked_by = os.getpid()


def _note_parent() -> None:
    global _forked_by
    _forked_by = os.getpid()


# Runs in the parent, so a child knows whose child it was: https://docs.python.org/3/library/os.html#os.register_at_fork
os.register_at_fork(before=_note_parent)


def end_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """In a child, before exec: get this signal when the parent is gone, however it went (Linux)."""
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, by)
        # A parent that was killed between fork and here sends no signal any more.
        if os.getppid() != _forked_by:
            os._exit(1)


async def supervise(
    programs: Sequence[Program],
    env: Mapping[str, str] | None = None,
    write: Callable[[str], object] | None = None,
    stop: asyncio.Event | None = None,
) -> int:
    """Run them until SIGTERM, SIGINT or ``stop``, or until one says it cannot work; returns the exit code."""
    say = write or _to_stdout
    ending = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, ending.set)
    try:
        codes = await asyncio.gather(
            *(_keep(p, dict(os.environ if env is None else env), say, ending) for p in programs)
        )
    finally:
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(name)
    return max(codes, default=0)


def _to_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def _keep(
    program: Program, env: dict[str, str], say: Callable[[str], object], stop: asyncio.Event
) -> int:
    """Keep one program running until ``stop``; MISUSE if it refused to work."""
    failures = 0
    while not stop.is_set():
        began = asyncio.get_running_loop().time()
        code = await _run(program, env, say, stop)
        if stop.is_set():
            return 0
        if code == MISUSE:
            stop.set()
            return MISUSE
        # A program that ran well for a while failed for a new reason: wait briefly again.
        failures = 1 if asyncio.get_running_loop().time() - began > HEALTHY_AFTER else failures + 1
        wait = pause_s(failures)
        say(f"{program.name} | ended with exit code {code}; starting again in {wait:.0f} s")
        await _wait(stop, wait)
    return 0


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


async def _run(
    program: Program, env: dict[str, str], say: Callable[[str], object], stop: asyncio.Event
) -> int:
    process = await asyncio.create_subprocess_exec(
        *program.argv,
        # Into a pipe Python buffers blocks of 8 KiB: the log would come minutes late.
        env={**env, "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=LINE_BYTES,
        start_new_session=True,  # a Ctrl-C in the terminal reaches us alone; we stop them in order
        # Killed, we stop no process: what went on would hold the port and write beside those of the next start.
        preexec_fn=end_with_parent,
    )
    copying = asyncio.create_task(_copy(program.name, process, say))
    exited = asyncio.create_task(process.wait())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({exited, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not exited.done():
        await _end(process, exited)
    # To the end of the pipe: what the process wrote last is why it ended.
    await copying
    return exited.result()


async def _end(process: asyncio.subprocess.Process, exited: asyncio.Task[int]) -> None:
    """SIGTERM, and after STOP_WITHIN seconds SIGKILL to its whole process group."""
    # It may end by itself before its task has noticed.
    with suppress(ProcessLookupError):
        process.terminate()
    done, _ = await asyncio.wait({exited}, timeout=STOP_WITHIN)
    if not done:
        # The whole group: Spark starts a JVM of its own, which outlives its parent.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await exited


async def _copy(name: str, process: asyncio.subprocess.Process, say: Callable[[str], object]) -> None:
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # StreamReader drops what it holds of a line over its limit, and goes on behind it
            say(f"{name} | (a line of more than {LINE_BYTES >> 20} MiB is left out)")
            continue
        if not line:
            return
        say(f"{name} | {line.decode(errors='replace').rstrip()}")
