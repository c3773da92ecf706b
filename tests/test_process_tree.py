"""Processes side by side: one log, restarts with back-off, clean stop."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import psutil
import pytest

from kagent.process_tree import Program, _end, end_with_parent, supervise
from tests.fixtures.waiting import until


def python(name: str, code: str) -> Program:
    return Program(name, [sys.executable, "-c", code])


async def run_until(line: str, programs: list[Program]) -> tuple[int, list[str]]:
    """Supervise until a line appears, then stop; the exit code and all lines."""
    stop, lines = asyncio.Event(), []

    def write(text: str) -> None:
        lines.append(text)
        if line in text:
            stop.set()

    async with asyncio.timeout(30):
        return await supervise(programs, write=write, stop=stop), lines


@pytest.mark.slow
async def test_a_process_that_dies_is_started_again() -> None:
    code, lines = await run_until("starting again in 2 s", [python("a", "print('up'); raise SystemExit(7)")])

    assert code == 0
    assert lines[:2] == ["a | up", "a | ended with exit code 7; starting again in 1 s"]


async def test_a_line_that_is_too_long_is_left_out_and_the_log_goes_on() -> None:
    _, lines = await run_until("after", [python("a", "print('x' * 3_000_000); print('after')")])

    assert "a | (a line of more than 1 MiB is left out)" in lines
    assert "a | after" in lines
    assert max(map(len, lines)) < 1 << 21


async def test_a_process_that_ends_by_itself_as_it_is_stopped_is_no_error() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    async with asyncio.timeout(30):
        await process.wait()

    exited = asyncio.create_task(process.wait())
    await _end(process, exited)

    assert exited.result() == 0


async def test_all_stop_when_one_says_it_cannot_work() -> None:
    sleeper = python("b", "import time; time.sleep(60)")
    refuser = python("a", "import sys; print('kagent: no'); sys.exit(2)")

    async with asyncio.timeout(30):
        assert await supervise([refuser, sleeper], write=lambda _: None) == 2


async def test_stopping_lets_a_process_end_cleanly() -> None:
    code = "import signal, sys, time; signal.signal(15, lambda *_: (print('clean'), sys.exit(0))); print('up'); time.sleep(60)"

    _, lines = await run_until("up", [python("a", code)])

    assert lines == ["a | up", "a | clean"]


SUPERVISES = """
import asyncio, sys
from kagent.process_tree import Program, supervise
sleeps = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
asyncio.run(supervise([Program("it", [sys.executable, "-c", sleeps])]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a child of its parent's end")
def test_a_supervisor_that_is_killed_leaves_no_program_behind() -> None:
    with subprocess.Popen([sys.executable, "-c", SUPERVISES], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        program = psutil.Process(int(running.stdout.readline().removeprefix("it | ")))
        running.kill()

    until(lambda: not program.is_running())


ORPHANED = """
import os, time
from kagent.process_tree import end_with_parent
if os.fork() == 0:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.01)
    end_with_parent()
    print("went on", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a child of its parent's end")
def test_a_child_whose_parent_is_gone_before_it_could_ask_to_be_told_does_not_start() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHANED], capture_output=True, text=True, timeout=30)

    assert (done.stdout, done.stderr) == ("", "")


def test_a_child_whose_parent_lives_goes_on() -> None:
    started = [sys.executable, "-c", "print('went on')"]
    done = subprocess.run(started, capture_output=True, text=True, timeout=30, preexec_fn=end_with_parent)

    assert done.stdout == "went on\n"
