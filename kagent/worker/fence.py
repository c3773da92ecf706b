"""Fencing: one transactional producer per owned partition, so that a worker that lost it writes nothing a reader can see.

The partition's rows and messages go into transactions of ``{app}-{partition}``. The worker that is assigned the partition starts a
producer of that id before it reads the changelogs: the broker aborts the predecessor's transaction and refuses what it sends
later (KIP-98, "zombie fencing"). Row and message of a decision share a transaction, so they are seen together or not at all.

Faust's own ``exactly_once`` sends messages to topics that the app does not consume outside of any transaction.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidTimestampError, KafkaError
from aiokafka.structs import RecordMetadata

from kagent.kafka.clients import aiokafka
from kagent.settings import Cluster
from kagent.text import in_words

log = logging.getLogger("kagent.worker")
# aiokafka's 16 KiB would put each row of a large group into a batch of its own; zstd works per batch.
BATCH_BYTES = 256 * 1024
MAX_ROW_BYTES = 7 * 1024 * 1024
"""Below the changelogs' ``max.message.bytes``: a larger row would fail its transaction, at every try."""
# aiokafka also gives a batch without a leader up after this time: an election has to fit in it.
REQUEST_TIMEOUT_S = 60
TRANSACTION_WITHIN_S = 180.0
"""A transaction that takes longer has failed: a broker is away for long, or this process stood still."""
STOP_WITHIN_S = 5.0
Row = tuple[bytes, bytes | None]
"""Key and value; without a value it is a tombstone."""


class NotCommitted(Exception):
    """A transaction failed while this process was ending: what it held comes again at the partition's next owner."""


class PartitionProducers:
    """The transactional producers of the owned partitions. ``ending``: this process has got the signal to end."""

    ending = False

    def __init__(self, cluster: Cluster, app_id: str, session_timeout_s: float) -> None:
        self.cluster, self.app_id = cluster, app_id
        # The next owner's InitProducerId ends it sooner; this bounds the case that no worker takes over.
        self.transaction_timeout_ms = int((session_timeout_s + 15) * 1000)
        """A transaction outlives the session of its worker by a little: readers wait for no dead worker longer than that."""
        self._producers: dict[int, AIOKafkaProducer] = {}

    def owns(self, partition: int) -> bool:
        """Whether the partition was taken over."""
        return partition in self._producers

    async def take_over(self, partitions: Iterable[int]) -> None:
        """A new producer for each partition, also for a retained one: another worker may have owned it meanwhile.

        Raises aiokafka's KafkaError.
        """
        # Also of retained partitions: while another worker owned one, it may have fenced our producer off.
        await self.stop()
        started: dict[int, AIOKafkaProducer] = {}
        try:
            await self._start_all(sorted(partitions), started)
        # All or none: a partition that is not fenced would be recovered while its old owner still writes. Also where it is cancelled:
        # those that have started have no owner yet.
        except BaseException:
            await asyncio.gather(*map(_stopped, started.values()))
            raise
        self._producers = started

    async def _start_all(self, partitions: Iterable[int], started: dict[int, AIOKafkaProducer]) -> None:
        async def start(partition: int) -> None:
            started[partition] = await self._started(partition)

        # Side by side: one start was seen to take up to 0.19 s, 50 together 0.2 to 0.64 s.
        done = await asyncio.gather(*map(start, partitions), return_exceptions=True)
        # Only once all have ended: one that is still starting could not be stopped.
        for error in (error for error in done if error is not None):
            raise error

    async def _started(self, partition: int) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **aiokafka(self.cluster, client_id=f"{self.app_id}-{partition}"),
            # The same id at every owner: InitProducerId raises its epoch, and the broker refuses the old one.
            # https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging
            transactional_id=f"{self.app_id}-{partition}",
            transaction_timeout_ms=self.transaction_timeout_ms,
            request_timeout_ms=REQUEST_TIMEOUT_S * 1000,
            max_batch_size=BATCH_BYTES,
            # aiokafka refuses a larger message before it is sent, and its default is 1 MiB.
            max_request_size=8 * 1024 * 1024,
            compression_type="zstd",
        )
        try:
            await producer.start()
        except BaseException:
            await _stopped(producer)
            raise
        return producer

    async def write(
        self, partition: int, rows: Mapping[str, Sequence[Row]], messages: Sequence[tuple[str, bytes, Any]]
    ) -> dict[str, list[int]]:
        """Commit rows (changelog → rows) and messages (topic, key, value) in one transaction; the rows' offsets by changelog.

        Returns only after the commit. A transaction that fails ends this process's life: see :func:`leave`.
        Raises NotCommitted where it is ending anyway.
        """
        producer = self._producers[partition]
        try:
            # aiokafka checks a batch's age only after an error: after a standstill it sends what it held, however old.
            # The epoch fences that; the deadline is for a broker that never answers.
            async with asyncio.timeout(TRANSACTION_WITHIN_S):
                await producer.begin_transaction()
                # Sent before the rows: both are awaited before the commit, so their order does not matter to readers.
                sent = [await producer.send(topic, value, key) for topic, key, value in messages]
                offsets = {topic: await _send(producer, topic, partition, rows[topic]) for topic in rows}
                await asyncio.gather(*sent)
                await producer.commit_transaction()
        except Exception as error:  # aiokafka's IllegalOperation, after a fence, is no KafkaError
            if self.ending:  # a new process in its place would not know of the signal to end
                raise NotCommitted(f"partition {partition}: {error!r}") from error
            leave(partition, error)
        return offsets

    async def stop(self) -> None:
        """Close the producers; the broker aborts an open transaction."""
        producers, self._producers = self._producers, {}
        await asyncio.gather(*(_stopped(producer) for producer in producers.values()))


