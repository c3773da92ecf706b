"""The strategies as assignors for kafka-python (3.0.12 and up), eager and cooperative."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kagent.strategies.plugins.join import Engine, Joined, by_topic
from kagent.strategies.plugins.lags import LagCache

EAGER_VERSION = 0
COOPERATIVE_VERSION = 3
"""Of the subscription message: with owned partitions, generation and rack."""


def kafka_python_assignor(
    strategy: str, lags: LagCache | None = None, clock: Callable[[], float] = time.time, **options: Any
) -> Any:
    """An assignor for one KafkaConsumer; give each consumer its own.

    ``partition_assignment_strategy=[kafka_python_assignor("sticky")]``. All that one consumer names must be eager, or
    all cooperative. ``lags`` is for ``lag`` and ``lag-global``. Raises InputError where the strategy cannot run here.
    """
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    engine = Engine(strategy, lags, clock, **options)
    cooperative = engine.strategy.cooperative

    class Assignor(AbstractPartitionAssignor):
        name = strategy

        def supported_protocols(self) -> list[Any]:
            return [RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER]

        def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
            joined = [as_joined(member, cooperative) for member in members]
            counts = {t: _count(cluster, t) for member in joined for t in member.topics}
            return {
                member: ConsumerProtocolAssignment(EAGER_VERSION, by_topic(pairs), b"")
                for member, pairs in engine.place(counts, joined).items()
            }

        def metadata(self, topics: Iterable[str]) -> Any:
            if not cooperative:
                return ConsumerProtocolSubscription(EAGER_VERSION, list(topics), engine.user_data())
            return cooperative_subscription(topics, b"", engine.owned, engine.generation)

        def on_assignment(self, assignment: Any, generation: int) -> None:
            engine.assigned(((tp.topic, tp.partition) for tp in assignment.partitions()), generation)

    return Assignor()


def cooperative_subscription(
    topics: Iterable[str], user_data: bytes, owned: Iterable[tuple[str, int]], generation: int | None
) -> Any:
    """What a cooperative member sends when it joins. ``generation``: the one in which it was given what it owns."""
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    return ConsumerProtocolSubscription(
        version=COOPERATIVE_VERSION,
        topics=list(topics),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(owned)
        ],
        generation_id=-1 if generation is None else generation,
        rack_id=None,
    )


def as_joined(member: Any, cooperative: bool) -> Joined:
    """A member as its JoinGroup request shows it."""
    subscription = member.metadata
    if not cooperative:
        return Joined(
            member.member_id, tuple(subscription.topics), subscription.user_data, member.group_instance_id
        )
    owned = tuple((tp.topic, p) for tp in subscription.owned_partitions or () for p in tp.partitions)
    generation = subscription.generation_id
    return Joined(
        member.member_id,
        tuple(subscription.topics),
        subscription.user_data,
        member.group_instance_id,
        subscription.rack_id or None,
        owned,
        # −1 in the subscription's field stands for none (ConsumerProtocolSubscription.json).
        None if generation is None or generation < 0 else generation,
    )


def _count(cluster: Any, topic: str) -> int:
    """Partitions of a topic; none while its metadata is not there (the group joins again when it is)."""
    partitions = cluster.partitions_for_topic(topic)
    return max(partitions) + 1 if partitions else 0
