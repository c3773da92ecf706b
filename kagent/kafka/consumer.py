"""aiokafka consumers that are always stopped, within a bounded time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError

from kagent.kafka import aiokafka_internals
from kagent.kafka.clients import aiokafka
from kagent.settings import Cluster

log = logging.getLogger("kagent.kafka")
STOP_WITHIN = 10.0
# aiokafka's own defaults commit every 5 s, and read records of aborted transactions.
DEFAULTS = {"enable_auto_commit": False, "isolation_level": "read_committed"}
"""The worker writes in transactions: records of an aborted one come from a worker that was fenced."""


@asynccontextmanager
async def consumer(cluster: Cluster, *topics: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer with these options of aiokafka's, to be started within the block, and stopped at its end. Offsets are
    committed only by an explicit commit, unless the options enable auto-commit."""
    # Made before it is started: what fails in its constructor has nothing to stop.
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
        # Here, not above: with it comes the other client library, and most commands never need both.
        from kagent.kafka.admin import Admin

        with Admin(cluster, deadline=5) as admin:
            await asyncio.to_thread(admin.check)
        raise


async def stop(consumer: AIOKafkaConsumer, within: float = STOP_WITHIN) -> None:
    """Stop it, the broker there or not.

    aiokafka tries a group's last commit for ever once its coordinator is gone, since it looks for none while it closes.
    After ``within`` seconds that commit is given up; the next consumer of the group reads those records again.
    """
    await asyncio.sleep(0)  # aiokafka raises CancelledError if its tasks have not begun yet
    try:
        async with asyncio.timeout(within):
            await consumer.stop()
            return
    except TimeoutError:
        group = aiokafka_internals.group_of(consumer)
        log.warning("a consumer of the group %s left without its last commit", group)
    except asyncio.CancelledError:
        # Also raised by aiokafka where it cancels a fetch of its own that waits for a broker to come back.
        pass
    await aiokafka_internals.close_without_commit(consumer)
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
