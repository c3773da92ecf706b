"""What the worker was not handed is read again from the topic, on a real broker."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.contract.events import GroupEvent, TopicOffsets, encode
from kagent.settings import Cluster, Settings
from kagent.testing import memory_tables
from kagent.worker.backfill import stretch
from tests.fixtures.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 9), (9, 10), (4, 4)])
async def test_a_stretch_is_all_messages_from_its_start_to_before_its_end(
    broker: str, start: int, end: int
) -> None:
    topic = f"stretch-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})  # a client that is collected takes its futures with it
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": broker})
    for n in range(10):
        producer.produce(topic, str(n).encode(), partition=1)
        producer.produce(topic, b"of another partition", partition=0)
    assert producer.flush(30) == 0

    found = [record async for record in stretch(Cluster(bootstrap=broker), topic, 1, start, end)]

    assert [(r.offset, r.value) for r in found] == [(n, str(n).encode()) for n in range(start, end)]


class Jumped:
    """A worker that resumes at offset 2 of its partition and is handed offset 6 first."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        topics = {"prefix": f"jump-{uuid.uuid4().hex[:8]}-", "partitions": 2}
        self.settings = Settings.model_validate(
            {"clusters": {"main": {"bootstrap": bootstrap}}, "topics": topics}
        )
        self.topic = self.settings.topics.events
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.admin.create_topics([NewTopic(self.topic, 2, 1)])[self.topic].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": bootstrap})
        for n in range(8):
            producer.produce(self.topic, event(n), partition=1)
        assert producer.flush(30) == 0

    async def handed_offset_6(self) -> Any:
        from kagent.worker.process import Worker

        rows: Any = memory_tables()
        worker = Worker(self.settings, "main", rows)
        worker.desk.load([1], {1: 2})
        worker.ownership.loaded, worker.ownership.loaded_at = {1}, worker.ownership.recoveries
        await worker.event_reader.take(
            SimpleNamespace(
                topic=self.topic,
                partition=1,
                offset=6,
                key=b"k",
                value=event(6),
                timestamp=1000,
                timestamp_type=1,
            )
        )
        return worker


def event(n: int) -> bytes:
    return encode(
        GroupEvent("main", f"g{n}", 3, 1000, [TopicOffsets("orders", None, [1], [n], [1000], [n])], [])
    )


async def test_what_was_passed_over_is_taken_in_order_and_nothing_counts_as_lost(broker: str) -> None:
    worker = await Jumped(broker).handed_offset_6()

    assert list(worker.desk.index.entries(1)) == [f"main/g{n}" for n in (2, 3, 4, 5, 6)]
    assert not worker.desk.coverage[1].lost
    assert worker.desk.ingest.arrival.expected[1] == 7


async def test_what_the_topic_no_longer_has_is_lost_and_the_rest_is_taken(broker: str) -> None:
    jumped = Jumped(broker)
    place = TopicPartition(jumped.topic, 1, 4)
    jumped.admin.delete_records([place])[place].result(PATIENCE_S)

    worker = await jumped.handed_offset_6()

    assert list(worker.desk.index.entries(1)) == [f"main/g{n}" for n in (4, 5, 6)]
    assert worker.desk.coverage[1].lost
