"""Groups of which the clusters know more than our rows do: a changelog was cut short, or deleted and made anew.

What a group committed before that, and does not commit again, comes from no event. So after each load the groups of the watched
clusters are compared with ours, and what is missing is asked of their coordinators. A group that is only new, and whose event is
still on its way, is given the time that the pipeline takes.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kagent.contract.events import GroupEvent, MembershipRecord, TopicOffsets
from kagent.contract.topic_name import is_topic_name
from kagent.errors import KafkaError
from kagent.group_key import group_key, source_partition
from kagent.kafka.admin import Admin
from kagent.kafka.described_records import records_of
from kagent.kafka.descriptions import Described, Key
from kagent.offsets import Record
from kagent.own_groups import is_own
from kagent.strategies.partitioner import partitions_for
from kagent.text import few, shown
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.groups import Entry
from kagent.worker.ingest_progress import UNKNOWN_SOURCE
from kagent.worker.ownership import Ownership

log = logging.getLogger("kagent.worker")
LOOK_EVERY_S = 15.0
"""A group that is missed at one look is taken at the second after it: within a minute of the start. Once all are compared nothing is asked."""
MISSED_FOR_MS = 30_000
AT_ONCE = 1_000
"""Groups whose commits are asked for at one look: 20,000 are compared within five minutes, at two requests each time."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group of the cluster belongs: partition of the events topic, and of ``__consumer_offsets``."""

    cluster: str
    group: str
    partition: int
    source: int

    @property
    def key(self) -> str:
        return group_key(self.cluster, self.group)


