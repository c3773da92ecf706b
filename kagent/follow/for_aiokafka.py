"""The follower as an assignor for aiokafka.

aiokafka tells an assignor neither client nor generation, and has no public way to ask for a rebalance: both are taken
from the consumer's coordinator, guardedly; where a version of it has them no more, nothing is followed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kagent.follow.follower import Follower, partition_counts
from kagent.follow.java_host import java_host
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
        client_id = getattr(self.consumer._client, "_client_id", "")
        return getattr(self.consumer, "_group_instance_id", None), client_id, self._host()

    def _host(self) -> str | None:
        """The local address of the connection to the coordinator, else of any."""
        connections: Mapping[Any, Any] = getattr(self.consumer._client, "_conns", {})
        coordinator = getattr(self.consumer._coordinator, "coordinator_id", None)
        ranked = sorted(connections.items(), key=lambda item: (item[0][0] != coordinator, -int(item[0][1])))
        for _, connection in ranked:
            writer = getattr(connection, "_writer", None)
            address = writer.get_extra_info("sockname") if writer is not None else None
            if address:
                return java_host(address[0])
        return None

    def generation(self) -> int | None:
        """The coordinator's generation."""
        generation = getattr(self.consumer._coordinator, "generation", None)
        return generation if isinstance(generation, int) and generation >= 0 else None

    def rejoin(self) -> None:
        """Have the coordinator join again, in the consumer's own loop."""
        request = getattr(self.consumer._coordinator, "request_rejoin", None)
        if request is None:
            log.warning("this version of aiokafka cannot be asked to rejoin")
            return
        try:
            self.loop.call_soon_threadsafe(request)
        except RuntimeError:
            log.debug("the consumer's event loop has ended")


class AiokafkaFollower(Follower):
    """``assignor``: for the consumer's ``partition_assignment_strategy``; ``of``: the block in which it follows."""

    def __init__(self, bootstrap: str | Cluster, group: str, cluster: str = "main", **options: Any) -> None:
        super().__init__(bootstrap, group, cluster, **options)
        self.assignor = _assignor(self)

    @asynccontextmanager
    async def of(self, consumer: Any) -> AsyncIterator[None]:
        """While the block runs, recommendations are read for this consumer; start the consumer inside."""
        self.check_group(getattr(consumer, "_group_id", self.rules.group))
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
                member: ConsumerProtocolMemberAssignment(VERSION, by_topic(pairs), data)
                for member, pairs in placed.items()
            }

        def metadata(self, topics: Iterable[str]) -> Any:
            return ConsumerProtocolMemberMetadata(VERSION, list(topics), follower.user_data())

        def on_assignment(self, assignment: Any) -> None:
            pairs = [(tp.topic, tp.partition) for tp in assignment.partitions()]
            client = follower.client
            follower.assigned(pairs, client.generation() if client else None, assignment.user_data)

    return Assignor()
