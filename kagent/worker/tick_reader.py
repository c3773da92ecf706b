"""Ticks: sent to every owned partition, and judged by the partition's owner when they come back.

They go through Kafka so that a partition's ticks and events have one owner. Summaries of ticks go to partition 0 of the same
topic: its owner adds them up into the state message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson

from kagent.contract import admission
from kagent.contract.admission import Refused
from kagent.worker.dead_letters import DeadLetters
from kagent.worker.engine import GroupEngine
from kagent.worker.outbox import Outbox
from kagent.worker.ownership import Ownership
from kagent.worker.status import Summary


class TickReader:
    """``topic`` is Faust's topic of ticks; ``sample`` reads the log ends of all clusters."""

    def __init__(
        self,
        engine: GroupEngine,
        ownership: Ownership,
        outbox: Outbox,
        dead_letters: DeadLetters,
        topic: Any,
        sample: Callable[[], Awaitable[None]],
    ) -> None:
        self.engine, self.ownership, self.outbox = engine, ownership, outbox
        self.dead_letters, self.topic, self.sample = dead_letters, topic, sample

    async def send(self) -> None:
        """Ask for a judgement of every partition that is ours."""
        # The assignment is being changed: the partitions of a moment ago may belong to another worker.
        if self.ownership.app.rebalancing:
            return
        for partition in self.ownership.owned():
            await self._send(partition)
        await self.ownership.let_go()

    async def send_first(self, partition: int) -> None:
        """Ask for a judgement as soon as a loaded partition's progress is fresh: the groups of a dead worker have waited enough.

        To be called after each event. A tick sent at the load would find nothing but what waited since the death.
        """
        if partition in self.ownership.unseen and self.engine.hears(partition):
            self.ownership.unseen.discard(partition)
            await self._send(partition)

    async def _send(self, partition: int) -> None:
        # As of the sending: a tick that waited in the topic is known to be late when it comes.
        value = orjson.dumps({"type": "tick", "time": self.engine.now})
        await self.topic.send(value=value, partition=partition)

    async def take(self, message: Any) -> None:
        """A tick: judge the partition. A summary: take note of it."""
        try:
            tick = self._admitted(message.value)
        except Refused as error:
            await self.dead_letters.refuse("tick", message, error)
            return
        if isinstance(tick, admission.SummaryTick):
            values = msgspec.structs.asdict(tick.summary)
            # As of now, not refused: a worker's clock may be ahead. A wrong record would hide for ever that no worker judges the partition.
            (values["time"],) = admission.not_ahead([tick.summary.time], self.engine.now)
            self.engine.summarised(Summary.from_json(values))
        # Ownership is asked again: the tick was sent before a rebalance that it came after.
        elif tick is not None and self._timely(tick.time) and message.partition in self.ownership.owned():
            await self._judge(message.partition, tick.time)

    def _admitted(self, value: bytes | None) -> admission.JudgeTick | admission.SummaryTick | None:
        tick, settings = admission.tick(value), self.engine.settings
        if isinstance(tick, admission.SummaryTick):
            # No worker sends another that would replace it: its groups would be counted for ever.
            if tick.summary.partition >= settings.topics.partitions:
                raise Refused("out_of_bounds", f"the events topic has no partition {tick.summary.partition}")
            # A worker whose settings were changed before ours may send it.
            if tick.summary.cluster not in settings.clusters:
                self.engine.refused["tick", "unknown_cluster"] += 1
                return None
        return tick

    def _timely(self, time_ms: int) -> bool:
        """Whether a tick is of now: not left over from before a standstill, nor from a clock that was ahead."""
        return abs(self.engine.now - time_ms) <= max(15_000, 2_000 * self.engine.settings.worker.tick)

    async def _judge(self, partition: int, time_ms: int) -> None:
        await self.ownership.load()
        if not self.ownership.built(partition):
            return
        if self.ownership.not_sampled:  # log ends in rows are old: read them before anything is judged
            self.ownership.not_sampled = False
            await self.sample()
        self.ownership.adopt_published(partition)
        summaries = await self.engine.tick(partition, time_ms)
        if self.outbox.urgent(partition):
            await self.outbox.flush(partition)  # messages of this tick are seen now, with their rows
        clusters = self.engine.settings.clusters
        # Groups of a cluster that was renamed are kept until their incidents have ended, and no state message tells of them.
        for summary in (s for s in summaries if s.cluster in clusters):
            value = orjson.dumps({"type": "summary", "summary": summary.to_json()})
            # Not in the transaction: a summary that is lost is made up for at the next tick.
            await self.topic.send(value=value, partition=0)
        # Last: it asks coordinators, which may be away, about groups whose commits this tick did not believe.
        await self.ownership.rebuild()
