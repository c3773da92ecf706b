"""The mutes topic for commands: which mutes are in effect now, and which change."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing

from aiokafka.errors import KafkaError as ClientError

from kagent.active_mutes import Mutes
from kagent.kafka.consumer import consumer, start
from kagent.kafka.topic_reader import LISTED_WITHIN_S, ONCE, ReadMark, read_forever, standing, unreadable
from kagent.settings import Cluster

log = logging.getLogger("kagent.client")
Take = Callable[[str, bytes | None], None]


async def current_mutes(cluster: Cluster, topic: str) -> Mutes:
    """The mutes on the topic now, expired ones too. Raises KafkaError."""
    found = Mutes()
    try:
        async with consumer(cluster, **ONCE) as reader:
            await start(reader, cluster)
            async for record in standing(reader, topic, LISTED_WITHIN_S):
                _take(found.take, record.key, record.value)
    except ClientError as error:
        raise unreadable(topic, cluster, error) from error
    return found


async def follow_mutes(cluster: Cluster, topic: str, take: Take) -> None:
    """Pass every mute on, from the topic's start, and lift those that the topic no longer has, until cancelled. Raises KafkaError."""
    known, seen = set[bytes | None](), set[bytes | None]()
    async with aclosing(read_forever(cluster, topic, resume=False)) as records:
        async for record in records:
            if record is ReadMark.BEGIN:
                seen = set()
            elif record is ReadMark.CAUGHT_UP:
                for key in known - seen:
                    _take(take, key, None)
                known = seen
            else:
                seen.add(record.key)
                _take(take, record.key, record.value)


def _take(take: Take, key: bytes | None, value: bytes | None) -> None:
    try:
        take((key or b"").decode(errors="replace"), value)
    # One bad record, of another program perhaps, must not end all mutes.
    except ValueError as error:
        log.warning("a mute under %r cannot be read: %s", key, error)
