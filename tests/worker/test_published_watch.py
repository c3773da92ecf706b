"""A recommendations topic that is cut short, or deleted and made anew, is noticed on a real broker."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kagent.contract.recommendation import to_bytes
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, Settings, Topics
from kagent.testing import FakeClock, RecordingPublisher, memory_tables
from kagent.worker.engine import GroupEngine
from kagent.worker.published_watch import PublishedWatch
from tests.fixtures.coordinators import no_answers
from tests.fixtures.waiting import PATIENCE_S, until
from tests.worker.test_engine import commit, event, recommendation

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
KEY = "main/g"


class Owned:
    """The first partition is ours, and its groups are built."""

    def owned(self) -> set[int]:
        return {0}

    def built(self, partition: int) -> bool:
        return True


class Watched:
    """One group with an open incident, and its message on a topic of its own."""

    def __init__(self, bootstrap: str) -> None:
        self.cluster = Cluster(bootstrap=bootstrap)
        self.topics = Topics(prefix=f"t-{uuid.uuid4().hex[:8]}-", partitions=1)
        self.sent: list[tuple[str, bytes | None]] = []
        settings = Settings(clusters={"main": self.cluster}, topics=self.topics)
        clock, publish = FakeClock(), RecordingPublisher(self.sent)
        engine = GroupEngine.of(settings, memory_tables(), publish, no_answers, "w:1", clock)
        engine.load([0], {0: 0})
        engine.take(0, 0, event("g", [commit(0, 5, 1)]))
        engine.adopt(0, {KEY: recommendation("g", revision=7)})
        clock.advance(60)
        owned: Any = Owned()
        self.watch = PublishedWatch(engine, owned, self.cluster)
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.make()

    def make(self) -> None:
        until(lambda: self._made(), "the topics are made")

    def _made(self) -> bool:
        ensure(Admin(self.cluster), self.topics)
        return self.topics.recommendations in Admin(self.cluster).topics([self.topics.recommendations])

    def put(self, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        producer.produce(self.topics.recommendations, value, KEY)
        assert producer.flush(30) == 0

    def cut(self) -> None:
        """Delete all records, which Kafka refuses for a topic that is only compacted."""
        name = self.topics.recommendations
        change = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource("topic", name, incremental_configs=[change])
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
        until(lambda: self._cut(name), "the records are deleted")

    def _cut(self, name: str) -> bool:
        found = self.admin.delete_records([TopicPartition(name, 0, -1)])
        return all(future.exception(30) is None for future in found.values())

    def delete(self) -> None:
        name = self.topics.recommendations
        self.admin.delete_topics([name])[name].result(PATIENCE_S)


@pytest.fixture
def watched(broker: str) -> Watched:
    return Watched(broker)


async def test_what_is_on_the_topic_is_not_published_again(watched: Watched) -> None:
    watched.put(to_bytes(recommendation("g", revision=7)))

    for _ in range(3):
        await watched.watch.look()

    assert watched.sent == []


@pytest.mark.parametrize("how", ["cut", "delete"])
async def test_what_the_topic_has_lost_is_published_again_once(watched: Watched, how: str) -> None:
    watched.put(to_bytes(recommendation("g", revision=7)))
    await watched.watch.look()

    await asyncio.to_thread(watched.cut if how == "cut" else watched.delete)
    await asyncio.to_thread(watched.make)
    for _ in range(3):
        await watched.watch.look()

    assert [key for key, _ in watched.sent] == [KEY] * len(watched.sent)
    assert watched.sent, "nothing was published again"
    published = watched.sent[-1][1] or b""
    watched.put(published)
    count = len(watched.sent)
    await watched.watch.look()
    assert len(watched.sent) == count


async def test_a_cluster_that_is_away_is_asked_again_later(watched: Watched) -> None:
    away = Cluster(bootstrap="127.0.0.1:1")
    watched.watch.admin, watched.watch.home = Admin(away, deadline=1), away

    await watched.watch.look()

    assert watched.sent == []
