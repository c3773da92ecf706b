"""What kagent adds to Faust's consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from faust.types import TP

from kagent.kafka.consumer import consumer
from kagent.settings import Cluster, Settings
from kagent.worker.faust_app import faust_app
from kagent.worker.transport import last_records
from tests.fixtures.consumers import started
from tests.fixtures.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic(broker: str) -> str:
    """A topic of one partition."""
    name = f"changelog-{uuid4().hex}"
    client = AdminClient({"bootstrap.servers": broker})
    client.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
    return name


async def fetched(
    app: Any, reader: AIOKafkaConsumer, active: set[TP], meanwhile: Callable[[], None]
) -> list[int]:
    """The offsets that one fetch returns; ``meanwhile`` happens while it waits for records."""
    # Faust's own call, in this loop instead of its thread's.
    fetch = asyncio.create_task(app.consumer._thread._fetch_records(reader, active, timeout=20.0))
    await asyncio.sleep(0)
    assert not fetch.done()
    meanwhile()
    return [record.offset for batch in (await fetch).values() for record in batch]


@pytest.mark.parametrize("how", ["the flow is stopped", "the partition is paused"])
async def test_what_a_fetch_brings_that_faust_would_drop_is_fetched_again(
    broker: str, topic: str, tmp_path: Path, how: str
) -> None:
    settings = Settings.model_validate(
        {"clusters": {"main": {"bootstrap": broker}}, "worker": {"data": str(tmp_path)}}
    )
    app = faust_app(settings, settings.home_cluster("main"))
    consumer: Any = app.consumer
    active = {TP(topic, 0)}
    producer = Producer({"bootstrap.servers": broker})

    def produced() -> None:
        producer.produce(topic, b"row", partition=0)
        producer.flush(20)

    def rebalance() -> None:
        if how == "the flow is stopped":
            consumer.stop_flow()
        else:
            active.clear()
        produced()

    def rebalanced() -> None:
        consumer.resume_flow()
        active.add(TP(topic, 0))

    reader = AIOKafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest")
    try:
        async with started(reader):
            produced()
            reader.assign([TopicPartition(topic, 0)])
            await reader.seek_to_end()

            dropped = await fetched(app, reader, active, rebalance)
            rebalanced()
            again = await fetched(app, reader, active, lambda: None)
    finally:
        consumer._thread.thread_loop.close()  # of the thread that was never started

    assert (len(dropped), len(again)) == (0, 1)


@pytest.mark.parametrize(("deleted", "end"), [(0, 3), (2, 3), (3, 3)])
async def test_a_changelog_ends_at_its_start_where_its_records_were_deleted(
    broker: str, topic: str, deleted: int, end: int
) -> None:
    producer = Producer({"bootstrap.servers": broker})
    for _ in range(3):
        producer.produce(topic, b"row", partition=0)
    producer.flush(20)
    admin, place = AdminClient({"bootstrap.servers": broker}), TopicPartition(topic, 0)
    for future in admin.delete_records([Place(topic, 0, deleted)]).values():
        future.result(PATIENCE_S)

    async with consumer(Cluster(bootstrap=broker), auto_offset_reset="earliest") as reader:
        await reader.start()
        found = await last_records(reader, [place])

    assert found == {place: end}
