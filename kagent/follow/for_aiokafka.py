"""The follower as an assignor for aiokafka.

aiokafka passes an assignor neither the client nor the generation, and has no public call for a rebalance. All three come
from :mod:`kagent.kafka.aiokafka_internals`; if a release of aiokafka lacks one of them, nothing is followed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kagent.follow.follower import Follower, partition_counts
from kagent.follow.host_address import java_host
from kagent.kafka import aiokafka_internals
from kagent.settings import Cluster
from kagent.strategies.plugins.for_aiokafka import VERSION
from kagent.strategies.plugins.join import Joined, by_topic

log = logging.getLogger("kagent.follow")


class AiokafkaClient:
    """An AIOKafkaConsumer as its follower sees it."""

    def __init__(self, consumer: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.consumer, self.loop = consumer, loop

    def name(self) -> tuple[str | None, str, str | None]:
        """Instance id, client id and host."""
        address = aiokafka_internals.local_address(self.consumer)
        return *aiokafka_internals.member_identity(self.consumer), java_host(address) if address else None

    def generation(self) -> int | None:
        """The coordinator's generation."""
        return aiokafka_internals.generation(self.consumer)

    def rejoin(self) -> None:
        """Have the coordinator join again, in the consumer's own loop."""
        request = aiokafka_internals.rejoin_request(self.consumer)
        if request is None:
            log.warning("this version of aiokafka cannot be asked to rejoin")
            return
        try:
            self.loop.call_soon_threadsafe(request)
        except RuntimeError:
            log.debug("the consumer's event loop has ended")


class AiokafkaFollower(Follower):
    """``assignor``: for the consumer's ``partition_assignment_strategy``; ``of``: the block in which it follows."""

    eager_only = "aiokafka"

    def __init__(self, bootstrap: str | Cluster, group: str, cluster: str = "main", **options: Any) -> None:
        super().__init__(bootstrap, group, cluster, **options)
        self.assignor = _assignor(self)

    @asynccontextmanager
    async def of(self, consumer: Any) -> AsyncIterator[None]:
        """While the block runs, recommendations are read for this consumer; start the consumer inside."""
        self.check_group(aiokafka_internals.group_of(consumer, self.rules.group))
        self.client = AiokafkaClient(consumer, asyncio.get_running_loop())
        self.reader.start()
        try:
            yield
        finally:
            self.client = None
            await asyncio.to_thread(self.reader.stop)


def aiokafka_follower(
    bootstrap: str | Cluster, group: str, cluster: str = "main", **options: Any
) -> AiokafkaFollower:
    """A follower for one AIOKafkaConsumer; give each consumer its own.

    ``bootstrap``: of the cluster that holds kagent's topics; ``cluster``: the name under which kagent watches the group's
    cluster. Options: ``apply`` (False: a dry run), ``strategy`` (the built-in assignor, eager), ``asking``
    (``Asking(cooldown, per_day)``), ``host`` (as the broker sees it, behind address translation), ``prefix`` of kagent's
    topics, ``max_age`` in seconds. Raises InputError for a strategy that cannot run here.
    """
    return AiokafkaFollower(bootstrap, group, cluster, **options)


def _assignor(follower: Follower) -> Any:
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from aiokafka.coordinator.protocol import (
        ConsumerProtocolMemberAssignment,
        ConsumerProtocolMemberMetadata,
    )

    class Assignor(AbstractPartitionAssignor):
        name = follower.protocol

        def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
            joined = [
                Joined(member_id, tuple(metadata.subscription), metadata.user_data)
                for member_id, metadata in members.items()
            ]
            placed, data = follower.place(partition_counts(cluster, joined), joined)
            return {
                member: ConsumerProtocolMemberAssignment(VERSION, by_topic(pairs), data[member])
                for member, pairs in placed.items()
            }

        def metadata(self, topics: Iterable[str]) -> Any:
            return ConsumerProtocolMemberMetadata(VERSION, list(topics), follower.user_data())

        def on_assignment(self, assignment: Any) -> None:
            pairs = [(tp.topic, tp.partition) for tp in assignment.partitions()]
            client = follower.client
            follower.assigned(pairs, client.generation() if client else None, assignment.user_data)

    return Assignor()
