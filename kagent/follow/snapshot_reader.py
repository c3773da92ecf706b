"""Reads what stands under one group's key on kagent's topics, in a thread of its own, so that no assignor has to.

Each time both topics were read to their ends there is a new Snapshot; while they cannot be, the last one grows old.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from kagent.client.client import parsed
from kagent.contract.recommendation import Recommendation
from kagent.errors import KafkaError
from kagent.follow.model import Snapshot
from kagent.group_key import group_key
from kagent.kafka import aiokafka_internals
from kagent.kafka.consumer import consumer
from kagent.retry import pause_s
from kagent.settings import Cluster, Topics

log = logging.getLogger("kagent.follow")

CONFIRM_EVERY = 5.0
"""Seconds between two looks whether there is more than was read."""
ANSWER_WITHIN = 15.0
POLL_MS = 500
FETCH_WAIT_MS = 500
"""Kafka's default: the reader of a consumer stays, and more requests would gain it nothing."""
LARGEST = 4 * 1024 * 1024
"""Bytes of a message; longer ones are not looked into."""
FOREVER = float("inf")


def keep(snapshot: Snapshot, topics: Topics, topic: str, value: bytes | None) -> Snapshot:
    """The snapshot after a message under the group's key."""
    if topic == topics.mutes:
        return replace(snapshot, muted_until=_muted_until(value))
    if value is None:
        return replace(snapshot, recommendation=None, unreadable=False)
    message = parsed(None, value) if len(value) <= LARGEST else None
    read = message if isinstance(message, Recommendation) else None
    return replace(snapshot, recommendation=read, unreadable=read is None)


def _muted_until(value: bytes | None) -> float:
    """Seconds since the epoch; a mute that cannot be read holds until it is taken back."""
    if value is None:
        return 0.0
    try:
        return int(orjson.loads(value)["until"]) / 1000
    except (ValueError, KeyError, TypeError, OverflowError):
        return FOREVER


def in_words(error: Exception) -> str:
    """An error in words; some have none of their own."""
    return str(error) or type(error).__name__


class Reader:
    """``publish`` gets each snapshot, ``tick`` is called about twice a second; both in the reader's thread."""

    def __init__(
        self,
        source: Cluster,
        cluster: str,
        group: str,
        publish: Callable[[Snapshot], object],
        tick: Callable[[], object],
        topics: Topics | None = None,
        fetch_max_wait_ms: int = FETCH_WAIT_MS,
    ) -> None:
        self.fetch_max_wait_ms = fetch_max_wait_ms
        self.source, self.topics = source, topics or Topics()
        self.key = group_key(cluster, group).encode(errors="surrogatepass")
        self.publish, self.tick = publish, tick
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None

    def start(self) -> None:
        """Begin to read."""
        begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(begun,), name="kagent-follow", daemon=True)
        self._thread.start()
        begun.wait()

    def stop(self, within: float = ANSWER_WITHIN) -> None:
        """End, waiting for the thread."""
        if self._stop is None or self._thread is None:
            return
        with suppress(RuntimeError):  # the loop has ended by itself
            self._stop()
        self._thread.join(within)

    def _run(self, begun: threading.Event) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._keep_reading(begun))

    async def _keep_reading(self, begun: threading.Event) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        begun.set()
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._read()
            except Exception as error:
                failures = 1 if time.monotonic() - began > 60 else failures + 1
                log.warning(
                    "kagent's topics on %s cannot be read: %s", self.source.bootstrap, in_words(error)
                )
                await self._pause(pause_s(failures))

    async def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.sleep(POLL_MS / 1000)
            self.tick()

    async def _read(self) -> None:
        """Read both topics from their beginning, and on. Raises whatever goes wrong."""
        options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": self.fetch_max_wait_ms}
        async with consumer(self.source, **options) as reader:
            await asyncio.wait_for(reader.start(), ANSWER_WITHIN)
            known = await asyncio.wait_for(aiokafka_internals.all_topics(reader), ANSWER_WITHIN)
            assigned = self._partitions(known)
            reader.assign(assigned)
            await asyncio.wait_for(reader.seek_to_beginning(*assigned), ANSWER_WITHIN)
            await self._tail(reader, assigned)

    def _partitions(self, known: Any) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for topic in (self.topics.recommendations, self.topics.mutes):
            partitions = known.partitions_for_topic(topic) or set()
            if not partitions:
                raise KafkaError(f"the topic {topic} does not exist or may not be read; run `kagent topics`")
            found += [TopicPartition(topic, partition) for partition in sorted(partitions)]
        return found

    async def _tail(self, reader: AIOKafkaConsumer, assigned: list[TopicPartition]) -> None:
        found, confirmed, at_end = Snapshot(0.0), 0.0, False
        while True:
            batches = await reader.getmany(timeout_ms=POLL_MS)
            fresh = [r for records in batches.values() for r in records if r.key == self.key]
            for record in fresh:
                found = keep(found, self.topics, record.topic, record.value)
            if time.monotonic() - confirmed >= CONFIRM_EVERY or not at_end:
                asked = time.time()
                at_end = await asyncio.wait_for(self._at_end(reader, assigned), ANSWER_WITHIN)
                if at_end:
                    found, confirmed = replace(found, read_at=asked), time.monotonic()
                    self.publish(found)
            elif fresh:
                self.publish(found)
            self.tick()

    async def _at_end(self, reader: AIOKafkaConsumer, assigned: list[TopicPartition]) -> bool:
        if self._partitions(await aiokafka_internals.refreshed_topics(reader)) != assigned:
            raise KafkaError("the number of their partitions has changed")
        ends: dict[TopicPartition, Any] = await reader.end_offsets(assigned)
        positions = {tp: await reader.position(tp) for tp in assigned}
        if any(positions[tp] > end for tp, end in ends.items()):
            raise KafkaError("they were made anew")
        return all(positions[tp] >= end for tp, end in ends.items())
