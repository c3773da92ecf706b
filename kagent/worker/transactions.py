"""Fencing: one transactional producer per owned partition, so that a worker that lost it writes nothing a reader can see.

What a partition's groups make (table rows, recommendations) goes into the transaction of ``{app}-{partition}``. Whoever is assigned the
partition starts a producer of that id before it reads the changelogs: the broker aborts the predecessor's transaction and refuses
what it sends later (KIP-98, "zombie fencing"). Row and message of a decision share a transaction, and with it their fate.

Faust's own ``exactly_once`` sends messages to topics it does not consume outside of any transaction.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NoReturn

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata
from faust.streams import current_event
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

log = logging.getLogger("kagent.transactions")
LOOK_BACK = 64
"""Offsets before a log end that are looked through for the last record; sixteen times as many where there is none."""
NOWHERE = -1
DRAIN_POLL_S = 0.005
READ_COMMITTED = "read_committed"


class Fence:
    """The producers of the owned partitions. One transaction per partition is open from its first record to ``commit``."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._producers: dict[int, AIOKafkaProducer] = {}
        self._begun: set[int] = set()
        self._locks: dict[int, asyncio.Lock] = {}
        self._units = 0
        self._quiet = asyncio.Condition()
        self._committing = asyncio.Lock()

    async def take_over(self, partitions: set[int], settings: Mapping[str, Any]) -> None:
        """A new producer for each partition, also for one that stays ours: another may have owned it meanwhile."""
        before, self._producers, self._begun = self._producers, {}, set()
        started = {p: self._started(p, settings) for p in sorted(partitions)}
        await asyncio.gather(*(_stop(producer) for producer in before.values()))
        made = await asyncio.gather(*started.values())
        self._producers = dict(zip(started, made, strict=True))
        self._locks = {p: asyncio.Lock() for p in partitions}

    async def _started(self, partition: int, settings: Mapping[str, Any]) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(**settings, transactional_id=f"{self.prefix}-{partition}")
        try:
            await producer.start()
        except BaseException:
            await _stop(producer)
            raise
        return producer

    async def send(self, owner: int, **record: Any) -> Any:
        """Put a record into the partition's transaction; the future of its receipt. One of a lost partition goes nowhere."""
        if owner not in self._producers:
            return _nowhere(record["topic"], owner)
        try:
            async with self._locks[owner]:
                producer = self._producers[owner]
                if owner not in self._begun:
                    await producer.begin_transaction()
                    self._begun.add(owner)
                receipt = await producer.send(**record)
        except Exception as error:  # aiokafka's IllegalOperation, after a fence, is no KafkaError
            leave(owner, error)
        receipt.add_done_callback(partial(_delivered, owner))
        return receipt

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[None]:
        """What is sent within goes into one transaction."""
        async with self._committing:
            self._units += 1
        try:
            yield
        finally:
            async with self._quiet:
                self._units -= 1
                self._quiet.notify_all()

    async def commit(self, drain: Any) -> None:
        """End all open transactions, between units, once ``drain`` has handed over what waits to be sent."""
        async with self._committing:
            async with self._quiet:
                await self._quiet.wait_for(lambda: self._units == 0)
            await drain()
            await asyncio.gather(*(self._commit(owner) for owner in sorted(self._begun)))

    async def _commit(self, owner: int) -> None:
        try:
            async with self._locks[owner]:
                if owner in self._begun:
                    self._begun.discard(owner)
                    await self._producers[owner].commit_transaction()
        except Exception as error:
            leave(owner, error)

    async def stop(self) -> None:
        """Close the producers; an open transaction is aborted by the broker."""
        producers, self._producers = self._producers, {}
        await asyncio.gather(*(_stop(producer) for producer in producers.values()))


async def _stop(producer: AIOKafkaProducer) -> None:
    try:
        async with asyncio.timeout(5):
            await producer.stop()
    except (KafkaError, TimeoutError) as error:
        log.debug("a producer ended with %s", error)


def _nowhere(topic: str, partition: int) -> asyncio.Future[RecordMetadata]:
    place = TopicPartition(topic, partition)
    future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
    future.set_result(RecordMetadata(topic, partition, place, NOWHERE, None, None, None))
    return future


def _delivered(partition: int, receipt: asyncio.Future[Any]) -> None:
    error = None if receipt.cancelled() else receipt.exception()
    if error is not None:
        leave(partition, error)


