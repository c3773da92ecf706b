"""A consumer ends whatever has become of its broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.embedded.broker import Broker
from kagent.kafka.consumer import consumer, stop
from kagent.settings import Cluster

pytestmark = pytest.mark.kafka


async def test_one_that_has_only_just_begun_ends(broker: str) -> None:
    async with consumer(Cluster(bootstrap=broker)) as reader:
        await reader.start()


async def test_one_that_never_began_ends(broker: str) -> None:
    async with consumer(Cluster(bootstrap=broker), group_id="never"):
        pass


async def test_a_member_with_something_to_commit_ends_though_the_broker_is_gone(tmp_path: Path) -> None:
    with Broker(tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(60)
        producer = Producer({"bootstrap.servers": running.bootstrap, "log_level": 0})
        producer.produce("orders", b"x")
        assert producer.flush(60) == 0
        before = asyncio.all_tasks()
        options = {"group_id": "g", "enable_auto_commit": True, "auto_offset_reset": "earliest"}
        async with consumer(Cluster(bootstrap=running.bootstrap), "orders", **options) as reader:
            async with asyncio.timeout(120):
                await reader.start()
                await anext(reader)
            running.kill()
            await stop(reader, within=2)
        assert asyncio.all_tasks() == before