class LostRows:
    """``admins``: cluster → who asks it."""

    def __init__(self, engine: GroupEngine, ownership: Ownership, admins: Mapping[str, Admin]) -> None:
        self.engine, self.ownership, self.admins = engine, ownership, admins
        self._load = -1
        self._whole: set[str] = set()
        """Clusters of which all groups have been compared since the load."""
        self._missed: dict[str, int] = {}
        """Group key → when it was first missed (ms)."""
        self._compared: set[str] = set()
        self._silent: set[str] = set()
        """Groups whose coordinator did not answer when it was asked last."""

    async def look(self) -> None:
        """Compare some groups, and take what is missing. A cluster that is away is asked at the next look."""
        if not self.ownership.ready:
            return
        if self._load != self.ownership.loaded_at:
            self._load = self.ownership.loaded_at
            for known in (self._whole, self._missed, self._compared, self._silent):
                known.clear()
        for cluster, admin in self.admins.items():
            if cluster in self._whole and not self._without_members(cluster):
                continue
            try:
                whole = await self._look(cluster, admin)
            except (KafkaError, TimeoutError) as error:
                log.debug("whether rows of %s are lost is not known: %s", cluster, error)
                continue
            if whole:
                self._whole.add(cluster)

    def _without_members(self, cluster: str) -> bool:
        return any(
            entry.cluster == cluster and key not in self._compared and _unknown(entry)
            for entries in self.engine.index.partitions.values()
            for key, entry in entries.items()
        )

    async def _look(self, cluster: str, admin: Admin) -> bool:
        """Whether all groups have been compared."""
        load, asked_ms = self._load, self.engine.now
        self._doubt_sources(cluster)
        places = self._ours(cluster, await in_thread(admin.groups))
        due, waiting = self._missing(places, asked_ms)
        others = [p for p in places if not _incomplete(self._entry(p))]
        some, due_now = self._first(others), self._first(due)
        if not due_now and not some:
            return not waiting
        committed = await in_thread(admin.committed_each, [place.group for place in (*due_now, *some)])
        described = await in_thread(admin.described_each, [place.group for place in due_now])
        if load != self.ownership.loaded_at or self.ownership.recoveries != load:
            return False
        self._silent -= {place.key for place in (*due_now, *some)}
        self._silent |= {group_key(cluster, name) for name in (*committed.failed, *described.failed)}
        back = self._bring_back(self._told(due_now), committed.found, described.found)
        self._fill(self._told(some), committed.found)
        whole = len(some) == len(others) and len(due_now) == len(due)
        return back and whole and not waiting and not self._silent

    def _doubt_sources(self, cluster: str) -> None:
        """Forget a partition of the source that a row names and the source does not have: no progress would ever come on it."""
        for partition in self.ownership.loaded:
            count = self._sources(cluster, partition)
            for entry in self.engine.index.entries(partition).values():
                if entry.cluster == cluster and entry.source >= count > 0:
                    log.warning(
                        "the row of %s names partition %d of __consumer_offsets, which has %d: its coordinator is asked",
                        shown(entry.key),
                        entry.source,
                        count,
                    )
                    entry.source = UNKNOWN_SOURCE
                    self.engine.index.refused["members", "no_such_partition"] += 1

    def _first(self, places: list[Place]) -> list[Place]:
        """Some of them; last come those whose coordinator did not answer before: it keeps no others from coming back."""
        return sorted(places, key=lambda place: place.key in self._silent)[:AT_ONCE]

    def _told(self, places: list[Place]) -> list[Place]:
        return [place for place in places if place.key not in self._silent]

    def _ours(self, cluster: str, names: list[str]) -> list[Place]:
        """Those of the cluster's groups that belong to our partitions, and whose place in the source is known; not compared yet."""
        topics = self.engine.settings.topics
        # First, as hashing the names of 20,000 groups takes 0.2 s, and each look compares a part of them.
        left = (name for name in names if group_key(cluster, name) not in self._compared)
        names = [name for name in left if not is_own(topics.app, name)]
        if not names:
            return []
        keys = [group_key(cluster, name) for name in names]
        hashed = [key.encode(errors="surrogatepass") for key in keys]
        ours = {p: self._sources(cluster, p) for p in self.ownership.loaded if self.ownership.built(p)}
        # Where an event came from, there the group is, also where another producer put it elsewhere.
        known = {key for entries in self.engine.index.partitions.values() for key in entries}
        return [
            Place(cluster, name, at, source_partition(name, ours[at]))
            for name, key, at in zip(
                names, keys, partitions_for(hashed, topics.partitions).tolist(), strict=True
            )
            if ours.get(at) and (key in self.engine.index.entries(at) or key not in known)
        ]

    def _sources(self, cluster: str, partition: int) -> int:
        """How many partitions the source has; 0 before the pipeline's first progress record, which names all."""
        sources = (s for c, s in self.engine.coverage_rows.of(partition).sources if c == cluster)
        return max(sources, default=-1) + 1

    def _entry(self, place: Place) -> Entry | None:
        return self.engine.index.entries(place.partition).get(place.key)

    def _missing(self, places: Iterable[Place], now: int) -> tuple[list[Place], bool]:
        """Groups of which we lack what no event may still bring, and whether there may be more in a while."""
        due: list[Place] = []
        waiting = False
        for place in places:
            if not _incomplete(self._entry(place)):
                self._missed.pop(place.key, None)
                continue
            coverage = self.engine.coverage_rows.of(place.partition)
            known = coverage.sources.get((place.cluster, place.source))
            # Where events are still to come, what is missing may be among them.
            if known is None or coverage.why_blind(place.cluster, place.source, now) is not None:
                self._missed.pop(place.key, None)
                waiting = True
                continue
            since = self._missed.setdefault(place.key, now)
            if now - since >= max(MISSED_FOR_MS, known.window):
                due.append(place)
            else:
                waiting = True
        # No progress record has come yet: the list of ours is empty for that reason alone.
        return due, waiting or not all(
            self._sources(cluster, p) for cluster in self.admins for p in self.ownership.loaded
        )

    def _bring_back(
        self,
        due: list[Place],
        committed: Mapping[str, Mapping[Key, int]],
        described: Mapping[str, Described],
    ) -> bool:
        """Take groups in of which we know nothing, or not the members; whether all of them could be asked."""
        back: list[Place] = []
        for place in due:
            offsets, found = committed.get(place.group, {}), described.get(place.group)
            if not offsets and not (found and found.group.members):
                self._compared.add(
                    place.key
                )  # an empty group without commits, as it stays listed for a while
                continue
            records = records_of(found) if found else None
            if records is None:
                continue  # it rebalances: the next look finds it settled
            if not records and not _unknown(self._entry(place)):  # known as what it is: it only commits
                self._fill([place], committed)
                continue
            self._compared.add(place.key)
            event = self._event(place, offsets, records)
            if self.engine.ingest.bring_back(place.partition, event):
                self.engine.index.refused["members", "missing"] += 1
                self._name_topics(place, found)
                back.append(place)
        _say("groups were not known any more, and are taken from their coordinators", back)
        return all(place.key in self._compared for place in due)

    def _fill(self, places: list[Place], committed: Mapping[str, Mapping[Key, int]]) -> None:
        """Take commits in on partitions of which we know nothing."""
        filled: list[Place] = []
        for place in places:
            self._compared.add(place.key)
            entry = self._entry(place)
            if entry is not None and (lacking := _lacking(entry, committed.get(place.group, {}))):
                event = self._event(place, lacking, ())
                self.engine.ingest.fill(place.partition, event)
                self.engine.index.refused["lag", "missing"] += len(event.offsets)
                filled.append(place)
        _say("some commits were not known any more, and are taken from the coordinators; groups", filled)

    def _event(self, place: Place, committed: Mapping[Key, int], records: Iterable[Record]) -> GroupEvent:
        """As an event of the pipeline. Source offset -1: every record of ``__consumer_offsets`` is newer."""
        now = self.engine.now
        topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (topic, number), offset in sorted(committed.items()):
            if is_topic_name(topic):
                topics[topic].append((number, offset))
        offsets = [
            TopicOffsets(
                topic, None, [n for n, _ in rows], [o for _, o in rows], [now] * len(rows), [-1] * len(rows)
            )
            for topic, rows in topics.items()
        ]
        members = [MembershipRecord(-1, now, record.to_json()) for record in records]
        return GroupEvent(place.cluster, place.group, place.source, now, offsets, [], members)

    def _name_topics(self, place: Place, found: Described | None) -> None:
        ids: Mapping[str, str] = found.topic_ids if found else {}
        self.engine.logs.name_topics(place.cluster, [(id_, name) for name, id_ in ids.items()])


def _say(what: str, places: list[Place]) -> None:
    if places:
        log.warning("%s: %s", what, few([shown(place.key) for place in places]))


def _unknown(entry: Entry | None) -> bool:
    """Whether a group, or its place in the source, or its members are not known here."""
    return entry is None or entry.source == UNKNOWN_SOURCE or "members" in entry.unreadable


def _incomplete(entry: Entry | None) -> bool:
    """Whether its coordinator may know members that are not known here: they come with a rebalance, and not with a commit."""
    return _unknown(entry) or (entry is not None and entry.state is None)


def _lacking(entry: Entry, committed: Mapping[Key, int]) -> dict[Key, int]:
    """Commits on partitions of which we know nothing. A partition that is known is newer here, or an event tells of it."""
    known = {(topic, number) for topic, row in entry.commits.items() for number in row.partition}
    return {key: offset for key, offset in committed.items() if key not in known}
