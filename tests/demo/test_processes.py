"""The demo's processes end whatever happens, and one that dies is told of with its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kagent.demo import processes as room
from kagent.demo.processes import Processes
from kagent.errors import SetupError
from tests.fixtures.waiting import until

FOR_EVER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(child.pid, flush=True); time.sleep(600)"
)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.stop()


def test_all_are_stopped_and_have_logged(processes: Processes) -> None:
    processes.start("one", "-c", FOR_EVER)
    processes.start("two", "-c", FOR_EVER)
    pids = [process.pid for process in processes.running.values()]
    until(lambda: all(processes.log(name).read_text() for name in ("one", "two")))
    processes.check()

    processes.stop()

    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert processes.log("one").read_text() == "up\n"


def test_one_that_does_not_listen_is_killed_with_its_children(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "STOP_WITHIN", 0.2)
    processes.start("stubborn", "-c", STUBBORN)
    until(lambda: processes.log("stubborn").read_text().endswith("\n"))
    child = int(processes.log("stubborn").read_text())

    processes.stop()

    until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


def test_one_that_ends_by_itself_is_told_of_with_its_last_line_and_its_log(processes: Processes) -> None:
    processes.start("worker", "-c", "import sys; print('first'); sys.exit('the disk is full.')")
    processes.running["worker"].wait(20)

    with pytest.raises(SetupError) as told:
        processes.check()

    log = processes.log("worker")
    assert str(told.value) == f"worker ended with exit code 1; its last line: the disk is full (log: {log})."


def test_one_that_is_killed_is_told_of_by_signal_and_what_is_no_word_is_passed_over(
    processes: Processes,
) -> None:
    processes.start("worker", "-c", "import os; print('ready\\n+----+', flush=True); os.kill(os.getpid(), 9)")
    processes.running["worker"].wait(20)

    with pytest.raises(SetupError, match=r"^worker was killed by SIGKILL; its last line: ready \(log: "):
        processes.check()
