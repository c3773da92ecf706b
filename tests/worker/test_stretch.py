"""What the worker was not handed is read again from the topic, on a real broker."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.settings import Cluster
from kagent.worker.stretch import stretch

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 9), (9, 10), (4, 4)])
async def test_a_stretch_is_all_messages_from_its_start_to_before_its_end(
    broker: str, start: int, end: int
) -> None:
    topic = f"stretch-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})  # a client that is collected takes its futures with it
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": broker})
    for n in range(10):
        producer.produce(topic, str(n).encode(), partition=1)
        producer.produce(topic, b"of another partition", partition=0)
    assert producer.flush(30) == 0

    found = [record async for record in stretch(Cluster(bootstrap=broker), topic, 1, start, end)]

    assert [(r.offset, r.value) for r in found] == [(n, str(n).encode()) for n in range(start, end)]
