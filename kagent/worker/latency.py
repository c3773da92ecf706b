"""How long it takes from a commit to its recommendation, stage by stage, as histograms. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal

Stage = Literal["event", "verdict", "publish", "whole"]
STAGES: dict[Stage, str] = {
    "event": "from a commit to its event in the worker's hands",
    "verdict": "from the event to the judgement of its group",
    "publish": "from a judgement to the broker's receipt of its message",
    "whole": "from the progress that a message is based on to its receipt",
}
# From a tenth of a trigger to the hour that an outage costs.
BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)


@dataclass(slots=True)
class Histogram:
    """Count per upper bound in BOUNDS; the last count is of those beyond all of them."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one more. A negative time, as clocks that differ make it, counts as 0."""
        took = max(0.0, seconds)
        # bisect_left: a bound belongs to its own bucket, as Prometheus' le (less or equal) has it.
        self.counts[bisect_left(BOUNDS, took)] += 1
        self.sum += took

    def buckets(self) -> list[tuple[str, int]]:
        """Each upper bound and how many took at most that long: cumulative, as Prometheus wants them."""
        total, found = 0, []
        for bound, count in zip([*map(str, BOUNDS), "+Inf"], self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


@dataclass(slots=True)
class Delays:
    """All stages of one worker."""

    stages: dict[Stage, Histogram] = field(default_factory=lambda: {stage: Histogram() for stage in STAGES})

    def add(self, stage: Stage, milliseconds: float) -> None:
        """One more of this stage."""
        self.stages[stage].add(milliseconds / 1000)
