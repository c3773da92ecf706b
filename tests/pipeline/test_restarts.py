"""``kagent pipeline`` and ``kagent history write`` as services: they wait for a new cluster, outlive their broker, keep their place, and stop cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.embedded.broker import Broker
from tests.fixtures.cast import commit_when_loaded
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=2)]


class Service:
    """One process of a service and its log."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder, self.bootstrap = folder, bootstrap
        self.log = folder / "pipeline.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str, command: Sequence[str] = ("pipeline",)) -> None:
        python = [sys.executable, "-m", "kagent", "--bootstrap", self.bootstrap]
        argv = [*python, *command, "--master", "local[1]"]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [*argv, *more], stdout=out, stderr=out, cwd=self.folder, env=os.environ
            )

    def until(self, said: str, times: int = 1, within: float = 240) -> None:
        """Wait until the log says it so many times."""
        assert self.process is not None
        end = time.monotonic() + within
        while self.log.read_text().count(said) < times:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, f"{said!r} was not said:\n{self.log.read_text()}"
            time.sleep(0.2)

    def stop(self, sign: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(sign)
        return self.process.wait(40)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[[str], Service]]:
    made: list[Service] = []

    def make(bootstrap: str) -> Service:
        made.append(Service(tmp_path, bootstrap))
        return made[-1]

    yield make
    for one in made:
        if one.process and one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def commit(bootstrap: str, group: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if "t" not in admin.list_topics(timeout=20).topics:
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    commit_when_loaded(consumer, [TopicPartition("t", 0, offset)])
    consumer.close()


def test_the_service_waits_for_a_new_cluster_and_outlives_its_broker(
    own_broker: Callable[..., Broker], service: Callable[[str], Service], kafka_reader: Callable[..., Any]
) -> None:
    broker = own_broker()
    run = service(broker.bootstrap)

    run.start()
    run.until("waiting for it")
    commit(broker.bootstrap, "g", 1)
    run.until("Ready")
    broker.kill()
    run.until("Progress cannot be sent")
    broker.start()
    commit(broker.bootstrap, "g", 2)
    told = kafka_reader(broker.bootstrap)
    told.until(lambda events: events.get("g") == 2)

    assert run.stop() == 0
    stopped = time.time() * 1000
    assert "Traceback" not in run.log.read_text()
    commit(broker.bootstrap, "g", 3)
    run.start("--available-now")
    assert run.process is not None
    assert run.process.wait(180) == 0
    told.until(lambda events: events.get("g") == 3)
    # Delivery is at least once: the batch that was under way at the stop may be written again, no earlier one is.
    repeated = [offset for group, offset, written in told.duplicates if group == "g" and written > stopped]
    assert min(repeated, default=2) == 2


def test_the_history_ends_in_time_while_its_broker_is_gone(
    own_broker: Callable[..., Broker], service: Callable[[str], Service], tmp_path: Path
) -> None:
    broker = own_broker()
    run = service(broker.bootstrap)
    run.start("--path", str(tmp_path / "history"), command=("history", "write"))
    run.until("Writing the history")

    broker.kill()  # its first batch takes seconds, and waits for the broker

    assert run.stop() == 0
    assert "Traceback" not in run.log.read_text()


def test_mistakes_are_one_sentence(service: Callable[[str], Service], tmp_path: Path) -> None:
    run = service("127.0.0.1:1")

    run.start("--available-now")
    assert run.process is not None
    code = run.process.wait(180)

    said = run.log.read_text().strip().splitlines()
    assert code == 2
    assert len(said) == 2
    assert "Starting for cluster main" in said[0]
    assert "127.0.0.1:1 cannot be reached" in said[1]
