"""One of two brokers is killed: coordinators and leaders move to the other, and nothing that was committed is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kagent.embedded.broker import HOST, Broker, free_port
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Key
from kagent.settings import Cluster
from tests.fixtures.waiting import until
from tests.worker.test_poison import Pipeline, judged

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TWICE = {
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "2",
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    # After so long without a heartbeat the controller moves what the dead broker led: 9 s by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "1000",
}


class Second(Broker):
    """A broker that joins the first one's cluster; the controller stays there."""

    __slots__ = ()

    def _format(self) -> None:
        self._write_properties()
        meta = (self.folder.parent / "first" / "data" / "meta.properties").read_text()
        name = next(line.removeprefix("cluster.id=") for line in meta.splitlines() if "cluster.id" in line)
        tool = ["kafka.tools.StorageTool", "format", "-t", name, "-c", str(self.folder / "server.properties")]
        subprocess.run([*self._java(), *tool], check=True, capture_output=True)


@dataclass
class Pair:
    """Two brokers of one cluster, under both addresses."""

    first: Broker
    second: Broker

    @property
    def bootstrap(self) -> str:
        return f"{self.first.bootstrap},{self.second.bootstrap}"

    def stop(self) -> None:
        self.second.stop()
        self.first.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    first = Broker(tmp_path / "first", extra=TWICE).start()
    port = free_port()
    own = f"PLAINTEXT://{HOST}:{port}"
    joins = {
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": f"1@{HOST}:{first.controller_port}",
        "listeners": own,
        "advertised.listeners": own,
    }
    made = Pair(first, Second(tmp_path / "second", port, extra={**TWICE, **joins}).start())
    # Else the replicas of what is created next would all be on the first one.
    admin = Admin(Cluster(bootstrap=made.bootstrap))
    until(lambda: len(admin._client.list_topics(timeout=10).brokers) == 2, "both brokers are there")
    yield made
    made.stop()


def test_a_killed_broker_of_two_costs_no_commit_and_the_worker_goes_on(
    kagent: Callable[..., Any], pair: Pair
) -> None:
    running = kagent(broker=pair, topic_settings={"replication": 2})
    running.topic("orders", 1)
    pipeline = Pipeline(running)
    try:
        running.start_worker()
        running.eventually("the worker judges", lambda: judged(running))
        of_second = [topic for topic in ("kagent-group-events", "__transaction_state") if leads(pair, topic)]
        assert of_second, "nothing would move"

        pair.second.kill()
        before = pipeline.offset
        running.eventually("the table has what came since", lambda: kept(running) > before)
        running.eventually("the worker judges again", lambda: judged(running))
    finally:
        pipeline.stop()
    running.eventually("the table has all that came", lambda: kept(running) == pipeline.offset)
    assert running.processes["worker"].poll() is None


def leads(pair: Pair, topic: str) -> bool:
    """Whether the second broker leads a partition of this topic."""
    found = Admin(Cluster(bootstrap=pair.first.bootstrap)).topics([topic])
    return 2 in found[topic].leaders


def kept(running: Any) -> int:
    """The committed offset of the sound group in the lag table, as a read_committed reader sees it."""
    place: Key = ("orders", 0)
    found: int = running.lag_table().get("sound", {}).get(place, -1)
    return found
