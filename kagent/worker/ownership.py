"""Which partitions of the events topic are ours, and whether their groups are built from their rows yet."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.errors import KafkaError as ClientError

from kagent.client.client import Message, current
from kagent.errors import KagentError
from kagent.kafka.admin import Admin
from kagent.retry import pause_s
from kagent.settings import Cluster
from kagent.worker.engine import GroupEngine, in_thread

log = logging.getLogger("kagent.app")
READY_POLL_S = 0.1
YOUNG_OBJECTS = 10_000
"""New objects before the garbage collector looks at them. A page of 20,000 groups makes 400,000, none of them in a cycle: with Python's 700 a tenth of
its time went into looking (`benchmarks/metrics.py`: 2.07 s of a core, and 1.86)."""


class Ownership:
    """``loaded``: the partitions whose groups are in the engine. ``ready``: whether what is ours has been loaded, be it nothing.

    ``rebuild`` is awaited after each load: it asks for what no row could tell.
    """

    def __init__(
        self, engine: GroupEngine, app: Any, home: Cluster, rebuild: Callable[[], Awaitable[None]]
    ) -> None:
        self.engine, self.app, self.home, self.rebuild = engine, app, home, rebuild
        self.ready = False
        self.loaded: set[int] = set()
        self.recoveries = 0
        self.loaded_at = -1
        """Number of the recovery after which ``loaded`` was built."""
        self.not_sampled = False
        """Whether the log ends have not been read since the partitions were loaded."""
        self.unseen: set[int] = set()
        """Partitions of which nothing fresh has been heard since they were loaded."""
        self._not_adopted: set[int] = set()
        self._published: dict[str, Message] = {}
        self._asked_ms = 0
        self._loading = asyncio.Lock()

    def owned(self) -> set[int]:
        """The partitions of the events topic that are assigned to us now."""
        name = self.engine.settings.topics.events
        return {tp.partition for tp in self.app.consumer.assignment() if tp.topic == name}

    def recovered(self) -> None:
        """Tables were read again: groups are built from them again, also those of partitions that stayed ours."""
        self.recoveries += 1

    def built(self, partition: int) -> bool:
        """Whether this partition's groups are built from the rows of the latest recovery."""
        return partition in self.loaded and self.loaded_at == self.recoveries

    async def load(self) -> None:
        """Build the groups of what is ours now from their rows, unless that is done or recovery has not ended."""
        async with self._loading:
            owned = self.owned()
            if self.app.rebalancing or self.app.in_recovery:
                return  # rows are missing until recovery has ended: what is built of them now would lack groups
            if owned == self.loaded and self.loaded_at == self.recoveries:
                return
            # Compared after the awaits below: a rebalance meanwhile makes what they read somebody else's.
            began = self.recoveries
            asked_ms = self.engine.now
            committed, published = await self._kept() if owned else ({}, {})
            if began != self.recoveries or owned != self.owned():
                return  # a rebalance happened meanwhile: the next owner builds it
            self.engine.load(owned, committed)
            self._published, self._asked_ms = published, asked_ms
            self._not_adopted, self.unseen = set(owned), set(owned)
            self.loaded, self.loaded_at = owned, began
            # Not at once: sampling is slow, and events can be applied without log ends.
            self.not_sampled = True
            self.ready = True
            spare_from_collections()
        # Outside the lock and after the load: it asks coordinators, and needs the entries.
        await self.rebuild()

    async def _kept(self) -> tuple[dict[int, int | None], dict[str, Message]]:
        """Where events are resumed, and what is published: read at every load, the previous owner may have changed both."""
        committed = await in_thread(self.committed)
        return committed, await current(self.home, self.engine.settings.topics.recommendations)

    async def let_go(self) -> None:
        """Take note that nothing is ours, as a spare worker has to: no tick and no event comes that would have it load.

        Until the first rebalance has ended nothing is known.
        """
        if self.recoveries and not self.owned():
            await self.load()

    def adopt_published(self, partition: int) -> None:
        """Once after a load: take what the recommendations topic holds of the partition's groups."""
        if partition in self._not_adopted:
            self._not_adopted.discard(partition)
            self.engine.adopt(partition, self._published)
            self.engine.restate(partition, self._published, self._asked_ms)

    def committed(self) -> dict[int, int | None]:
        """Partition → offset at which the app's group resumes the events topic; None without a commit. Blocking."""
        topics, group = self.engine.settings.topics, self.app.conf.id
        with Admin(self.home, deadline=10) as admin:
            found = admin.committed([group]).get(group, {})
        return {p: found.get((topics.events, p)) for p in range(topics.partitions)}

    async def wait_until_built(self, partition: int) -> bool:
        """Wait until the groups of this partition are built from their rows; false if it is no longer ours.

        An event applied earlier would meet no rows, and put an older one over theirs.
        """
        failures = 0
        while not self.built(partition) and not self.app.should_stop:
            if self.app.rebalancing or self.app.in_recovery:
                await asyncio.sleep(READY_POLL_S)
                continue
            if partition not in self.owned():
                return False
            try:
                await self.load()
            except (KagentError, ClientError, TimeoutError) as error:
                failures += 1
                log.warning("partitions cannot be taken over yet: %s", error)
                await asyncio.sleep(pause_s(failures))
            else:
                await asyncio.sleep(0 if self.built(partition) else READY_POLL_S)
        return self.built(partition)


def spare_from_collections() -> None:
    """Have garbage collections pass over all that lives now, the groups above all; what was spared before and is garbage is freed.

    The groups live until the next rebalance. A full collection that walks them stops everything: of the first scrape of 4,000
    groups it was a third. https://docs.python.org/3/library/gc.html#gc.freeze
    """
    # Without these two, garbage in a cycle would stay for ever: at each rebalance a little more.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
