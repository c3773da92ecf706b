"""aiokafka consumers that end: always, and in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer

from kagent.kafka import aiokafka_internals
from kagent.kafka.clients import aiokafka
from kagent.settings import Cluster

log = logging.getLogger("kagent.kafka")
STOP_WITHIN = 10.0


@asynccontextmanager
async def consumer(cluster: Cluster, *topics: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer with these options of aiokafka's, to be started within the block, and stopped at its end. It commits only
    what it is told to, unless the options say otherwise."""
    made = AIOKafkaConsumer(*topics, **aiokafka(cluster, **{"enable_auto_commit": False, **options}))
    try:
        yield made
    finally:
        await stop(made)


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
        group = aiokafka_internals.group_of(consumer)
        log.warning("a consumer of the group %s left without its last commit", group)
    await aiokafka_internals.close_without_commit(consumer)
