"""Messages of the events topic, in the order of their offsets, from Faust or, where Faust passed over some, from the topic itself."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from aiokafka.errors import KafkaError as ClientError
from faust.types import TP

from kagent.errors import KagentError
from kagent.kafka.admin import Admin
from kagent.settings import Cluster
from kagent.worker.backfill import Reread, stretch
from kagent.worker.dead_letters import DeadLetters
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.outbox import Outbox
from kagent.worker.ownership import Ownership

log = logging.getLogger("kagent.app")
LETTERS = 10
"""Dead letters that one message costs: it may hold thousands of events, and each letter takes as long as a sound event."""
LOG_APPEND_TIME = 1
"""``timestamp_type`` of a record whose time is the broker's (KIP-32)."""


class EventReader:
    """Hands messages to the engine; the outbox acknowledges them once their rows are committed.

    ``learn_sources`` asks the clusters how many partitions their ``__consumer_offsets`` have.
    """

    def __init__(
        self,
        engine: GroupEngine,
        ownership: Ownership,
        outbox: Outbox,
        dead_letters: DeadLetters,
        home: Cluster,
        learn_sources: Callable[[], Awaitable[None]],
    ) -> None:
        self.engine, self.ownership, self.outbox = engine, ownership, outbox
        self.dead_letters, self.home = dead_letters, home
        self._learn_sources, self._sources_asked = learn_sources, False

    async def take(self, message: Any) -> None:
        """One message that Faust hands out. Raises nothing over what is in it."""
        partition = message.partition
        if not self.ownership.built(partition) and not await self.ownership.wait_until_built(partition):
            return  # its new owner reads it again: its offset is not committed here
        if not self._sources_asked:
            # Before the first event: progress on partitions that the cluster does not have would be taken for true, each 8 µs.
            self._sources_asked = True
            await self._learn_sources()
        # Faust can pass messages over (see kagent.worker.backfill): only what the topic no longer has is lost.
        if self.engine.ingest.arrival.jumped(partition, message.offset):
            await self._catch_up(partition, message.offset)
        await self._apply(message)
        # After it was applied: its rows are in the outbox, so the flush that acknowledges it writes them.
        self.outbox.hold(partition, message)
        if self.outbox.urgent(partition):
            await self.outbox.flush(partition)

    async def _catch_up(self, partition: int, end: int) -> None:
        """Take what lies before this offset, was not handed out and is still in the topic; the rest is lost."""
        start = self.engine.ingest.arrival.expected.get(partition, 0)
        topic = self.engine.settings.topics.events
        try:
            # What retention removed is not waited for; Ingest opens a gap for it.
            start = max(start, await in_thread(self._log_start, partition))
            if start >= end:
                return
            async with aclosing(stretch(self.home, topic, partition, start, end)) as missed:
                async for message in missed:
                    await self._apply(message)
                    self.outbox.hold(partition, Reread(TP(message.topic, partition), message.offset))
        # Not raised: the message that showed the gap is applied all the same, and the gap makes its groups blind.
        except (TimeoutError, ClientError, KagentError) as error:
            log.warning(
                "events of partition %d before offset %d cannot be read again: %s", partition, end, error
            )
        else:
            log.info(
                "%d events of partition %d that Faust passed over were read again", end - start, partition
            )

    def _log_start(self, partition: int) -> int:
        key = (self.engine.settings.topics.events, partition)
        with Admin(self.home, deadline=10) as admin:
            return admin.log_start([key]).found.get(key, 0)

    async def _apply(self, message: Any) -> None:
        refused = self.engine.take(message.partition, message.offset, message.value, arrived_ms(message))
        for found in refused[:LETTERS]:
            # The event alone, not the message: its first bytes would show another group's event.
            await self.dead_letters.refuse("event", message, found.error, found.value)
        self.dead_letters.count("event", message, [found.error for found in refused[LETTERS:]])


def arrived_ms(message: Any) -> int | None:
    """When the broker got a message, if its topic keeps the broker's time and not the producer's."""
    # A producer's own time (CreateTime) is no measure of a producer's clock that is ahead.
    return int(message.timestamp * 1000) if message.timestamp_type == LOG_APPEND_TIME else None
