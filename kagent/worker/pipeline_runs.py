"""What runs of the pipeline have covered of one partition of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kagent.contract.events import Progress

RUNS_REMEMBERED = 1_000
"""Around a restart the records of two runs are mixed. The rest is for forged records that each name a new run: the true run must
not be forgotten for them, as only its records show that what they claim was never there."""


@dataclass(slots=True)
class Run:
    """What one run of the pipeline has covered without a hole: [start, offset). A run with a hole has several of these."""

    run_id: str
    start: int
    offset: int

    def goes_on_with(self, p: Progress) -> bool:
        """Whether this record follows without a hole."""
        return self.run_id == p.run_id and self.start <= p.start <= self.offset


@dataclass(slots=True)
class Stretches:
    """What one run has covered, each stretch without a hole, the one heard last at the end; ``greatest``: how far it got."""

    runs: list[Run] = field(default_factory=list)
    greatest: int = 0

    def before(self, p: Progress) -> Run | None:
        # A hole begins beyond all that was read. In a year of holes each record would look at all stretches before it.
        if p.start > self.greatest:
            return None
        return next((run for run in reversed(self.runs) if run.goes_on_with(p)), None)

    def heard(self, run: Run, new: bool) -> None:
        """Put it last."""
        if new:
            self.runs.append(run)
        elif self.runs[-1] is not run:
            self.runs = [*(other for other in self.runs if other is not run), run]
        self.greatest = max(self.greatest, run.offset)

    def drop_oldest(self) -> Run:
        dropped = self.runs.pop(0)
        if dropped.offset == self.greatest:
            self.greatest = max((run.offset for run in self.runs), default=0)
        return dropped

    def trim(self, end: int) -> None:
        for run in self.runs:
            run.start, run.offset = min(run.start, end), min(run.offset, end)
        self.greatest = min(self.greatest, end)


@dataclass(slots=True)
class Runs:
    """The latest runs, so that a record of another run, or a wrong one of the same, breaks no run's chain.

    By id, each with the one heard last at its end: many forged runs must not make each true record slower.
    """

    _by_id: dict[str, Stretches] = field(default_factory=dict)
    _count: int = 0
    _greatest: int = 0
    """The furthest that a run got."""

    def __len__(self) -> int:
        return self._count

    def before(self, p: Progress) -> Run | None:
        """The run that this record goes on with."""
        own = self._by_id.get(p.run_id)
        return own.before(p) if own else None

    def heard(self, p: Progress) -> Run:
        """Take a record in; the run that it belongs to."""
        found = self.before(p)
        # What a run's first record covers it may have sent before what was lost here; a replay sends all anew.
        run = found or Run(p.run_id, p.start if p.replay else p.offset, p.offset)
        run.offset = max(run.offset, p.offset)
        self._greatest = max(self._greatest, run.offset)
        # Put last: the first one is the one that was heard longest ago.
        own = self._by_id[p.run_id] = self._by_id.pop(p.run_id, Stretches())
        own.heard(run, new=found is None)
        self._count += found is None
        self._drop_oldest()
        return run

    def _drop_oldest(self) -> None:
        while self._count > RUNS_REMEMBERED:
            oldest = next(iter(self._by_id))
            dropped = self._by_id[oldest].drop_oldest()
            self._count -= 1
            if not self._by_id[oldest].runs:
                del self._by_id[oldest]
            if dropped.offset == self._greatest:
                self._greatest = max(own.greatest for own in self._by_id.values())

    def trim(self, end: int) -> None:
        """Take back what runs claim beyond this end."""
        # Nearly always: no look at each of them.
        if self._greatest <= end:
            return
        for own in self._by_id.values():
            own.trim(end)
        self._greatest = end

    def reached(self, limit: int) -> int:
        """The furthest that a run got short of ``limit``; 0 if none did."""
        if self._greatest < limit:
            return self._greatest
        return max((run.offset for run in self._all() if run.offset < limit), default=0)

    def _all(self) -> Iterator[Run]:
        return (run for own in self._by_id.values() for run in own.runs)
