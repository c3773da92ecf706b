"""One way to read topics of kagent's own: what is on them now, or that and everything that follows, for ever.

Readers without a group assign themselves every partition, so that each sees the whole topic and none moves another's offsets.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError, KafkaConnectionError, TopicAuthorizationFailedError
from aiokafka.errors import KafkaError as ClientError

from kagent.errors import KafkaError, mendable
from kagent.kafka.aiokafka_internals import partitions_of, refreshed_topics
from kagent.kafka.consumer import consumer, start
from kagent.kafka.reach import unreachable
from kagent.retry import pause_s
from kagent.settings import Cluster
from kagent.text import in_words

log = logging.getLogger("kagent.kafka")
VISIBLE_WITHIN_S = 5.0
"""A broker learns of a new topic from the controller's metadata log, a moment after the topic was created."""
LISTED_WITHIN_S = 0.5
"""For one who looks once: `kagent topics` ends only when brokers list what it created, and a person waits where kagent was never set up."""
CONFIRM_EVERY_S = 5.0
"""A topic that was widened or made anew is noticed within this time; one metadata and one offsets request each."""
ANSWER_WITHIN_S = 15.0
POLL_MS = 500
REFUSED = (TopicAuthorizationFailedError, GroupAuthorizationFailedError)


class ReadMark(Enum):
    """What stands between the records."""

    BEGIN = auto()
    """Reading begins, or begins again after an interruption."""
    CAUGHT_UP = auto()
    """Here the topic ended when reading began."""


@dataclass(frozen=True, slots=True)
class UpToDate:
    """Every record was read that was on the topics at ``asked_s``, in seconds since the epoch."""

    asked_s: float


Mark = ReadMark | UpToDate


def unreadable(topic: str, cluster: Cluster, error: Exception) -> KafkaError:
    """The sentence for a topic that cannot be read; an unreachable cluster and a refused topic need different action."""
    if isinstance(error, KafkaConnectionError):
        return KafkaError(unreachable(cluster.bootstrap))
    return KafkaError(f"The topic {topic} at {cluster.bootstrap} cannot be read ({in_words(error)}).")


async def wait_until_visible(
    reader: AIOKafkaConsumer, topic: str, within_s: float = VISIBLE_WITHIN_S
) -> None:
    """Returns when a broker lists the topic. Raises KafkaError after ``within_s``."""
    until = time.monotonic() + within_s
    while topic not in await reader.topics():
        if time.monotonic() > until:
            raise KafkaError(
                f"The topic {topic} does not exist or may not be read: run `kagent topics`, or ask for READ."
            )
        await asyncio.sleep(0.2)


async def assign_all(
    reader: AIOKafkaConsumer,
    *topics: str,
    places: Mapping[TopicPartition, int] = MappingProxyType({}),
    within_s: float = VISIBLE_WITHIN_S,
) -> dict[TopicPartition, int]:
    """Assign every partition, at its start or at its offset in ``places``; returns the log ends.

    Raises KafkaError, or aiokafka's errors.
    """
    for topic in topics:
        await wait_until_visible(reader, topic, within_s)
    assigned = [TopicPartition(t, p) for t in topics for p in sorted(await partitions_of(reader, t))]
    reader.assign(assigned)
    # Without a group there is no committed offset; where aiokafka would begin hangs on auto_offset_reset.
    await reader.seek_to_beginning(*assigned)
    # Asked after the seek: what arrives from now on belongs to the records that follow.
    ends: dict[TopicPartition, int] = await reader.end_offsets(assigned)
    for tp in assigned:
        if places.get(tp, ends[tp] + 1) <= ends[tp]:  # a place beyond the end is one on a topic of before
            reader.seek(tp, places[tp])
    return ends


PROMPT = {"fetch_max_wait_ms": 50}
"""Options of a consumer that reads what is there and ends: a broker answers requests of one connection in order, so that log
ends would be reported only after the first fetch of an empty partition has waited its 500 ms."""
ONCE = {**PROMPT, "request_timeout_ms": int(ANSWER_WITHIN_S * 1000 / 5)}
"""For one who waits for the whole. It takes five answers to the first record (versions, metadata, versions of the leader, log ends, the
records): a broker that takes longer for one is too late in any case, and one that does not answer leaves time for another."""


async def standing(
    reader: AIOKafkaConsumer, topic: str, within_s: float = VISIBLE_WITHIN_S
) -> AsyncGenerator[Any, None]:
    """The records that are on the topic now; the consumer is then positioned behind them, without a group."""
    ends = await assign_all(reader, topic, within_s=within_s)
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


class _MadeAnew(KafkaError):
    """A topic of the same name is another one now: places on the old one mean nothing."""