def leave(partition: int, error: BaseException) -> NoReturn:
    """Begin anew in this process's place: memory holds what was not committed, and cannot be mended."""
    log.warning(
        "partition %d went to another worker, or its transaction failed (%r): starting anew", partition, error
    )
    logging.shutdown()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Producer(driver.Producer):
    """Rows and recommendations through the fence, all else as ever."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fence = Fence(self.app.conf.id)
        self._rows_sent = 0

    def settings(self) -> dict[str, Any]:
        """Of a transactional producer. A transaction outlives the session of its worker by a little, never by long."""
        timeout = int((self.app.conf.broker_session_timeout + 15) * 1000)
        found = {**self._settings_default(), **self._settings_auth(), "transaction_timeout_ms": timeout}
        return {**found, "acks": "all", "enable_idempotence": True}

    async def send(
        self, topic: str, key: Any, value: Any, partition: Any, timestamp: Any, headers: Any, **more: Any
    ) -> Any:
        """Schedule a record, in the transaction of the partition that makes it."""
        owner = self._owner(topic, partition)
        if owner is None:
            return await super().send(topic, key, value, partition, timestamp, headers, **more)
        receipt = await self.fence.send(owner, topic=topic, key=key, value=value, partition=partition)
        self._rows_sent += topic in self.app.tables.changelog_topics
        return receipt

    def _owner(self, topic: str, partition: int | None) -> int | None:
        if topic in self.app.tables.changelog_topics:
            return partition
        event = current_event() if topic in self.app.fenced_topics else None
        return None if event is None else int(event.message.partition)

    async def flush(self) -> None:
        """End the transactions, then send the rest: Faust commits source offsets after it."""
        await self.fence.commit(self._drain)
        await super().flush()

    async def _drain(self) -> None:
        """Hand over what waits now: new rows may come all the while, and Faust's own flush gives up after 0.1 s."""
        due = self._rows_sent + self.buffer.size
        while self.buffer.size and self._rows_sent < due:
            await asyncio.sleep(DRAIN_POLL_S)

    async def on_stop(self) -> None:
        """Close all producers."""
        await self.fence.stop()
        await super().on_stop()


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """A consumer that does not see what was rolled back."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        made = super()._create_worker_consumer(transport)
        made._isolation_level = READ_COMMITTED
        return made


class Consumer(driver.Consumer):
    """Recovery of transactional changelogs ends at their last record that can be seen.

    The log end is a marker, for which Faust would wait for ever; and a consumer's position moves before its records are handed on.
    """

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """The offset after the last visible record of each partition; 0 where there is none."""
        options = {**self.app.producer._settings_auth(), "bootstrap_servers": self._servers()}
        reader = AIOKafkaConsumer(
            **options, isolation_level=READ_COMMITTED, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        await reader.start()
        try:
            found = await last_records(reader, [TopicPartition(tp.topic, tp.partition) for tp in partitions])
        finally:
            await reader.stop()
        return {tp: found[TopicPartition(tp.topic, tp.partition)] for tp in partitions}

    def _servers(self) -> Any:
        return driver.server_list(self.transport.url, self.transport.default_port)


async def last_records(
    reader: AIOKafkaConsumer, places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offset after the last record that this consumer can see in each partition; 0 where there is none."""
    reader.assign(list(places))
    ends = await reader.end_offsets(list(places))
    begins = await reader.beginning_offsets(list(places))
    found: dict[TopicPartition, int] = {}
    back = LOOK_BACK
    while open_ := [tp for tp in ends if tp not in found]:
        for tp in open_:
            reader.seek(tp, max(begins[tp], ends[tp] - back))
        last = await _last_before(reader, {tp: ends[tp] for tp in open_})
        whole = {tp for tp in open_ if ends[tp] - back <= begins[tp]}
        found |= {tp: last.get(tp, 0) for tp in open_ if tp in last or tp in whole}
        back *= 16
    return found


async def _last_before(reader: AIOKafkaConsumer, ends: Mapping[Any, int]) -> dict[Any, int]:
    last: dict[Any, int] = {}
    left = set(ends)
    while left := {tp for tp in left if await reader.position(tp) < ends[tp]}:
        for tp, records in (await reader.getmany(*left, timeout_ms=200)).items():
            for record in records:
                last[tp] = record.offset + 1
    return last


class Transport(driver.Transport):
    """Faust's Kafka transport with the fence."""

    Consumer = Consumer
    Producer = Producer
