"""A consumer ends whatever has become of its broker."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.embedded.broker import Broker
from kagent.kafka.consumer import consumer, stop
from kagent.kafka.topic_reader import assign_all
from kagent.settings import Cluster
from tests.fixtures.waiting import PATIENCE_S

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
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(PATIENCE_S)
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


async def test_one_that_waits_to_fetch_again_ends_without_cancelling_its_task(tmp_path: Path) -> None:
    asked, failed = asyncio.Event(), asyncio.Event()

    class Fetches(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "Adding fetch request" in record.msg:
                asked.set()
            if "Failed fetch" in record.msg:
                failed.set()

    # A broker that dies between two fetches is looked for in the metadata, and no fetch fails.
    waits = {"fetch_max_wait_ms": 5_000}

    with Broker(tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(PATIENCE_S)
        before = asyncio.all_tasks()
        client = logging.getLogger("aiokafka.consumer.fetcher")
        client.addHandler(handler := Fetches())
        client.setLevel(logging.DEBUG)
        async with (
            asyncio.timeout(PATIENCE_S),
            consumer(Cluster(bootstrap=running.bootstrap), **waits) as reader,
        ):
            await reader.start()
            await assign_all(reader, "orders")
            await asked.wait()
            running.kill()
            await failed.wait()
        client.removeHandler(handler)
        client.setLevel(logging.NOTSET)

        assert asyncio.all_tasks() == before
