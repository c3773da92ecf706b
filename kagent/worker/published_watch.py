"""Whether the recommendations topic still holds what was published: somebody may cut it short, or delete it and make it anew."""

from __future__ import annotations

import logging

from aiokafka.errors import KafkaError as ClientError

from kagent.client.client import current
from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Key
from kagent.settings import Cluster
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.ownership import Ownership

log = logging.getLogger("kagent.worker")
LOOK_EVERY_S = 30.0
"""Two small requests each time; for this long a subscriber that begins to read may miss an open incident."""


class PublishedWatch:
    """Publishes the open incidents of our groups again where the topic has lost them."""

    def __init__(self, engine: GroupEngine, ownership: Ownership, home: Cluster) -> None:
        self.engine, self.ownership, self.home = engine, ownership, home
        self.admin, self.topic = Admin(home, deadline=10), engine.settings.topics.recommendations
        self._begins: tuple[str, dict[Key, int]] | None = None
        """The topic's id and log starts. Compaction leaves a log start where it is; only what deletes records moves it."""

    async def look(self) -> None:
        """Compare with the last look, and make good what is missing. A cluster that is away is asked at the next one."""
        try:
            begins = await in_thread(self._ask)
            if begins == self._begins:
                return
            whole = await self._restate()
        except (KafkaError, ClientError, TimeoutError) as error:
            log.debug("cannot tell whether %s lost records: %s", self.topic, error)
            return
        self._begins = begins if whole else None

    def _ask(self) -> tuple[str, dict[Key, int]]:
        found = self.admin.topics([self.topic]).get(self.topic)
        if found is None:
            raise KafkaError(f"The topic {self.topic} is missing, or may not be seen: run `kagent topics`.")
        return found.id, dict(self.admin.log_start([(self.topic, p) for p in range(found.partitions)]).found)

    async def _restate(self) -> bool:
        # Before the read: what is published while it goes on is no loss.
        asked = self.engine.now
        published = await current(self.home, self.topic)
        mine = [p for p in sorted(self.ownership.owned()) if self.ownership.built(p)]
        whole = [self.engine.restate(partition, published, asked) for partition in mine]
        return all(whole)
