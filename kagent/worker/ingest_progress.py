"""Which groups kagent can see: the pipeline's progress, its gaps, and so who is blind and why.

A group may be judged only when the pipeline's progress on its partition of ``__consumer_offsets`` is fresh, and the pipeline has
read all that was in the log one freshness window ago (a batch under way is always a little behind the present log end). A part of
the source that never arrived here (events that expired while the worker was away, a pipeline that skipped) is a gap: its groups
are blind until a replay has covered it from its start.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kagent.contract.events import Progress
from kagent.text import counted, span
from kagent.worker.pipeline_runs import Run, Runs

# Progress comes at every trigger, also when idle: three without one are no coincidence.
FRESH_TRIGGERS = 3
FRESH_AT_LEAST_MS = 10_000
"""At a trigger of a second, one garbage collection must not blind a cluster."""

STANDS_AFTER_WINDOWS = 3
"""A batch under way reads for longer than one window where much waits; where three bring nothing, Spark or its machine hangs."""
ENDS_REMEMBERED = 32
"""Log ends in a freshness window. A pipeline sends twelve in it at a trigger of a second; a burst of records must not make each slower."""
STRAY_AFTER_MS = 60_000
"""A broker that restarts is back by then, and its partitions with it."""
UNKNOWN_SOURCE = -1
"""The source partition of a group whose row of members could not be read, until its next event names it."""
REPLAY = "run `kagent pipeline --replay` to fill it"


@dataclass(slots=True)
class SourceProgress:
    """How far one partition of ``__consumer_offsets`` has been read; times in ms.

    ``ends``: (time, log end) of the latest progress records, the first of them from before the freshness window.
    """

    offset: int
    time: int
    trigger: float
    ends: list[tuple[int, int]] = field(default_factory=list)
    age_at_arrival: int = 0
    """How old the latest record was when the broker got it. One is sent as soon as it is made, so more is a clock that is wrong."""
    moved: int = 0
    """When more had been read than before, or all there was."""

    def __post_init__(self) -> None:
        self.moved = self.moved or self.time

    @property
    def window(self) -> float:
        """How old progress may be and still count as fresh, in ms."""
        return max(FRESH_AT_LEAST_MS, FRESH_TRIGGERS * self.trigger * 1000)

    def stale(self, now: int) -> bool:
        return now - self.time > self.window

    def why_stale(self, now: int) -> str | None:
        """Why it is not fresh, to be put behind its name; None if it is."""
        if not self.stale(now):
            return None
        age = f"is {(now - self.time) / 1000:.0f} s old"
        if self.age_at_arrival <= self.window:
            return age
        came = f"was {self.age_at_arrival / 1000:.0f} s old when it came"
        return f"{age}, and {came}: the clock of the pipeline's machine or that of the brokers is wrong"

    def heard(self, p: Progress, age_at_arrival: int = 0) -> None:
        """Take a progress record in."""
        self.age_at_arrival = age_at_arrival
        # Progress is sent beside Spark: it goes on, without a step, where Spark hangs. A clock that was set back begins anew.
        if p.offset > self.offset or p.offset >= p.log_end or p.time < self.moved:
            self.moved = p.time
        self.offset, self.time, self.trigger = p.offset, p.time, p.trigger
        # An end of a later time came from a wrong clock or record: it would keep all before it in the window until that time.
        if self.ends and self.ends[-1][0] > p.time:
            self.ends = [end for end in self.ends if end[0] <= p.time]
        self._add_end(p.time, p.log_end)
        # One end from before the window is kept: that much must have been read by now.
        while len(self.ends) > 1 and self.ends[1][0] <= self.time - self.window:
            self.ends.pop(0)

    def _add_end(self, time: int, end: int) -> None:
        """Note an end; ends of nearly the same time are one, the greatest. The first of all stays as it is: it is the one to be read."""
        if len(self.ends) > 1 and time - self.ends[-1][0] < self.window / ENDS_REMEMBERED:
            since, greatest = self.ends[-1]
            self.ends[-1] = since, max(greatest, end)
        else:
            self.ends.append((time, end))

    @property
    def log_end(self) -> int | None:
        """Where the log of this partition ends at most; None before progress was heard for a freshness window."""
        # The greatest of the window: one wrong record must not make all others' records impossible.
        whole = self.ends[0][0] <= self.time - self.window
        return max(end for _, end in self.ends) if whole else None

    @property
    def stands_ms(self) -> int:
        """For how long nothing was read although records wait, in ms; 0 while a batch may be under way."""
        stood = self.time - self.moved
        return stood if self.behind and stood > STANDS_AFTER_WINDOWS * self.window else 0

    @property
    def behind(self) -> int:
        """Records that stood in the log a freshness ago and have not been read."""
        # After a start no record is as old as the window: only the very first is held to its own log end.
        since, end = self.ends[0]
        due = end if since <= self.time - self.window or len(self.ends) == 1 else 0
        return max(0, due - self.offset)


@dataclass(slots=True)
class Cut:
    """A log that lost what stood from ``offset`` on; ``time`` (ms): when that was reported."""

    offset: int
    time: int
    _due: int | None = None

    def over(self, p: Progress) -> bool:
        """Whether all has been read that stood there at the first progress after it."""
        # Not the end of now: a busy log is always a little ahead of what was read.
        self._due = p.stable_end if self._due is None else self._due
        return p.offset >= self._due


@dataclass(slots=True)
class Coverage:
    """The progress seen in one partition of the events topic, over all clusters. Mutable; rows by :meth:`to_row`."""

    lost: bool = False
    whole: set[tuple[str, int]] = field(default_factory=set)
    gaps: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    sources: dict[tuple[str, int], SourceProgress] = field(default_factory=dict)
    runs: dict[tuple[str, int, bool], Runs] = field(default_factory=dict)
    """By cluster, source and whether it is a replay."""
    cuts: dict[tuple[str, int], Cut] = field(default_factory=dict)
    """Sources whose log lost its end, until what stands there now has been read."""

    def lose(self) -> None:
        """Events of this partition are gone that were never read: every source has a gap from its start to now."""
        self.lost = True
        self.whole.clear()
        # What a run covered so far, it may have sent in the events that are lost.
        self.runs.clear()

    def cut(self, key: tuple[str, int], offset: int, time: int) -> None:
        """The source's log lost what stood from this offset on: what runs reported of it no longer holds."""
        self.cuts[key] = Cut(offset, time)
        # Its offset and log ends would make what stands there now look as if it had been read.
        self._forget_progress(key)

    def _forget_progress(self, key: tuple[str, int]) -> None:
        self.sources.pop(key, None)
        for replay in (False, True):
            self.runs.pop((*key, replay), None)

    def progress(self, p: Progress, arrived: int | None = None) -> bool:
        """Take one progress record in; true if a gap opened or closed (the row must be written). ``arrived``: when the broker got it."""
        key = (p.cluster, p.source)
        # Compared at the end: a row is written for a gap, not for each progress record of each trigger.
        before = self._kept(key)
        first = self.lost and key not in self.whole
        self._find_gap(key, p)
        # What the first record after a loss covers may itself have been in what was lost.
        run = self._run(key, replace(p, start=p.offset) if first else p)
        if key in self.gaps:
            self._mend(key, run, p)
        if not p.replay:
            self.sources.setdefault(key, SourceProgress(p.offset, p.time, p.trigger)).heard(
                p, 0 if arrived is None else arrived - p.time
            )
            if key in self.cuts and self.cuts[key].over(p):
                del self.cuts[key]
        return before != self._kept(key)

    def _kept(self, key: tuple[str, int]) -> tuple[object, bool]:
        # Of this source alone: with all of them, a record would take the square of the sources that it names.
        return self.gaps.get(key), key in self.whole

    def _find_gap(self, key: tuple[str, int], p: Progress) -> None:
        if self.lost and key not in self.whole:
            # From 0: which events were lost is unknown, so only a replay of the whole log covers them.
            self.gaps[key] = (0, max(p.offset, p.log_end))
            self.whole.add(key)
        # Not of a replay: it begins at the log start and says nothing about the live run.
        if not p.replay and key in self.sources and (hole := self._hole(key, p)):
            start, end = self.gaps.get(key, hole)
            self.gaps[key] = (min(start, hole[0]), max(end, hole[1]))

    def _hole(self, key: tuple[str, int], p: Progress) -> tuple[int, int] | None:
        """What lies between all that was read before and this record; None if nothing does."""
        runs, latest = self._runs(key, p), self.sources[key].offset
        # What is quick to tell first: it is so for nearly every record.
        if p.start <= latest or runs.before(p):
            return None
        # Not only the latest record: a wrong one, or another run's, may say less than was read.
        return max(latest, runs.reached(p.start)), p.start

    def _mend(self, key: tuple[str, int], run: Run, p: Progress) -> None:
        """Close the gap if this run has read all of it that the log ever had."""
        start, end = self.gaps[key]
        # A gap beyond the log end was never there: a wrong record claimed it.
        end = min(end, max(p.log_end, p.offset))
        if end <= start or (run.start <= start and run.offset >= end):
            del self.gaps[key]
        else:
            self.gaps[key] = (start, end)

    def _runs(self, key: tuple[str, int], p: Progress) -> Runs:
        return self.runs.setdefault((*key, p.replay), Runs())

    def _run(self, key: tuple[str, int], p: Progress) -> Run:
        self._trim(key, p)
        return self._runs(key, p).heard(p)

    def _trim(self, key: tuple[str, int], p: Progress) -> None:
        """Take back what live runs claim beyond the log end: it was never there, and later it would hide a loss."""
        known = self.sources.get(key)
        # The window's greatest end: one record with too small an end must not take back what was read.
        if p.replay or known is None or (end := known.log_end) is None:
            return
        self._runs(key, p).trim(max(end, p.offset, p.log_end))

    def why_blind(self, cluster: str, source: int, now: int) -> str | None:
        """Why groups of this source partition may not be judged, or None if they may. ``now`` in ms."""
        if source == UNKNOWN_SOURCE:
            return "its partition of __consumer_offsets is not known, as its row is lost: its coordinator is asked"
        known = self.sources.get((cluster, source))
        # Gaps first: progress alone does not close them, a replay does.
        if (cluster, source) in self.gaps:
            return f"some events about __consumer_offsets-{source} never reached the workers: {REPLAY}"
        if (cluster, source) in self._cut_lately(now):
            at = self.cuts[cluster, source].offset
            return f"the log of __consumer_offsets-{source} lost its records from offset {at} on (an unclean leader election); the pipeline reads it again from there"
        if known is None:
            return f"no progress of the pipeline on __consumer_offsets-{source} yet"
        if late := known.why_stale(now):
            return f"the pipeline's last progress on __consumer_offsets-{source} {late}"
        if stood := known.stands_ms:
            return (
                f"the pipeline stands still on __consumer_offsets-{source}: {counted(known.behind, 'record')} wait, and none was read for "
                f"{span(stood / 1000)}"
            )
        if known.behind:
            return f"the pipeline is {known.behind} records behind on __consumer_offsets-{source}"
        return None

    def _cut_lately(self, now: int) -> set[tuple[str, int]]:
        # Not for longer: a wrong record may tell of a source that there is not.
        return {key for key, cut in self.cuts.items() if now - cut.time <= STRAY_AFTER_MS}

    def as_of(self, cluster: str, source: int) -> int | None:
        """Up to when this source partition was read, in ms: the time of its latest progress, or of the latest that read on where
        records wait."""
        known = self.sources.get((cluster, source))
        return (known.moved if known.behind else known.time) if known else None

    def log_end(self, cluster: str, source: int, now: int) -> int | None:
        """Where this source partition's log ends at most, if that is known well."""
        known = self.sources.get((cluster, source))
        # A pipeline that died after it wrote events has not reported yet how far the log reaches with them.
        return known.log_end if known and not known.stale(now) else None

    def forget_strays(self, used: Container[tuple[str, int]], now: int) -> None:
        """Forget source partitions of which nothing is heard for STRAY_AFTER_MS, while others are, and that no group is in.

        There is no such partition: somebody's record named it once.
        """
        fresh: dict[str, float] = {}
        for (cluster, _), known in self.sources.items():
            if not known.stale(now):
                fresh[cluster] = min(known.window, fresh.get(cluster, known.window))
        for key, known in list(self.sources.items()):
            # By the window of those that are heard: its own came with the wrong record, and may be days.
            silent_ms = max(STRAY_AFTER_MS, fresh.get(key[0], math.inf))
            if key not in used and now - known.time > silent_ms:
                self._forget_progress(key)

    def forget_beyond(self, cluster: str, partitions: int) -> bool:
        """Forget source partitions that the cluster does not have; true if the row must be written."""
        kept = len(self.gaps), len(self.whole)
        named = {*self.sources, *self.gaps, *self.whole, *self.cuts}
        for key in (key for key in named if key[0] == cluster and key[1] >= partitions):
            self._forget_progress(key)
            self.gaps.pop(key, None)
            self.whole.discard(key)
            self.cuts.pop(key, None)
        return kept != (len(self.gaps), len(self.whole))

    def any_stale(self, now: int) -> bool:
        """Whether some source partition has not been heard of lately."""
        return any(known.stale(now) for known in self.sources.values())

    def clusters(self) -> set[str]:
        """The clusters whose pipelines have been heard."""
        return {cluster for cluster, _ in self.sources}

    def oldest(self, cluster: str) -> int | None:
        """Time of the oldest source partition's latest progress, in ms."""
        return min((s.time for (c, _), s in self.sources.items() if c == cluster), default=None)

    def status(self, cluster: str, now: int) -> tuple[str, str | None]:
        """``watching``, ``catching_up`` or ``blind`` for the whole cluster, with the first reason."""
        worst: tuple[str, str | None] = ("watching", None)
        for name, source in sorted(self.sources.keys() | self._cut_lately(now)):
            if name != cluster:
                continue
            reason = self.why_blind(cluster, source, now)
            if reason is None:
                continue
            known = self.sources.get((cluster, source))
            # Neither a gap nor silence nor a standstill ends by waiting.
            if (cluster, source) in self.gaps or (
                known is not None and (known.stale(now) or known.stands_ms)
            ):
                return "blind", reason
            worst = ("catching_up", reason)
        return worst

    def to_row(self) -> dict[str, Any]:
        """What must outlive the process: losses and gaps. Progress itself is heard anew within a trigger."""
        return {
            "lost": self.lost,
            "whole": sorted([c, s] for c, s in self.whole),
            "gaps": [[c, s, start, end] for (c, s), (start, end) in sorted(self.gaps.items())],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Coverage:
        """The coverage that :meth:`to_row` wrote, also another release. Raises msgspec's ValidationError for what it cannot have written."""
        read = msgspec.convert(row, _CoverageRow)
        gaps = {(c, s): (start, end) for c, s, start, end in read.gaps}
        return cls(lost=read.lost, whole=set(read.whole), gaps=gaps)


class _CoverageRow(msgspec.Struct):
    # With types: a text for ``lost`` would count as true, and blind all groups of the partition until a replay.
    lost: bool = False
    whole: list[tuple[str, int]] = []
    gaps: list[tuple[str, int, int, int]] = []
