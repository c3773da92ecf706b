"""The follower as an assignor for kafka-python (3.0.12 and up), eager and cooperative."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kagent.follow.follower import Follower, partition_counts
from kagent.follow.host_address import java_host
from kagent.settings import Cluster
from kagent.strategies.plugins.for_kafka_python import EAGER_VERSION, as_joined, cooperative_subscription
from kagent.strategies.plugins.join import by_topic

log = logging.getLogger("kagent.follow")


class KafkaPythonClient:
    """A KafkaConsumer as its follower sees it."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer

    def name(self) -> tuple[str | None, str, str | None]:
        """Instance id, client id and host."""
        config = self.consumer.config
        return config.get("group_instance_id"), config.get("client_id") or "", self._host()

    def _host(self) -> str | None:
        """The local address of the connection to the coordinator, else of any."""
        coordinator = getattr(self.consumer, "_coordinator", None)
        manager = getattr(coordinator, "_manager", None)
        connections: dict[Any, Any] = getattr(manager, "_conns", {})
        first = getattr(coordinator, "coordinator_id", None)
        for _, connection in sorted(connections.copy().items(), key=lambda item: item[0] != first):
            socket = getattr(getattr(connection, "transport", None), "_sock", None)
            try:
                if socket is not None:
                    return java_host(socket.getsockname()[0])
            except OSError:  # it was closed meanwhile
                continue
        return None

    def generation(self) -> int | None:
        """kafka-python tells the assignor itself."""
        return None

    def rejoin(self) -> None:
        """Have the coordinator join again at the next poll."""
        request = getattr(getattr(self.consumer, "_coordinator", None), "request_rejoin", None)
        if request is None:
            log.warning("this version of kafka-python cannot be asked to rejoin")
            return
        request()


class KafkaPythonFollower(Follower):
    """``assignor``: for the consumer's ``partition_assignment_strategy``; ``of``: the block in which it follows."""

    def __init__(self, bootstrap: str | Cluster, group: str, cluster: str = "main", **options: Any) -> None:
        super().__init__(bootstrap, group, cluster, **options)
        self.assignor = _assignor(self)

    @contextmanager
    def of(self, consumer: Any) -> Iterator[None]:
        """While the block runs, recommendations are read for this consumer; poll inside."""
        self.check_group(consumer.config.get("group_id"))
        self.client = KafkaPythonClient(consumer)
        self.reader.start()
        try:
            yield
        finally:
            self.client = None
            self.reader.stop()


def kafka_python_follower(
    bootstrap: str | Cluster, group: str, cluster: str = "main", **options: Any
) -> KafkaPythonFollower:
    """A follower for one KafkaConsumer; give each consumer its own. Parameters as of ``aiokafka_follower``.

    With ``strategy="cooperative-sticky"`` the group speaks the cooperative protocol: only partitions that move are revoked.
    """
    return KafkaPythonFollower(bootstrap, group, cluster, **options)


def _assignor(follower: Follower) -> Any:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    class Assignor(AbstractPartitionAssignor):
        name = follower.protocol

        def supported_protocols(self) -> list[Any]:
            return [RebalanceProtocol.COOPERATIVE if follower.cooperative else RebalanceProtocol.EAGER]

        def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
            joined = [as_joined(member, follower.cooperative) for member in members]
            placed, data = follower.place(partition_counts(cluster, joined), joined)
            return {
                member: ConsumerProtocolAssignment(EAGER_VERSION, by_topic(pairs), data[member])
                for member, pairs in placed.items()
            }

        def metadata(self, topics: Iterable[str]) -> Any:
            userdata = follower.user_data()
            if follower.cooperative:
                return cooperative_subscription(topics, userdata, *follower.owned(topics))
            return ConsumerProtocolSubscription(EAGER_VERSION, list(topics), userdata)

        def on_assignment(self, assignment: Any, generation: int) -> None:
            pairs = [(tp.topic, tp.partition) for tp in assignment.partitions()]
            follower.assigned(pairs, generation if generation >= 0 else None, assignment.user_data)

    return Assignor()
