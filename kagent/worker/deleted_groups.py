"""Groups that we know and their cluster does not: they were deleted, or expired, and no event came of it.

The pipeline reads a deletion as a tombstone. Compaction removes tombstones a day after it has seen them (`delete.retention.ms`), so a pipeline that
was away for longer never reads them, and the groups would stay for ever. Their coordinators know.
https://kafka.apache.org/documentation/#topicconfigs_delete.retention.ms
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.text import few, shown
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.groups import Entry
from kagent.worker.ingest_progress import UNKNOWN_SOURCE
from kagent.worker.ownership import Ownership

log = logging.getLogger("kagent.worker")
LOOK_EVERY_S = 60.0
"""One request to each broker. A deletion that the pipeline missed is a day old: a minute more does not matter."""
QUIET_MS = 600_000
"""A group of which something came within this time was not deleted long ago, whatever its coordinator says of it now."""
AT_ONCE = 1_000
"""Groups whose coordinators are asked at one look."""


@dataclass(frozen=True, slots=True)
class Known:
    """A group as it was when its cluster was asked: ``newest``: the last of its records that we had."""

    partition: int
    entry: Entry
    newest: int


class DeletedGroups:
    """``admins``: cluster → who asks it."""

    def __init__(self, engine: GroupEngine, ownership: Ownership, admins: Mapping[str, Admin]) -> None:
        self.engine, self.ownership, self.admins = engine, ownership, admins

    async def look(self) -> None:
        """Forget what no cluster has any more. A cluster that is away is asked at the next look."""
        if not self.ownership.ready:
            return
        for cluster, admin in self.admins.items():
            try:
                await self._look(cluster, admin)
            except (KafkaError, TimeoutError) as error:
                log.debug("whether groups of %s are deleted is not known: %s", cluster, error)

    async def _look(self, cluster: str, admin: Admin) -> None:
        known = self._known(cluster)
        there = set(await in_thread(admin.groups))
        absent = [one for one in known if one.entry.group not in there][:AT_ONCE]
        if not absent:
            return
        # A list lacks the groups of a broker that is away: only a coordinator's own word counts.
        names = [one.entry.group for one in absent]
        described = (await in_thread(admin.described_each, names)).found
        committed = (await in_thread(admin.committed_each, names)).found
        dead = {name for name, found in described.items() if found.group.state == "dead"}
        self._forget(
            [one for one in absent if one.entry.group in dead and committed.get(one.entry.group) == {}]
        )

    def _known(self, cluster: str) -> list[Known]:
        """The groups of which something is left here, where no event of them is still on its way."""
        now, found = self.engine.now, list[Known]()
        for partition in self.ownership.loaded:
            coverage = self.engine.coverage_rows.of(partition)
            found += [
                Known(partition, entry, entry.newest_source)
                for entry in self.engine.index.entries(partition).values()
                if entry.cluster == cluster
                and entry.last_event <= now - QUIET_MS
                and (
                    # What is lost of it is not known: no event of it is expected, and no coordinator may know it.
                    entry.source == UNKNOWN_SOURCE
                    or (not entry.gone and coverage.why_blind(cluster, entry.source, now) is None)
                )
            ]
        return found

    def _forget(self, deleted: list[Known]) -> None:
        index, names = self.engine.index, list[str]()
        for one in deleted:
            key = one.entry.key
            # Made anew meanwhile, or another worker's by now.
            if (
                index.partitions.get(one.partition, {}).get(key) is one.entry
                and one.entry.newest_source == one.newest
            ):
                index.delete(one.partition, one.entry)
                index.refused["members", "deleted"] += 1
                names.append(shown(key))
        if names:
            log.warning("groups were deleted while the pipeline was away, and are forgotten: %s", few(names))
