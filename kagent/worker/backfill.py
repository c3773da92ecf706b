"""A stretch of the events topic, read again beside the worker's own consumer.

Faust can drop messages that it fetched while its tables were still being recovered, and goes on behind them. What the
worker then misses still stands in the topic, so it is read from there, in order, before the message that showed the gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from kagent.kafka.consumer import consumer
from kagent.settings import Cluster

# Longer than a leader election; shorter, one slow broker would cost a replay of the whole source.
WITHIN = 60.0
"""Seconds for each further batch."""


@dataclass(eq=False)
class Reread:
    """A message that Faust passed over, as far as it must be acknowledged to Faust.

    Faust commits the longest run of acknowledged offsets: without this one it would commit none behind it until the next rebalance.
    """

    tp: Any
    offset: int
    acked: bool = False

    @property
    def topic(self) -> str:
        return str(self.tp.topic)

    def ack(self, consumer: Any) -> None:
        """Acknowledge it, as Faust's own message would."""
        consumer.ack(self)


async def stretch(
    cluster: Cluster, topic: str, partition: int, start: int, end: int
) -> AsyncGenerator[Any, None]:
    """The messages (aiokafka's records) in [start, end) that the partition still has, in order; joins no group.

    Raises TimeoutError where no more of them come for a minute, and the client's own errors.
    """
    place = TopicPartition(topic, partition)
    async with consumer(cluster, auto_offset_reset="earliest") as reader:
        await reader.start()
        reader.assign([place])
        reader.seek(place, start)
        while await reader.position(place) < end:
            async with asyncio.timeout(WITHIN):
                # An empty answer is not the end of the log: the message at `end` has been handed out already.
                while not (found := (await reader.getmany(place, timeout_ms=1000)).get(place, [])):
                    pass
            for record in found:
                if record.offset < end:
                    yield record
