"""The whole demo, as a person runs it: it ends well by itself, and a Ctrl-C or a death leaves nothing running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kagent.demo.choreography import MOST
from kagent.demo.progress_timeout import Patience

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow(minutes=5),
    pytest.mark.timeout(2 * MOST),
]


class Run:
    """``kagent demo`` with its output in a file and its temporary files in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.output = folder, folder / "output"
        (folder / "tmp").mkdir()
        env = {
            **os.environ,
            "TMPDIR": str(folder / "tmp"),
            "PYTHONUNBUFFERED": "1",
            "TERM": "dumb",
            "COLUMNS": "160",
        }
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kagent", "demo"], stdout=output, stderr=subprocess.STDOUT, env=env
            )
        self.seen: set[psutil.Process] = set()

    @property
    def text(self) -> str:
        return self.output.read_text()

    def look(self) -> None:
        """Remember all processes below it, so that none can be forgotten when their parent has gone."""
        try:
            self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return

    def until(self, check: Callable[[], object], limit_s: float) -> None:
        """Wait as long as it prints or starts something at least every so many seconds of a quiet machine."""
        patience = Patience(limit_s, MOST)
        while not check():
            self.look()
            patience.saw((self.text, len(self.seen)))
            assert patience.left_s > 0, f"nothing moves any more; it said:\n{self.text}"
            time.sleep(0.2)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def left(self) -> list[str]:
        """What still runs of all that was seen."""
        return [
            f"{p.pid} {command_of(p)[:120]}"
            for p in self.seen
            if p.is_running() and _state(p) != psutil.STATUS_ZOMBIE
        ]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    yield made
    if not made.ended():
        made.process.kill()
        made.process.wait()


def _state(process: psutil.Process) -> str:
    try:
        return process.status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


def command_of(process: psutil.Process) -> str:
    """Its command line; nothing once it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def seconds(text: str) -> float:
    found = re.search(r"([\d.]+) s", text)
    assert found, text
    return float(found[1])


def test_the_demo_shows_the_whole_job_and_ends_by_itself(run: Run) -> None:
    run.until(run.ended, 120)

    text = run.text
    assert run.process.returncode == 0, text
    assert "Waiting times are shortened" in text
    assert "orders-a follows the advice by kagent.follow" in text
    assert "parcels-a follows the advice by kagent apply" in text
    rows = {
        cells[0]: cells for line in text.splitlines() if len(cells := re.split(" {2,}", line.strip())) == 7
    }
    for group in ("orders-a", "parcels-a"):
        _, verdict, action, taken, predicted, measured, twin = rows[group]
        assert (verdict, action, taken) == ("uneven work", "follow the plan", "yes")
        assert seconds(predicted) > 0
        assert seconds(measured) > 0
        assert seconds(twin) > 0
        assert re.search(rf"RESOLVED +{group}  uneven work .* followed", text)
    for twin in ("orders-b", "parcels-b"):
        assert rows[twin][1:4] == ["uneven work", "follow the plan", "no"]
    assert rows["hot"][1] == "hot partition"
    assert rows["healthy"][1] == "never opened"
    run.until(lambda: not run.left(), 20)
    assert not list((run.folder / "tmp").glob("kagent-demo-*")), "the logs are kept only after a failure"


def test_ctrl_c_leaves_nothing_running(run: Run) -> None:
    run.until(lambda: "producer and consumers:" in run.text, 120)
    run.look()
    assert len(run.seen) > 10, "the consumers run"

    run.process.send_signal(signal.SIGINT)

    run.until(run.ended, 150)
    assert run.process.returncode == 130, run.text
    assert "all its processes are stopped" in run.text
    run.until(lambda: not run.left(), 20)


def test_a_demo_that_is_killed_leaves_nothing_running(run: Run) -> None:
    run.until(lambda: "producer and consumers:" in run.text, 120)
    run.look()

    run.process.kill()

    run.until(lambda: not run.left(), 30)


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        ('"group":"hot","place":0', r"hot-1 was killed by SIGKILL.*\(log:\s+(\S+)\)"),
        ("kafka.Kafka", r"the broker ended by itself\s+\(log:\s+(\S+)\)"),
    ],
    ids=["consumer", "broker"],
)
def test_a_process_that_dies_ends_the_demo_with_the_reason_and_the_place_of_its_log(
    run: Run, mark: str, sentence: str
) -> None:
    run.until(lambda: "producer and consumers:" in run.text, 120)
    run.look()
    victim = next(p for p in run.seen if mark in command_of(p).replace(" ", ""))
    victim.kill()

    run.until(run.ended, 150)

    assert run.process.returncode == 1, run.text
    said = re.search(sentence, run.text.replace("\n", " "))
    assert said, run.text
    assert Path(said[1]).exists()
    run.until(lambda: not run.left(), 20)
