"""A member that gets nothing: it joins a KIP-848 group, which moves the group's epoch, so that the assignor is asked anew.

It subscribes to a topic that does not exist. An empty subscription would not move the epoch; a static member would stay
until its session ends. Its leaving moves the epoch once more, and the assignor then keeps what it has given. One whose
process was killed leaves when its session ends; until then it holds nothing, and no plan is checked against the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer

from kagent.apply.preconditions import CLIENT_ID
from kagent.kafka.clients import confluent
from kagent.settings import Cluster


class Nudge:
    """The member while it is in the group; ``poll`` it, and read ``problem`` if nothing comes."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.problem: str | None = None

    def poll(self, seconds: float) -> None:
        """Let the client do its part for at most this long."""
        message = self.consumer.poll(seconds)
        if message is not None and message.error() is not None:
            self.problem = message.error().str()


@contextmanager
def nudge(cluster: Cluster, group: str, topic: str) -> Iterator[Nudge]:
    """In the group while the block runs. ``topic``: one that does not exist."""
    consumer = Consumer(
        confluent(
            cluster,
            **{
                "group.id": group,
                "group.protocol": "consumer",
                "client.id": CLIENT_ID,
                "enable.auto.commit": False,
                "allow.auto.create.topics": False,
                "log_level": 0,
            },
        )
    )
    try:
        consumer.subscribe([topic])
        yield Nudge(consumer)
    finally:
        consumer.close()
