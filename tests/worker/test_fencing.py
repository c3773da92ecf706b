"""A worker that stood still while another took its partitions over leaves nothing that a reader can see."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.embedded.broker import free_port

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
def running(kagent: Callable[..., Any]) -> Any:
    """Two workers, one partition each."""
    made = kagent()
    made.topic("orders", 1)
    for name in ("worker", "second"):
        made.start(name, "worker", "--web-port", str(free_port()))
    return made


@pytest.fixture(scope="module")
def load(running: Any) -> Iterator[Load]:
    made = Load(running)
    try:
        running.eventually("both workers watch", lambda: both_watch(running, 0.0), 240)
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

    running.eventually("both workers watch again and all rows are newer", caught_up, 240)

    for group, offsets in committed_rows(running).items():
        assert offsets == sorted(offsets), f"{group}: an older row over a newer one"
