"""aiokafka consumers that end: always, and in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError

from kagent.kafka.admin import Admin
from kagent.kafka.clients import aiokafka
from kagent.settings import Cluster

log = logging.getLogger("kagent.kafka")
STOP_WITHIN = 10.0
DEFAULTS = {"enable_auto_commit": False, "isolation_level": "read_committed"}
"""The worker writes in transactions: what was rolled back is a zombie's word."""


@asynccontextmanager
async def consumer(cluster: Cluster, *topics: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer with these options of aiokafka's, to be started within the block, and stopped at its end. It commits only
    what it is told to, unless the options say otherwise."""
    made = AIOKafkaConsumer(*topics, **aiokafka(cluster, **{**DEFAULTS, **options}))
    try:
        yield made
    finally:
        await stop(made)


async def start(consumer: AIOKafkaConsumer, cluster: Cluster) -> None:
    """Start it. Raises Misconfigured where that is hopeless: aiokafka says "Unable to bootstrap" to all of it."""
    try:
        await consumer.start()
    except KafkaConnectionError:
        await asyncio.to_thread(Admin(cluster, deadline=5).check)
        raise


async def stop(consumer: AIOKafkaConsumer, within: float = STOP_WITHIN) -> None:
    """Stop it, the broker there or not.

    aiokafka tries a group's last commit for ever once its coordinator is gone, since it looks for none while it closes.
    After ``within`` seconds that commit is given up; what it covers is read again by whoever comes next.
    """
    await asyncio.sleep(0)  # aiokafka raises CancelledError if its tasks have not begun yet
    try:
        async with asyncio.timeout(within):
            await consumer.stop()
            return
    except TimeoutError:
        log.warning("a consumer of the group %s left without its last commit", consumer._group_id)
    coordinator, fetcher = consumer._coordinator, consumer._fetcher
    if consumer._group_id is not None and coordinator is not None:
        await coordinator._stop_heartbeat_task()
        await coordinator._stop_commit_offsets_refresh_task()
    if fetcher is not None:
        await fetcher.close()
    await consumer._client.close()
