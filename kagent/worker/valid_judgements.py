"""Which groups a tick need not judge: those in which nothing changed since they were found healthy, and nothing can have ripened."""

from __future__ import annotations

from dataclasses import dataclass, field

from kagent.incident.evaluate import Judgement
from kagent.incident.validity import validity_of
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.worker.cluster_logs import ClusterLogs
from kagent.worker.context import WorkerContext
from kagent.worker.coverage_store import SourceCoverage
from kagent.worker.groups import Entry, ValidJudgement
from kagent.worker.mute_state import MuteState

Source = tuple[int, str, int]
"""Partition of the events topic, cluster, partition of ``__consumer_offsets``."""


@dataclass(slots=True)
class ValidJudgements:
    """Kept with each group's entry; here is what of the worker ends a judgement's validity beside the group's own data."""

    context: WorkerContext
    logs: ClusterLogs
    coverage: SourceCoverage
    mutes: MuteState
    _sources: dict[Source, tuple[bool, int | None]] = field(default_factory=dict)
    """Source → whether its groups can be seen, and the time of its progress (ms), at this tick."""

    def begin(self) -> None:
        """A tick begins: what it needs of each source is asked once for all of its groups."""
        self._sources.clear()

    def of(self, partition: int, entry: Entry, at: int) -> Judgement | None:
        """The group's last judgement, if the tick at ``at`` (ms) would find the same; else None."""
        valid = entry.valid
        if valid is None or valid.judgement.state is not entry.judged or valid.mutes != self.mutes.changes:
            return None
        seen, as_of = self._source(partition, entry.cluster, entry.source)
        return valid.judgement if seen and valid.validity.holds(at, as_of) else None

    def keep(self, entry: Entry, seen: Observation, judgement: Judgement, policy: Policy) -> None:
        """Remember for how long this judgement is valid."""
        validity = validity_of(seen, judgement, policy)
        entry.valid = ValidJudgement(judgement, validity, self.mutes.changes) if validity else None

    def _source(self, partition: int, cluster: str, source: int) -> tuple[bool, int | None]:
        key = (partition, cluster, source)
        if key not in self._sources:
            coverage = self.coverage.of(partition)
            blind = coverage.why_blind(cluster, source, self.context.now) or self.logs.blind_reason(cluster)
            self._sources[key] = blind is None, coverage.as_of(cluster, source)
        return self._sources[key]
