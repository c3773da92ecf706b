"""A worker that stood still while another took its partitions over leaves nothing that a reader can see.

The other one is of the previous release, so each reads rows that the other wrote.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.embedded.broker import free_port
from tests.fixtures.previous_release import previous_release

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
GROUPS = 20
LONGER_THAN_THE_SESSION_S = 18.0


class Load:
    """Commits of all groups, twice a second, each newer than the one before."""

    def __init__(self, running: Any) -> None:
        config = {"bootstrap.servers": running.broker.bootstrap, "linger.ms": 5}
        self.producer, self.round, self.stopped = Producer(config), 0, threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped.wait(0.5):
            now, self.round = int(time.time() * 1000), self.round + 1
            for group in range(GROUPS):
                commit = TopicOffsets("orders", None, [0], [self.round], [now], [self.round])
                event = GroupEvent("main", f"g{group}", group % 2, now, [commit])
                self.producer.produce(
                    "kagent-group-events", encode(event), f"main/g{group}".encode(), group % 2
                )
            done = [self.round] * 2
            beat = Beat("main", now, "run", 1.0, False, [0, 1], [self.round - 1] * 2, done, done, done)
            for partition in (0, 1):
                self.producer.produce("kagent-group-events", encode(beat), b"main", partition)
            self.producer.poll(0)

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.producer.flush(20)


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return previous_release(tmp_path_factory.mktemp("previous"))


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return {"worker": free_port(), "previous": free_port()}


@pytest.fixture(scope="module")
def running(kagent: Callable[..., Any], previous: Path, ports: dict[str, int]) -> Any:
    """Two workers, one partition each; the second is of the previous release."""
    made = kagent()
    made.releases["previous"] = previous
    made.topic("orders", 1)
    for name, port in ports.items():
        made.start(name, "worker", "--web-port", str(port))
    return made


@pytest.fixture(autouse=True)
def both_run(running: Any, load: Load, ports: dict[str, int]) -> None:
    """A test that failed may have left one of them stopped."""
    for name in ports.keys() - running.processes.keys():
        running.start(name, "worker", "--web-port", str(ports[name]))
    running.eventually("both workers watch", lambda: both_watch(running, 0.0))


@pytest.fixture(scope="module")
def load(running: Any) -> Iterator[Load]:
    made = Load(running)
    try:
        yield made
    finally:
        made.stop()


def both_watch(running: Any, since: float) -> bool:
    state = running.state(since=since)
    return bool(state and state.status == "watching" and state.workers == 2)


def committed_rows(running: Any) -> dict[str, list[int]]:
    """Group → the committed offsets of its rows in the lag changelog, in order, as a read_committed reader sees them."""
    found: dict[str, list[int]] = {}
    for _, value in running.read("kagent-lag-changelog"):
        if value:
            row = orjson.loads(value)
            found.setdefault(row["group"], []).append(row["commits"]["committed"][0])
    return found


def test_a_worker_that_stood_still_longer_than_its_session_overwrites_nothing(
    running: Any, load: Load
) -> None:
    stopped = int(running.processes["worker"].pid)
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(LONGER_THAN_THE_SESSION_S)  # the length of the standstill is what is tested
    taken_over = load.round
    os.kill(stopped, signal.SIGCONT)
    resumed = time.time()

    def caught_up() -> bool:
        rows = committed_rows(running)
        newer = len(rows) == GROUPS and all(offsets[-1] > taken_over for offsets in rows.values())
        return newer and both_watch(running, resumed)

    running.eventually("both workers watch again and all rows are newer", caught_up)

    for group, offsets in committed_rows(running).items():
        assert offsets == sorted(offsets), f"{group}: an older row over a newer one"


def test_rows_of_this_and_of_the_previous_release_are_read_by_the_other(
    running: Any, load: Load, ports: dict[str, int]
) -> None:
    alone(running, load, "previous", ports)
    alone(running, load, "worker", ports)

    for group, offsets in committed_rows(running).items():
        assert offsets == sorted(offsets), f"{group}: an older row over a newer one"


def alone(running: Any, load: Load, name: str, ports: dict[str, int]) -> None:
    """Stop the other worker until this one tells of all groups, and writes their rows; then start it again."""
    (other,) = ports.keys() - {name}
    assert running.stop(other) == 0
    stopped = load.round

    def took_over() -> bool:
        rows = committed_rows(running)
        return len(told(ports[name])) == GROUPS and all(offsets[-1] > stopped for offsets in rows.values())

    running.eventually(f"{name} has all groups and writes their rows", took_over)
    since = time.time()
    running.start(other, "worker", "--web-port", str(ports[other]))
    running.eventually("both workers watch", lambda: both_watch(running, since))


def told(port: int) -> set[str]:
    """The groups that the worker on this port tells of, if it is complete."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/groups", timeout=20) as answer:
            said = json.loads(answer.read())
    except OSError:
        return set()
    return {group["group"] for group in said["groups"]} if said["complete"] else set()