async def _send(producer: AIOKafkaProducer, topic: str, partition: int, rows: Sequence[Row]) -> list[int]:
    """Send the rows in as few batches as they fit in; their offsets."""
    sent = []
    batch = producer.create_batch()
    for key, value in rows:
        # None: the batch is full. A first record is always taken, however large it is.
        if batch.append(key=key, value=value, timestamp=None) is None:
            sent.append((batch.record_count(), await producer.send_batch(batch, topic, partition=partition)))
            batch = producer.create_batch()
            batch.append(key=key, value=value, timestamp=None)
    sent.append((batch.record_count(), await producer.send_batch(batch, topic, partition=partition)))
    # A receipt has the offset of its batch's first record; within a batch offsets have no holes.
    receipts: list[RecordMetadata] = await asyncio.gather(*(receipt for _, receipt in sent))
    counts = (count for count, _ in sent)
    return [r.offset + at for r, count in zip(receipts, counts, strict=True) for at in range(count)]


async def _stopped(producer: AIOKafkaProducer) -> None:
    try:
        async with asyncio.timeout(STOP_WITHIN_S):
            await producer.stop()
    except (KafkaError, TimeoutError) as error:
        log.debug("a producer ended with %r", error)


# Only on topics that an earlier release made: the others have the broker's time.
WRONG_CLOCK = "this host's clock is further ahead of the brokers' than message.timestamp.after.max.ms allows: set it right"


def leave(partition: int, error: BaseException) -> NoReturn:
    """Replace this process with a new one: what it holds in memory rests on rows that were not committed.

    Nothing is lost: events are acknowledged after the commit only, so the partition's next owner reads them again.
    """
    log.warning(
        "partition %d went to another worker, or its transaction failed (%s): this worker restarts",
        partition,
        WRONG_CLOCK if isinstance(error, InvalidTimestampError) else in_words(error),
    )
    # execv runs no exit handlers: buffered log records would be lost.
    logging.shutdown()
    # exec keeps process id and terminal: a supervisor or a container sees no restart.
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
