"""The strategies as assignors for aiokafka.

aiokafka knows the eager protocol only (its issue 1126), tells an assignor neither generation nor instance id, and waits
for the assignor in its event loop. The generation travels in the assignment's own user data: the leader counts on from
the newest that any member remembers.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kagent.errors import InputError
from kagent.strategies.plugins.join import Engine, Joined, by_topic
from kagent.strategies.plugins.lags import LagCache
from kagent.strategies.plugins.userdata import NO_GENERATION

# aiokafka writes version 0 of both messages, which has neither owned partitions nor a generation.
VERSION = 0


def aiokafka_assignor(
    strategy: str, lags: LagCache | None = None, clock: Callable[[], float] = time.time, **options: Any
) -> Any:
    """An assignor for one AIOKafkaConsumer; give each consumer its own.

    ``partition_assignment_strategy=[aiokafka_assignor("sticky")]``. Name one assignor: with several, aiokafka joins once
    for each. ``lags`` is for ``lag`` and ``lag-global``. Raises InputError where the strategy cannot run here.
    """
    engine = Engine(strategy, lags, clock, **options)
    if engine.strategy.cooperative:
        raise InputError(
            f"{strategy} needs the cooperative protocol, which aiokafka does not speak; take sticky"
        )
    return assignor_of(engine, strategy)


def assignor_of(engine: Engine, protocol: str) -> Any:
    """An assignor for aiokafka that places as ``engine`` does; ``protocol`` is the name its group agrees on."""
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from aiokafka.coordinator.protocol import (
        ConsumerProtocolMemberAssignment,
        ConsumerProtocolMemberMetadata,
    )

    class Assignor(AbstractPartitionAssignor):
        name = protocol

        def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
            joined = [
                Joined(member_id, tuple(metadata.subscription), metadata.user_data)
                for member_id, metadata in members.items()
            ]
            counts = {t: _count(cluster, t) for member in joined for t in member.topics}
            # Members send back what they were given, so the newest number tells who held a partition last, and a member that
            # missed a rebalance is known by its older one.
            generation = struct.pack(">i", engine.next_generation(joined))
            return {
                member: ConsumerProtocolMemberAssignment(VERSION, by_topic(pairs), generation)
                for member, pairs in engine.place(counts, joined).items()
            }

        def metadata(self, topics: Iterable[str]) -> Any:
            return ConsumerProtocolMemberMetadata(VERSION, list(topics), engine.user_data())

        def on_assignment(self, assignment: Any) -> None:
            data = assignment.user_data
            generation = struct.unpack(">i", data)[0] if data and len(data) == 4 else NO_GENERATION
            engine.assigned(((tp.topic, tp.partition) for tp in assignment.partitions()), generation)

    return Assignor()


def _count(cluster: Any, topic: str) -> int:
    """Partitions of a topic; none while its metadata is not there (the group joins again when it is)."""
    partitions = cluster.partitions_for_topic(topic)
    return max(partitions) + 1 if partitions else 0
