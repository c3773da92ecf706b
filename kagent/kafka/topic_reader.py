"""One way to read a topic of kagent's own: what is on it now, or that and everything that follows, for ever.

Readers without a group assign themselves every partition, so that each sees the whole topic and none moves another's offsets.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError, KafkaConnectionError, TopicAuthorizationFailedError
from aiokafka.errors import KafkaError as ClientError

from kagent.errors import KafkaError
from kagent.kafka.aiokafka_internals import partitions_of
from kagent.kafka.consumer import consumer, start
from kagent.retry import pause_s
from kagent.settings import Cluster

log = logging.getLogger("kagent.kafka")
VISIBLE_WITHIN_S = 5.0
"""A broker learns of a new topic from the controller's metadata log, a moment after the topic was created."""
REFUSED = (TopicAuthorizationFailedError, GroupAuthorizationFailedError)


class ReadMark(Enum):
    """What stands between the records."""

    BEGIN = auto()
    """Reading begins, or begins again after an interruption."""
    CAUGHT_UP = auto()
    """Here the topic ended when reading began."""


def unreadable(topic: str, cluster: Cluster, error: Exception) -> KafkaError:
    """The sentence for a topic that cannot be read; an unreachable cluster and a refused topic need different action."""
    if isinstance(error, KafkaConnectionError):
        return KafkaError(
            f"The cluster at {cluster.bootstrap} cannot be reached: check the address and that a broker listens."
        )
    return KafkaError(f"The topic {topic} at {cluster.bootstrap} cannot be read ({error}).")


async def wait_until_visible(reader: AIOKafkaConsumer, topic: str) -> None:
    """Returns when a broker lists the topic. Raises KafkaError after VISIBLE_WITHIN_S."""
    until = time.monotonic() + VISIBLE_WITHIN_S
    while topic not in await reader.topics():
        if time.monotonic() > until:
            raise KafkaError(
                f"The topic {topic} does not exist or may not be read: run `kagent topics`, or ask for READ."
            )
        await asyncio.sleep(0.2)


async def assign_all(
    reader: AIOKafkaConsumer, topic: str, places: Mapping[int, int] = MappingProxyType({})
) -> dict[TopicPartition, int]:
    """Assign every partition, at its start or at its offset in ``places`` (partition → offset); returns the log ends.

    Raises KafkaError, or aiokafka's errors.
    """
    await wait_until_visible(reader, topic)
    assigned = [TopicPartition(topic, p) for p in await partitions_of(reader, topic)]
    reader.assign(assigned)
    # Without a group there is no committed offset; where aiokafka would begin hangs on auto_offset_reset.
    await reader.seek_to_beginning(*assigned)
    for tp in assigned:
        if tp.partition in places:
            reader.seek(tp, places[tp.partition])
    # Asked after the seek: what arrives from now on belongs to the records that follow.
    ends: dict[TopicPartition, int] = await reader.end_offsets(assigned)
    return ends


PROMPT = {"fetch_max_wait_ms": 50}
"""Options of a consumer that reads what is there and ends: a broker answers requests of one connection in order, so that log
ends would be reported only after the first fetch of an empty partition has waited its 500 ms."""


async def standing(reader: AIOKafkaConsumer, topic: str) -> AsyncGenerator[Any, None]:
    """The records that are on the topic now; the consumer is then positioned behind them, without a group."""
    ends = await assign_all(reader, topic)
    async for record in up_to(reader, ends):
        yield record


async def up_to(reader: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> AsyncGenerator[Any, None]:
    """Records until every partition's position has reached its end.

    Positions are compared, not offsets of records: the last offsets before a log end may be compacted away or be control
    records of a transaction, which the consumer skips without returning anything.
    """
    while any([await reader.position(tp) < end for tp, end in ends.items()]):
        for records in (await reader.getmany(timeout_ms=500)).values():
            for record in records:
                yield record


async def read_forever(
    cluster: Cluster,
    topic: str,
    *,
    group_id: str | None = None,
    resume: bool = True,
    patient: bool = False,
) -> AsyncGenerator[Any, None]:
    """ReadMark.BEGIN, every record of the topic from its start, ReadMark.CAUGHT_UP, and the records that follow, until it is closed.

    Use it within ``contextlib.aclosing``, so that its consumer is closed at once.

    :param group_id: resume where this group committed; no marks then.
    :param resume: after an interruption, go on from the last record; otherwise begin at the topic's start again. A tombstone is
        compacted away after ``delete.retention.ms``: a reader that must miss none compares with a fresh start.
    :param patient: retry every error of the client, from the first attempt on. Otherwise KafkaError is raised for what goes
        wrong at the start, and for a topic or group to which access is refused.
    """
    places: dict[int, int] = {}
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
                if group_id is not None:
                    await wait_until_visible(reader, topic)
                    # Subscribed, not assigned: the members of the group share the partitions.
                    reader.subscribe([topic])
                    begun = True
                else:
                    ends = await assign_all(reader, topic, places if resume else {})
                    begun = True
                    yield ReadMark.BEGIN
                    async for record in up_to(reader, ends):
                        places[record.partition] = record.offset + 1
                        yield record
                    failures = 0
                    yield ReadMark.CAUGHT_UP
                async for record in reader:
                    # A record is proof of a working connection: the next back-off begins small.
                    failures, places[record.partition] = 0, record.offset + 1
                    yield record
                return
        except (ClientError, KafkaError) as error:
            # Misconfigured, or no such topic: nothing that another attempt would mend.
            if isinstance(error, KafkaError) and not begun:
                raise
            if not patient and (not begun or isinstance(error, REFUSED)):
                raise unreadable(topic, cluster, error) from error
            log.warning("%s cannot be read (%s); trying again", topic, error)
        failures += 1
        await asyncio.sleep(pause_s(failures))
