"""Where a query begins: where Spark's checkpoint ended, or at places that it is given.

Spark keeps one set of partitions in a checkpoint, with the batch that is under way. Where other partitions are to be read, as some have no
leader or have one again, it begins with a new one: that batch would wait for a leader, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kagent.pipeline.checkpoint import CoveredOffsets

EARLIEST = -2
"""Spark's word for the log's start in a JSON of starting offsets."""


@dataclass(slots=True)
class StartingPlaces:
    """What the queries of one process have read. ``left_out``: partitions that the last one did not read."""

    left_out: frozenset[int] = frozenset()
    _covered: CoveredOffsets = field(default_factory=CoveredOffsets)
    """Up to the latest new checkpoint, also of what was left out."""

    def of(
        self,
        partitions: Iterable[int],
        left_out: frozenset[int],
        reached: CoveredOffsets,
        lost: Mapping[int, int] | None = None,
    ) -> dict[int, int]:
        """Partition → the offset to begin at, of all but those that are left out; to be called where a new checkpoint begins.

        ``lost``: partition → the first offset that its log has lost.
        """
        known, lost = self.known(reached), lost or {}
        offset = {p: min(offset, lost.get(p, offset)) for p, offset in known.offset.items()}
        self._covered, self.left_out = CoveredOffsets(known.start, offset), left_out
        # What this process has not read itself is read from its beginning: events may be repeated, never missed.
        return {p: self._covered.offset.get(p, EARLIEST) for p in partitions if p not in left_out}

    def known(self, reached: CoveredOffsets) -> CoveredOffsets:
        """What is covered by the checkpoint and, of what the last query did not read, before it."""
        start = {p: reached.start.get(p, 0) for p in reached.offset}
        return CoveredOffsets({**self._covered.start, **start}, {**self._covered.offset, **reached.offset})


def covered(known: CoveredOffsets, places: Mapping[int, int]) -> CoveredOffsets:
    """What is covered where a query begins at these places."""
    offset = {partition: offset for partition, offset in places.items() if offset != EARLIEST}
    return CoveredOffsets(known.start, offset)
