"""Recommendations for programs: what is open now, and what comes.

    async for rec in kagent.recommendations("localhost:9092"):
        ...

Messages of a newer schema are passed as far as they are known; what cannot be read is logged, never raised.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError, KafkaConnectionError, TopicAuthorizationFailedError
from aiokafka.errors import KafkaError as ClientError
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential

from kagent.contract.admission import published
from kagent.contract.recommendation import SCHEMA, Recommendation, State, Status, is_newer
from kagent.errors import KafkaError
from kagent.kafka.consumer import consumer, start
from kagent.process_tree import backoff
from kagent.settings import Cluster

log = logging.getLogger("kagent.client")
Message = Recommendation | State
TOPIC = "kagent-recommendations"
VISIBLE_WITHIN = 5.0
REFUSED = (TopicAuthorizationFailedError, GroupAuthorizationFailedError)


def parsed(key: bytes | None, value: bytes | None) -> Message | None:
    """The message, or None for a tombstone and for what cannot be read (which is logged)."""
    if value is None:
        return None
    try:
        message = published(value)
    except ValueError as error:
        log.warning("a message under the key %r cannot be read and is passed over: %s", key, error)
        return None
    if message.schema_version > SCHEMA:
        _newer(message.schema_version)
    return message


@lru_cache(maxsize=8)
def _newer(version: int) -> None:
    """Said once for each version."""
    log.warning("messages have schema %d, this kagent knows %d: what it knows is passed on", version, SCHEMA)


async def current(cluster: Cluster, topic: str = TOPIC) -> dict[str, Message]:
    """The compacted state of the topic: the latest message of every key. Raises KafkaError."""
    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(_passes),
            stop=stop_after_delay(15),
            wait=wait_exponential(0.1, max=1),
            reraise=True,
        ):
            with attempt:
                return await _read_all(cluster, topic)
    except ClientError as error:
        raise unreadable(topic, cluster, error) from error
    raise AssertionError  # the retrying either returns or raises


def unreadable(topic: str, cluster: Cluster, error: Exception) -> KafkaError:
    """The sentence for a topic that cannot be read: a cluster that is away is told apart from a topic that is refused."""
    if isinstance(error, KafkaConnectionError):
        return KafkaError(
            f"The cluster at {cluster.bootstrap} cannot be reached: check the address and that a broker listens."
        )
    return KafkaError(f"The topic {topic} at {cluster.bootstrap} cannot be read ({error}).")


def _passes(error: BaseException) -> bool:
    """Whether the same question may have an answer in a moment: a leader that moves, a broker that starts."""
    return isinstance(error, ClientError) and bool(error.retriable)


async def _read_all(cluster: Cluster, topic: str) -> dict[str, Message]:
    found: dict[str, Message] = {}
    async with consumer(cluster) as reader:
        await start(reader, cluster)
        async for record in standing(reader, topic):
            _keep(found, record)
    return found


async def standing(consumer: AIOKafkaConsumer, topic: str) -> AsyncGenerator[Any, None]:
    """The records that are on the whole topic now; the consumer stands behind them then, without a group."""
    ends = await assign_all(consumer, topic)
    while any([await consumer.position(tp) < end for tp, end in ends.items()]):
        for records in (await consumer.getmany(timeout_ms=500)).values():
            for record in records:
                yield record


def _keep(found: dict[str, Message], record: Any) -> Message | None:
    """Take a record in; its message, if it says more than the one before it under its key."""
    key = (record.key or b"").decode(errors="replace")
    message = parsed(record.key, record.value)
    if message is None:
        if record.value is None:
            found.pop(key, None)
        return None
    before = found.get(key)
    if isinstance(message, Recommendation) and _outdated(message, before):
        return None
    found[key] = message
    return message


def _outdated(message: Recommendation, before: Message | None) -> bool:
    return isinstance(before, Recommendation) and not is_newer(message, before)


async def _found(consumer: AIOKafkaConsumer, topic: str) -> None:
    """Wait until the topic can be seen: brokers learn of a new one a moment later. Raises KafkaError."""
    until = time.monotonic() + VISIBLE_WITHIN
    while topic not in await consumer.topics():
        if time.monotonic() > until:
            raise KafkaError(
                f"The topic {topic} does not exist or may not be read: run `kagent topics`, or ask for READ."
            )
        await asyncio.sleep(0.2)


async def assign_all(
    consumer: AIOKafkaConsumer, topic: str, places: Mapping[int, int] = MappingProxyType({})
) -> dict[TopicPartition, int]:
    """Read the whole topic from its start, or from these ``places`` (partition → offset), without a group; its ends by
    partition. Raises KafkaError, or aiokafka's."""
    await _found(consumer, topic)
    assigned = [TopicPartition(topic, p) for p in await consumer._client._wait_on_metadata(topic)]
    consumer.assign(assigned)
    await consumer.seek_to_beginning(*assigned)
    for tp in assigned:
        if tp.partition in places:
            consumer.seek(tp, places[tp.partition])
    ends: dict[TopicPartition, int] = await consumer.end_offsets(assigned)
    return ends


async def recommendations(
    bootstrap: str | Cluster,
    *,
    topic: str = TOPIC,
    group_id: str | None = None,
    only: Callable[[Recommendation], bool] | None = None,
    states: bool = False,
) -> AsyncGenerator[Any, None]:
    """Recommendations as they come, typed and validated.

    Without ``group_id`` it begins with what stands on the compacted topic (open and lately resolved ones) and goes on from
    there; with one it resumes where that group left off. Out-of-date messages (by ``revision``) are passed over. ``only`` filters; ``states`` passes state messages too. Broker
    restarts are sat out. Raises KafkaError if the cluster cannot be reached at the start, or refuses the topic or group.
    """
    cluster = bootstrap if isinstance(bootstrap, Cluster) else Cluster(bootstrap=bootstrap)
    places: dict[int, int] = {}
    latest: dict[str, Message] = {}
    begun, failures = False, 0
    while True:
        try:
            async with consumer(
                cluster,
                group_id=group_id,
                enable_auto_commit=group_id is not None,
                auto_offset_reset="earliest",
            ) as reader:
                await start(reader, cluster)
                if group_id is None:
                    await assign_all(reader, topic, places)
                else:
                    await _found(reader, topic)
                    reader.subscribe([topic])
                begun = True
                async for record in reader:
                    failures, places[record.partition] = 0, record.offset + 1
                    message = _keep(latest, record)
                    if isinstance(message, State):
                        if states:
                            yield message
                    elif message is not None and (only is None or only(message)):
                        yield message
                return
        except (ClientError, KafkaError) as error:
            if isinstance(error, KafkaError) and not begun:
                raise
            if not begun or isinstance(error, REFUSED):
                raise unreadable(topic, cluster, error) from error
            log.warning("%s cannot be read (%s); trying again", topic, error)
        failures += 1
        await asyncio.sleep(backoff(failures))


def is_open(message: Message | None) -> bool:
    """Whether this is an incident that has not been resolved."""
    return isinstance(message, Recommendation) and message.status is not Status.RESOLVED
