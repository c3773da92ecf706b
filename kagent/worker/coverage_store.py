"""The coverage table's rows: gaps in the source, and the common incidents that a restart must not open a second time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kagent.incident.correlation import CorrelationState
from kagent.tables import coverage as coverage_table
from kagent.worker.context import WorkerContext
from kagent.worker.ingest_progress import Coverage


@dataclass(slots=True)
class SourceCoverage:
    """Coverage by partition of the events topic. ``recent`` (cluster → common incidents) is the session's, and filled from rows."""

    context: WorkerContext
    recent: dict[str, CorrelationState]
    partitions: dict[int, Coverage] = field(default_factory=dict)
    _recent_at: dict[str, int] = field(default_factory=dict)
    """Cluster → when the row was written that its common incidents came from."""

    def load(self, partitions: Iterable[int], retained: Container[int]) -> None:
        """Take the rows of these partitions.

        What is known of ``retained`` ones stays, and is written again: a row that was not committed is dropped at a rebalance.
        """
        # Filled from the rows again: the owner of another partition may have written a newer state.
        self.recent.clear()
        self._recent_at.clear()
        before, self.partitions = {p: c for p, c in self.partitions.items() if p in retained}, {}
        for partition in partitions:
            row = self._read(partition)
            self.partitions[partition] = before.get(partition, row)
        for partition in before.keys() & self.partitions.keys():
            self.keep(partition)

    def _read(self, partition: int) -> Coverage:
        row = self.context.tables.coverage.get(str(partition))
        found = None if row is None else self.context.read_row("coverage", partial(_from_row, row.state))
        if found is None:
            return Coverage()
        coverage, common = found
        # Every partition's row repeats the clusters' common incidents; the newest row is right.
        for cluster, (at, recent) in common.items():
            if at > self._recent_at.get(cluster, 0):
                self._recent_at[cluster], self.recent[cluster] = at, recent
        return coverage

    def of(self, partition: int) -> Coverage:
        """What is known of a partition; without gaps if nothing is."""
        # Not stored: to ask about a partition must not make it one that arrived.
        return self.partitions.get(partition, Coverage())

    def taken(self, partition: int) -> Coverage:
        """The same, to be changed by what arrives for the partition."""
        return self.partitions.setdefault(partition, Coverage())

    def clusters(self, partition: int) -> set[str]:
        """The clusters that have groups or pipelines here, and all of the settings."""
        groups = {entry.cluster for entry in self.context.index.entries(partition).values()}
        return self.of(partition).clusters() | groups | set(self.context.settings.clusters)

    def keep(self, partition: int) -> None:
        """Write the partition's row."""
        now = self.context.now
        common = {cluster: [now, recent.to_row()] for cluster, recent in self.recent.items()}
        state = {**self.taken(partition).to_row(), "common": common}
        row = coverage_table.CoverageRow(partition=partition, state=state)
        self.context.tables.coverage[str(partition)] = row


def _from_row(state: Mapping[str, Any]) -> tuple[Coverage, dict[str, tuple[int, CorrelationState]]]:
    common = {
        cluster: (int(at), CorrelationState.from_row(recent))
        for cluster, (at, recent) in state.get("common", {}).items()
    }
    return Coverage.from_row(state), common
