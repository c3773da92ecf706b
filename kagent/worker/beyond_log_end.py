"""Groups of which something is known that stands beyond the end of ``__consumer_offsets``, so cannot be.

A record was forged, or the cluster was made anew and has another ``__consumer_offsets`` under the same name. What stands later in
the source counts, so every true record would be older than such a one for ever, and the group would seem to stand still.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from kagent.text import shown
from kagent.worker.context import WorkerContext
from kagent.worker.coverage_store import SourceCoverage
from kagent.worker.groups import Entry
from kagent.worker.ingest_progress import FRESH_AT_LEAST_MS

log = logging.getLogger("kagent.worker")


@dataclass(slots=True)
class BeyondLogEnd:
    """``since``: group key → when it was seen to know more than the log has (this worker's clock in ms), and up to which offset."""

    context: WorkerContext
    coverage: SourceCoverage
    since: dict[str, tuple[int, int]] = field(default_factory=dict)

    def forget(self, partition: int) -> int:
        """Forget, of this partition's groups, what stands beyond the log's end for a while; how many groups that were."""
        found = dict(self._beyond(partition))
        now, entries = self.context.now, self.context.index.entries(partition)
        for key in self.since.keys() & entries.keys() - found.keys():
            del self.since[key]
        # Not at once: an event may be read before the progress that tells how far the log reaches with it. And only what was
        # seen then: a busy group is a little ahead of the progress at every tick, with another offset each time.
        for key, end in found.items():
            if key not in self.since or self.since[key][1] <= end:
                self.since[key] = now, entries[key].newest_source
        lasting = [key for key in found if now - self.since[key][0] > FRESH_AT_LEAST_MS]
        for key in lasting:
            del self.since[key]
            self.context.index.forget_beyond(partition, entries[key], found[key])
            self.context.refused["event", "beyond_log_end"] += 1
            log.warning(
                "the offsets kept of %s are beyond the end of __consumer_offsets: its coordinator is asked for them again",
                shown(key),
            )
        return len(lasting)

    def _beyond(self, partition: int) -> Iterator[tuple[str, int]]:
        """(group, end of its log) of those that are."""
        coverage, ends = self.coverage.of(partition), dict[tuple[str, int], int | None]()
        for key, entry in self.context.index.entries(partition).items():
            place = entry.cluster, entry.source
            # One question a source, not a group: this runs over all groups at every tick.
            if place not in ends:
                ends[place] = coverage.log_end(*place, self.context.now)
            end = ends[place]
            if end is not None and entry.newest_source > end:
                yield key, end


def in_use(entries: dict[str, Entry]) -> set[tuple[str, int]]:
    """The source partitions that these groups are in."""
    return {(entry.cluster, entry.source) for entry in entries.values()}