async def _followed(
    reader: AIOKafkaConsumer, starts: Mapping[TopicPartition, int], reached: dict[TopicPartition, int]
) -> AsyncGenerator[Any, None]:
    """The records that follow, and UpToDate whenever all were read; KafkaError once a topic is not what was assigned.

    ``starts``: where the partitions began then; ``reached``: how far each has been read.
    """
    confirmed = float("-inf")
    while True:
        # Before the poll, which waits where nothing comes: who reads once has what there is by now.
        if time.monotonic() - confirmed >= CONFIRM_EVERY_S:
            asked_s = time.time()
            if await asyncio.wait_for(_at_end(reader, starts, reached), ANSWER_WITHIN_S):
                confirmed = time.monotonic()
                yield UpToDate(asked_s)
        for tp, records in (await reader.getmany(timeout_ms=POLL_MS)).items():
            for record in records:
                if (
                    record.offset < reached[tp]
                ):  # the client found its place beyond the end, and began anew by itself
                    raise _MadeAnew(f"{tp.topic} was made anew")
                reached[tp] = record.offset + 1
                yield record


async def _at_end(
    reader: AIOKafkaConsumer, starts: Mapping[TopicPartition, int], reached: Mapping[TopicPartition, int]
) -> bool:
    assigned, known = reader.assignment(), await refreshed_topics(reader)
    for topic in {tp.topic for tp in assigned}:
        numbers = {tp.partition for tp in assigned if tp.topic == topic}
        if known.partitions_for_topic(topic) != numbers:
            raise KafkaError(f"the partitions of {topic} have changed")
    ends: Mapping[TopicPartition, int] = await reader.end_offsets(assigned)
    positions = {tp: await reader.position(tp) for tp in assigned}
    if any(max(positions[tp], reached[tp]) > end for tp, end in ends.items()):
        raise _MadeAnew("a topic was made anew")
    # Compaction leaves a log's start where it is; only who deletes records moves it, with what stood there.
    begin: Mapping[TopicPartition, int] = await reader.beginning_offsets(assigned)
    if any(begin[tp] > start for tp, start in starts.items()):
        raise KafkaError("records were deleted")
    return all(positions[tp] >= end for tp, end in ends.items())


async def _shared(reader: AIOKafkaConsumer, topics: tuple[str, ...]) -> AsyncGenerator[Any, None]:
    """The records of the partitions that the consumer's group gives it."""
    for topic in topics:
        await wait_until_visible(reader, topic)
    reader.subscribe(list(topics))
    yield ReadMark.BEGIN
    async for record in reader:
        yield record


async def _all(
    reader: AIOKafkaConsumer, topics: tuple[str, ...], places: Mapping[TopicPartition, int]
) -> AsyncGenerator[Any, None]:
    """The records of all partitions from ``places`` on, with the marks."""
    ends = await assign_all(reader, *topics, places=places)
    # Before the records: what is deleted while they are read is noticed too.
    starts: Mapping[TopicPartition, int] = await reader.beginning_offsets(list(ends))
    yield ReadMark.BEGIN
    async for record in up_to(reader, ends):
        yield record
    yield ReadMark.CAUGHT_UP
    async for record in _followed(reader, starts, dict(ends)):
        yield record


async def read_forever(
    cluster: Cluster,
    *topics: str,
    group_id: str | None = None,
    resume: bool = True,
    patient: bool = False,
    confirm: bool = False,
    prompt: bool = False,
) -> AsyncGenerator[Any, None]:
    """ReadMark.BEGIN, every record of the topics from their start, ReadMark.CAUGHT_UP, and the records that follow, until it is
    closed.

    Use it within ``contextlib.aclosing``, so that its consumer is closed at once.

    :param group_id: resume where this group committed; no mark but BEGIN then.
    :param resume: after an interruption, go on from the last record; otherwise begin at the topics' start again. A tombstone is
        compacted away after ``delete.retention.ms``: a reader that must miss none compares with a fresh start.
    :param patient: retry every error that waiting may mend, from the first attempt on: a topic that is missing too. Otherwise KafkaError is raised for what goes
        wrong at the start, and for a topic or group to which access is refused.
    :param confirm: after CAUGHT_UP, pass on UpToDate too, every CONFIRM_EVERY_S at which all that there was has been read.
    :param prompt: for a reader that ends soon: marks come half a second sooner, at the cost of more requests.
    """
    places: dict[TopicPartition, int] = {}
    begun, failures, named = False, 0, " and ".join(topics)
    while True:
        options = {
            "group_id": group_id,
            "enable_auto_commit": group_id is not None,
            **(PROMPT if prompt else {}),
        }
        try:
            async with consumer(cluster, auto_offset_reset="earliest", **options) as reader:
                await start(reader, cluster)
                records = _shared(reader, topics) if group_id else _all(reader, topics, places)
                async with aclosing(records):
                    async for record in records:
                        begun = True
                        # Proof of a working connection: the next back-off begins small.
                        failures = 0 if record is not ReadMark.BEGIN else failures
                        if resume and not isinstance(record, Mark):
                            places[TopicPartition(record.topic, record.partition)] = record.offset + 1
                        if confirm or not isinstance(record, UpToDate):
                            yield record
        except (ClientError, KafkaError, TimeoutError) as error:
            if isinstance(error, KafkaError) and not begun and not (patient and mendable(error)):
                raise
            if not patient and (not begun or isinstance(error, REFUSED)):
                raise unreadable(named, cluster, error) from error
            if isinstance(error, _MadeAnew):
                places.clear()
            log.warning(
                "%s at %s cannot be read (%s); trying again", named, cluster.bootstrap, in_words(error)
            )
        failures += 1
        await asyncio.sleep(pause_s(failures))
