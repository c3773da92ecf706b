"""What the log-end sampler reported: log ends, topic ids and brokers of every cluster, and how old that knowledge is."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kagent.contract.admission import Refused, checked
from kagent.lag.log_ends import PAUSE, EndHistory
from kagent.lag.observation import TopicInfo
from kagent.offsets import OFFSETS_TOPIC
from kagent.tables import ends as ends_table
from kagent.worker.context import WorkerContext

log = logging.getLogger("kagent.worker")
# A history changes with every sample, every 5 s by default; a restart loses this much of it.
KEEP_ENDS_EVERY_MS = 60_000
# At least a minute: a broker that restarts must not blind a cluster.
BLIND_AFTER_MS = 60_000


@dataclass(slots=True)
class ClusterLogs:
    """Log ends and topics by cluster. Times in ms unless a name says otherwise."""

    context: WorkerContext
    ends: dict[tuple[str, str], EndHistory] = field(default_factory=dict)
    """(cluster, topic) → history of its log ends."""
    infos: dict[str, dict[str, TopicInfo]] = field(default_factory=dict)
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    """Cluster → topic id → topic name."""
    sampling_s: dict[str, float] = field(default_factory=dict)
    """Cluster → how long its last sample of the log ends took, in seconds."""
    patience_ms: int = field(init=False)
    """Without a sample for this long, the lag of what a group committed then is known only at its next commit."""
    blind_after_ms: int = field(init=False)
    _sampled_at: dict[str, int] = field(default_factory=dict)
    """Cluster → when its log ends were last read, or when this worker began."""
    _kept_at: dict[int, int] = field(default_factory=dict)
    """Partition of the events topic → when its rows of log ends were last written."""

    def __post_init__(self) -> None:
        interval_ms = self.context.settings.worker.sample * 1000
        # A few intervals: one sample that a busy broker answers late must blind no cluster.
        self.patience_ms = max(PAUSE, int(3 * interval_ms))
        self.blind_after_ms = max(BLIND_AFTER_MS, int(6 * interval_ms))

    def load(self, partitions: Iterable[int]) -> None:
        """Take the rows of these partitions; a history that is known already is newer than its row."""
        wanted = set(partitions)
        for row in self.context.tables.ends.values():
            # A topic has a row in every partition whose groups read it; they are about a minute apart.
            if row.partition in wanted and (row.cluster, row.topic) not in self.ends:
                history = self.context.read_row("ends", partial(EndHistory.from_row, row.history))
                if history is not None:
                    self.ends[row.cluster, row.topic] = history
        for cluster in self.context.settings.clusters:
            # A new worker gets the same patience as one whose samples stopped.
            self._sampled_at.setdefault(cluster, self.context.now)

    def keep(self, partition: int, at: int) -> None:
        """Write the histories that this partition's groups need, once a minute: a restart may lose that much."""
        # Not below zero: a time that is still to come is that of a clock that was ahead.
        if 0 <= at - self._kept_at.get(partition, 0) < KEEP_ENDS_EVERY_MS:
            return
        self._kept_at[partition] = at
        entries = self.context.index.entries(partition).values()
        wanted = {(e.cluster, t) for e in entries for t in e.topics(self.names.get(e.cluster, {}))}
        for cluster, topic in wanted:
            history = self.ends.get((cluster, topic))
            if history is not None and history.samples:
                self.context.tables.ends[ends_table.key(partition, cluster, topic)] = ends_table.EndsRow(
                    cluster=cluster, topic=topic, partition=partition, history=history.to_row()
                )

    def source_partitions(self, cluster: str) -> int | None:
        """How many partitions ``__consumer_offsets`` has; None before the cluster was asked, or where it may not be seen."""
        info = self.infos.get(cluster, {}).get(OFFSETS_TOPIC)
        return info.partitions if info else None

    def described(self, cluster: str, infos: Mapping[str, TopicInfo]) -> None:
        """Take what topics are, before any of their log ends is asked."""
        self.infos.setdefault(cluster, {}).update(infos)

    def name_topics(self, cluster: str, named: Iterable[tuple[str, str]]) -> None:
        """Take (topic id, name) pairs from an event; the sampler's own answer takes precedence."""
        names = self.names.setdefault(cluster, {})
        for topic_id, name in named:
            names.setdefault(topic_id, name)

    def needed_topics(self, cluster: str) -> tuple[set[str], bool]:
        """The topics of this cluster whose log ends are needed, and whether some topic id has no name yet."""
        names = self.names.get(cluster, {})
        wanted: set[str] = set()
        unresolved = False
        for entries in self.context.index.partitions.values():
            for entry in entries.values():
                # Topics that only ignored groups read are not sampled: a console consumer may read any.
                if entry.cluster == cluster and not self.context.policies(entry.group).ignore:
                    wanted |= entry.topics(names)
                    unresolved |= entry.roster(names).unresolved
        return wanted, unresolved

    def sampled(
        self, cluster: str, samples: Iterable[Any], names: Mapping[str, str], infos: Mapping[str, TopicInfo]
    ) -> None:
        """Take the sampler's answers; a sample that cannot be used is counted and left out."""
        self._sampled_at[cluster] = self.context.now
        # Added, not replaced: events may name topics that this user cannot describe.
        self.names.setdefault(cluster, {}).update(names)
        self.infos[cluster] = dict(infos)
        for s in samples:
            try:
                checked(partial(self._add, cluster, s))
            except Refused as error:
                self.context.refused["sample", error.reason] += 1
                log.warning("the log ends of %r are left out: %s", s.topic, error)

    def _add(self, cluster: str, s: Any) -> None:
        # The id: a topic that was deleted and created again begins a new history.
        history = self.ends.setdefault((cluster, s.topic), EndHistory(len(s.end), s.topic_id))
        history.add(s.asked, s.seen, s.start, s.end, s.stable, s.topic_id)

    def sampling_took(self, cluster: str, took_s: float) -> None:
        """Note how long a sample took; log when that becomes longer than the interval, and when it no longer is."""
        before, self.sampling_s[cluster] = self.slow_reason(cluster), took_s
        now = self.slow_reason(cluster)
        if now and not before:
            log.warning("%s: %s.", cluster, now)
        if before and not now:
            log.info("%s: the log ends are sampled in time again.", cluster)

    def blind_reason(self, cluster: str) -> str | None:
        """Why lags of this cluster's groups are unknown, if its log ends cannot be read."""
        age_ms = self.context.now - self._sampled_at.get(cluster, self.context.now)
        if age_ms <= self.blind_after_ms:
            return None
        return f"the log ends of the cluster were last read {age_ms / 1000:.0f} s ago"

    def slow_reason(self, cluster: str) -> str | None:
        """Why lags are older than they should be, if sampling takes longer than its interval."""
        took_s, interval_s = self.sampling_s.get(cluster, 0.0), self.context.settings.worker.sample
        if took_s <= interval_s:
            return None
        return (
            f"a sample of the log ends takes {took_s:.0f} s, worker.sample is {interval_s:g} s: lags are that much older; "
            "raise worker.sample, or give the worker and the brokers more processor time"
        )
