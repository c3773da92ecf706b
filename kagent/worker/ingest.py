"""Messages of the events topic into groups and coverage. Nothing here awaits, judges or publishes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kagent.contract import admission
from kagent.contract.admission import Refused
from kagent.contract.event_times import limited
from kagent.contract.events import Beat, GroupEvent, LogCut, Message, TopicOffsets
from kagent.group_key import group_key
from kagent.offsets import OFFSETS_TOPIC
from kagent.text import partition_name, shown
from kagent.worker.cluster_logs import ClusterLogs
from kagent.worker.context import WorkerContext
from kagent.worker.coverage_store import SourceCoverage
from kagent.worker.event_sources import existing
from kagent.worker.groups import Entry
from kagent.worker.ingest_progress import Coverage
from kagent.worker.offset_gaps import Arrival

log = logging.getLogger("kagent.worker")


@dataclass(frozen=True, slots=True)
class NotTaken:
    """One event that is not let in, as it came, and why: Refused is the producer's fault, anything else a defect here."""

    value: bytes
    error: Exception


@dataclass(slots=True)
class Ingest:
    """``changed`` is called with the key of a group whose data changed: what set it aside may be over."""

    context: WorkerContext
    logs: ClusterLogs
    coverage: SourceCoverage
    changed: Callable[[str], object]
    arrival: Arrival = field(default_factory=Arrival)

    def resume(self, committed: Mapping[int, int | None]) -> None:
        """Expect each partition (→ offset, None without a commit) to go on where it was committed."""
        self.arrival.expected.clear()
        for partition, offset in committed.items():
            self.arrival.resume(partition, offset)

    def take(
        self, partition: int, offset: int, value: bytes | None, arrived_ms: int | None = None
    ) -> list[NotTaken]:
        """One message of the events topic, which may hold many events. Raises nothing over what is in it.

        :param arrived_ms: when the broker got it, if that is known.
        :returns: what is not let in, in whole or in part: it belongs in the dead letters. The rest is applied.
        """
        coverage = self.coverage.taken(partition)
        # Before the message is applied: the progress record in it has to meet the gap.
        if self.arrival.lost(partition, offset):
            log.warning(
                "events of partition %d before offset %d are gone: blind until a replay", partition, offset
            )
            coverage.lose()
            self.coverage.keep(partition)
        # As of the arrival at the broker: read a day later, a time that was ahead then would look past.
        now = self.context.now if arrived_ms is None else arrived_ms
        data = value or b""
        try:
            parts = admission.parts(data)
        except Refused as error:
            self.context.counts["events"] += 1
            return [NotTaken(data, error)]
        return [found for part in parts if (found := self._tried(partition, coverage, part, now)) is not None]

    def _tried(self, partition: int, coverage: Coverage, part: bytes, now: int) -> NotTaken | None:
        """Apply one event; what it raises costs it alone, and none of the other events in its message."""
        self.context.counts["events"] += 1
        try:
            self._take_one(partition, coverage, admission.decode(part), now)
        except Exception as error:
            return NotTaken(part, error)
        return None

    def _take_one(self, partition: int, coverage: Coverage, message: Message | None, now: int) -> None:
        """Apply one event or progress record. Raises Refused if it is not let in, in whole or in part."""
        if message is None:  # of a newer pipeline
            return
        # No sampler asks such a cluster for log ends: its groups would stay blind for ever.
        if message.cluster not in self.context.settings.clusters:
            raise Refused("unknown_cluster", f"the settings have no cluster {message.cluster!r}")
        timely = limited(message, now)
        self._apply(partition, coverage, timely, now)
        if timely is not message:
            raise Refused(
                "time_ahead", "a time lies ahead of the broker's clock: it was taken as of its arrival"
            )

    def _apply(self, partition: int, coverage: Coverage, message: Message, arrived: int) -> None:
        if isinstance(message, GroupEvent):
            count = self.logs.source_partitions(message.cluster)
            if count is not None and message.source >= count:
                raise _no_such_partition(message.cluster, count)
            if self._has_room(partition, message):
                self._event(partition, message)
        else:
            self._of_sources(partition, coverage, message, arrived)

    def _of_sources(self, partition: int, coverage: Coverage, message: Beat | LogCut, arrived: int) -> None:
        """Apply what the record says of partitions that exist. Raises Refused if it names others."""
        count = self.logs.source_partitions(message.cluster)
        there = message if count is None else existing(message, count)
        if isinstance(there, Beat):
            self._progress(partition, coverage, there, arrived)
        elif there.source or there is message:
            self._cut(partition, coverage, there)
        if there is not message:
            raise _no_such_partition(message.cluster, count)

    def _event(self, partition: int, event: GroupEvent) -> None:
        # Before the event is applied: one that is refused may have changed the commits all the same.
        self.changed(group_key(event.cluster, event.group))
        self.logs.name_topics(event.cluster, [(o.topic_id, o.topic) for o in event.offsets if o.topic_id])
        self._clock(self.context.index.take(partition, event), event)

    def _clock(self, entry: Entry, event: GroupEvent) -> None:
        """Begin to measure how long the event waits for its judgement."""
        now = self.context.now
        if event.offsets:
            newest = max((max(o.time) for o in event.offsets if len(o.time)), default=now)
            self.context.delays.add("event", now - int(newest))
        if entry.unjudged_since is None:
            entry.unjudged_since = now

    def _progress(self, partition: int, coverage: Coverage, beat: Beat, arrived: int) -> None:
        # A list, not a generator in any(): every progress record has to be taken.
        changed = [coverage.progress(progress, arrived) for progress in beat.each()]
        if any(changed):
            self.coverage.keep(partition)

    def _cut(self, partition: int, coverage: Coverage, cut: LogCut) -> None:
        """Forget what stood where logs lost their ends: what stands there now is newer, at lesser offsets."""
        places = dict(zip(cut.source, cut.offset, strict=True))
        for source, offset in places.items():
            coverage.cut((cut.cluster, source), offset, cut.time)
        there = [entry for entry in self._of(partition, cut.cluster) if entry.source in places]
        lost = [entry for entry in there if entry.newest_source >= places[entry.source]]
        for entry in lost:
            self.context.index.forget_beyond(partition, entry, places[entry.source] - 1)
        self.context.refused["event", "log_cut"] += len(lost)
        which = " and ".join(
            f"{partition_name(OFFSETS_TOPIC, source)} from offset {at} on" for source, at in places.items()
        )
        log.warning(
            "an unclean leader election lost records in %s of %s: the coordinators are asked for %d groups anew",
            which,
            cut.cluster,
            len(lost),
        )

    def _of(self, partition: int, cluster: str) -> list[Entry]:
        return [e for e in self.context.index.entries(partition).values() if e.cluster == cluster]

    def _has_room(self, partition: int, event: GroupEvent) -> bool:
        """Whether there is room for the group; groups that are known always have room."""
        index = self.context.index
        known = group_key(event.cluster, event.group) in index.entries(partition)
        # Any client that may commit can make up group names: without a bound, memory is theirs to fill.
        if known or index.group_count < self.context.settings.worker.max_groups:
            return True
        self.context.counts["groups_over_limit"] += 1
        return False

    def without_commits(self) -> list[tuple[int, Entry]]:
        """(partition, group) of groups with a lag row that could not be read: their coordinators know the commits."""
        return [
            (partition, entry)
            for partition, entries in self.context.index.partitions.items()
            for entry in entries.values()
            if "lag" in entry.unreadable
        ]

    def rebuild(self, partition: int, entry: Entry, committed: Mapping[tuple[str, int], int]) -> None:
        """Take the coordinator's committed offsets in place of a row that could not be read.

        The coordinator does not return when they were committed, so they count as committed now. Source offset -1 makes every
        record of ``__consumer_offsets`` newer than them.
        """
        topics: dict[str, list[tuple[int, int]]] = {}
        for (topic, number), offset in sorted(committed.items()):
            topics.setdefault(topic, []).append((number, offset))
        now = self.context.now
        offsets = [
            TopicOffsets(
                topic, None, [n for n, _ in rows], [o for _, o in rows], [now] * len(rows), [-1] * len(rows)
            )
            for topic, rows in topics.items()
        ]
        # As an event of the pipeline, so that rows are written and offsets ordered in one place.
        event = GroupEvent(entry.cluster, entry.group, entry.source, now, offsets)
        self.context.index.take(partition, event)
        entry.unreadable.discard("lag")

    def bring_back(self, partition: int, event: GroupEvent) -> bool:
        """Take in a group whose rows are lost, by what its coordinator says; false where there is no room for it."""
        if not self._has_room(partition, event):
            return False
        key = group_key(event.cluster, event.group)
        self.changed(key)
        try:
            self.context.index.bring_back(partition, event)
        except Refused as error:
            log.warning("the members of %s cannot be taken from its coordinator: %s", shown(key), error)
        return True

    def fill(self, partition: int, event: GroupEvent) -> None:
        """Take commits whose rows are lost."""
        self.changed(group_key(event.cluster, event.group))
        self.context.index.take(partition, event)


def _no_such_partition(cluster: str, count: int | None) -> Refused:
    return Refused("no_such_partition", f"{OFFSETS_TOPIC} of {cluster} has {count} partitions")
