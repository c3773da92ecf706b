"""The only place that uses attributes of aiokafka which are not part of its public interface.

Each function says why the public interface is not enough. ``CHECKED_VERSIONS`` lists the releases for which
``tests/kafka/test_aiokafka_internals.py`` confirmed that the attributes exist and do what is needed here; the test fails
when another release is installed, so that an upgrade is a decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer

CHECKED_VERSIONS = ("0.14.0",)


async def partitions_of(consumer: AIOKafkaConsumer, topic: str) -> set[int]:
    """The topic's partition numbers, once the client's metadata has the topic.

    ``AIOKafkaConsumer.partitions_for_topic`` answers from the cache and returns None for a topic that has just been
    created or was not subscribed; this waits for the next metadata response instead.
    """
    found: set[int] = await consumer._client._wait_on_metadata(topic)
    return found


async def all_topics(consumer: AIOKafkaConsumer) -> Any:
    """Metadata of every topic (``aiokafka.cluster.ClusterMetadata``).

    A metadata request that names a missing topic makes a broker with ``auto.create.topics.enable=true`` create it; a
    request for all topics does not. https://kafka.apache.org/documentation/#brokerconfigs_auto.create.topics.enable
    """
    return await consumer._client.fetch_all_metadata()


async def refreshed_topics(consumer: AIOKafkaConsumer) -> Any:
    """The client's metadata after a new request, in place of its copy, which is up to ``metadata_max_age_ms`` old."""
    await consumer._client.force_metadata_update()
    return consumer._client.cluster


async def close_without_commit(consumer: AIOKafkaConsumer) -> None:
    """End the consumer's tasks and connections when ``stop`` does not return.

    ``GroupCoordinator.close`` waits for its coordination task, whose last commit is repeated until a coordinator takes it;
    while it closes it no longer looks for a coordinator, so that commit never ends once the coordinator is gone.
    Heartbeats and the offset refresh end first: both would use the connections that are closed last.
    """
    coordinator, fetcher = consumer._coordinator, consumer._fetcher
    if consumer._group_id is not None and coordinator is not None:
        await coordinator._stop_heartbeat_task()
        await coordinator._stop_commit_offsets_refresh_task()
    if fetcher is not None:
        # Fetcher.close ends at the first of these tasks that is cancelled while it waits to try again.
        tasks = [fetcher._fetch_task, *fetcher._pending_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    await consumer._client.close()


def group_of(consumer: Any, default: str | None = None) -> str | None:
    """The consumer's ``group_id``, for which it has no public attribute; ``default`` if it has no such attribute at all."""
    group: str | None = getattr(consumer, "_group_id", default)
    return group


# The consumers below belong to the application that follows recommendations, which chooses the release of aiokafka.
# Everything is read with a default, so that a release without an attribute disables following and breaks nothing.


def member_identity(consumer: Any) -> tuple[str | None, str]:
    """``group.instance.id`` and ``client.id``, by which a recommendation names the member."""
    return getattr(consumer, "_group_instance_id", None), getattr(consumer._client, "_client_id", "")


def local_address(consumer: Any) -> str | None:
    """The local IP address of the connection to the group's coordinator, else of any connection.

    It is what the broker writes into the group as the member's host if no address translation lies between.
    """
    connections: Mapping[Any, Any] = getattr(consumer._client, "_conns", {})
    coordinator = getattr(consumer._coordinator, "coordinator_id", None)
    ranked = sorted(connections.items(), key=lambda item: (item[0][0] != coordinator, -int(item[0][1])))
    for _, connection in ranked:
        writer = getattr(connection, "_writer", None)
        address = writer.get_extra_info("sockname") if writer is not None else None
        if address:
            return str(address[0])
    return None


def generation(consumer: Any) -> int | None:
    """The coordinator's generation; None before the first join."""
    found = getattr(consumer._coordinator, "generation", None)
    return found if isinstance(found, int) and found >= 0 else None


def rejoin_request(consumer: Any) -> Callable[[], object] | None:
    """What makes the consumer join its group again, to be called in its own event loop; None if there is no such method.

    Java's consumer has ``enforceRebalance`` for this (KIP-568); aiokafka has no public counterpart.
    """
    found: Callable[[], object] | None = getattr(consumer._coordinator, "request_rejoin", None)
    return found
