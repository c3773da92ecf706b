"""Recommendations for programs: what is open now, and what comes.

    async for rec in kagent.recommendations("localhost:9092"):
        ...

Of messages with a newer schema the known fields are passed on; a message that cannot be read is logged, never raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Any

from aiokafka.errors import KafkaError as ClientError
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential

from kagent.contract.admission import published
from kagent.contract.recommendation import SCHEMA, Recommendation, State, Status, is_newer
from kagent.errors import KafkaError
from kagent.group_key import group_key
from kagent.kafka.consumer import consumer, start
from kagent.kafka.topic_reader import (
    ANSWER_WITHIN_S,
    LISTED_WITHIN_S,
    ONCE,
    ReadMark,
    read_forever,
    standing,
    unreadable,
)
from kagent.settings import Cluster

log = logging.getLogger("kagent.client")
Message = Recommendation | State
TOPIC = "kagent-recommendations"


def parsed(key: bytes | None, value: bytes | None) -> Message | None:
    """The message, or None for a tombstone and for what cannot be read (which is logged)."""
    if value is None:
        return None
    try:
        message = published(value)
    except ValueError as error:
        log.warning("a message under the key %r cannot be read and is skipped: %s", key, error)
        return None
    # Under another key it would replace what is true there, or never be replaced: the state of a cluster, another group's incident.
    if key is not None and key != _key_of(message):
        log.warning("a message under the key %r is of another group and is skipped", key)
        return None
    if message.schema_version > SCHEMA:
        _newer(message.schema_version)
    return message


def _key_of(message: Message) -> bytes:
    key = message.cluster if isinstance(message, State) else group_key(message.cluster, message.group)
    return key.encode(errors="surrogatepass")


@lru_cache(maxsize=8)
def _newer(version: int) -> None:
    """Logged once for each version."""
    log.warning("messages have schema %d, this kagent knows %d: what it knows is passed on", version, SCHEMA)


async def current(cluster: Cluster, topic: str = TOPIC) -> dict[str, Message]:
    """The compacted state of the topic: the latest message of every key. Raises KafkaError."""
    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(_passes),
            # Long enough for a leader that moves, short enough for a person who waits for the reason.
            stop=stop_after_delay(15),
            wait=wait_exponential(0.1, max=1),
            reraise=True,
        ):
            with attempt:
                return await _read_all(cluster, topic)
    except ClientError as error:
        raise unreadable(topic, cluster, error) from error
    except TimeoutError as error:
        raise KafkaError(
            f"The topic {topic} at {cluster.bootstrap} cannot be read (nothing came within {ANSWER_WITHIN_S:g} s): brokers that lead it may "
            "be away."
        ) from error
    raise AssertionError  # the retrying either returns or raises


def _passes(error: BaseException) -> bool:
    """Whether the same question may have an answer in a moment: a leader that moves, a broker that starts."""
    return isinstance(error, ClientError) and bool(error.retriable)


async def _read_all(cluster: Cluster, topic: str) -> dict[str, Message]:
    found: dict[str, Message] = {}
    async with consumer(cluster, **ONCE) as reader, asyncio.timeout(ANSWER_WITHIN_S) as patience:
        await start(reader, cluster)
        async for record in standing(reader, topic, LISTED_WITHIN_S):
            # From record to record: a large topic may take longer as a whole.
            patience.reschedule(asyncio.get_running_loop().time() + ANSWER_WITHIN_S)
            _keep(found, record)
    return found


def _keep(found: dict[str, Message], record: Any) -> Message | None:
    """Take a record in; its message, if it says more than the one before it under its key."""
    key = (record.key or b"").decode(errors="replace")
    message = parsed(record.key, record.value)
    if message is None:
        # A tombstone: the incident was retired after worker.keep_resolved_hours.
        if record.value is None:
            found.pop(key, None)
        return None
    before = found.get(key)
    if isinstance(message, Recommendation) and _outdated(message, before):
        return None
    found[key] = message
    return message


def _outdated(message: Recommendation, before: Message | None) -> bool:
    # A worker that lost a partition may still publish late; the revision tells, not the order on the topic.
    return isinstance(before, Recommendation) and not is_newer(message, before)


async def recommendations(
    bootstrap: str | Cluster,
    *,
    topic: str = TOPIC,
    group_id: str | None = None,
    only: Callable[[Recommendation], bool] | None = None,
    states: bool = False,
) -> AsyncGenerator[Any, None]:
    """Recommendations as they come, typed and validated.

    Without ``group_id`` it begins with the messages on the compacted topic (open and recently resolved incidents) and goes
    on from there; with one it resumes where that group committed. Messages that are older than
    the last one under their key (by ``revision``) are skipped. ``only`` filters; ``states`` passes state messages too.
    A broker that restarts is waited for. Raises KafkaError if the cluster cannot be reached at the start, or refuses the topic or group.
    """
    cluster = bootstrap if isinstance(bootstrap, Cluster) else Cluster(bootstrap=bootstrap)
    # aclosing: a caller that breaks out of its loop must close the consumer now, not when the generator is collected.
    async with aclosing(followed(cluster, topic, group_id)) as messages:
        async for message in messages:
            if isinstance(message, State):
                if states:
                    yield message
            elif isinstance(message, Recommendation) and (only is None or only(message)):
                yield message


async def followed(
    cluster: Cluster, topic: str, group_id: str | None = None
) -> AsyncGenerator[Message | ReadMark, None]:
    """As :func:`recommendations`, every message, with the marks of :func:`read_forever` between them."""
    latest: dict[str, Message] = {}
    async with aclosing(read_forever(cluster, topic, group_id=group_id)) as records:
        async for record in records:
            message = record if isinstance(record, ReadMark) else _keep(latest, record)
            if message is not None:
                yield message


async def newest_states(
    messages: AsyncGenerator[Message | ReadMark, None],
) -> AsyncGenerator[Message, None]:
    """The messages, without the marks; of the state messages that stood on the topic at the start only each cluster's newest.

    A compacted topic keeps replaced messages for a while: each old state would read as if no worker reported now.
    """
    held: dict[str, State] | None = {}
    async with aclosing(messages):
        async for message in messages:
            if message is ReadMark.CAUGHT_UP:
                for state in (held or {}).values():
                    yield state
                held = None
            elif message is ReadMark.BEGIN:
                held = {}
            elif isinstance(message, State) and held is not None:
                held[message.cluster] = message
            elif not isinstance(message, ReadMark):
                yield message


def is_open(message: Message | None) -> bool:
    """Whether this is an incident that has not been resolved."""
    return isinstance(message, Recommendation) and message.status is not Status.RESOLVED
