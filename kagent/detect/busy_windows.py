"""Measures what members do while they are certainly busy: the windows from which ``kagent.detect.capacity`` takes their speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kagent.detect.capacity import LONGEST_S, RARE_GAP_S, kept, window_length_s
from kagent.detect.evidence import idle_s
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import JudgeState, MemberState, Window, WindowStart
from kagent.lag.commits import GAPS
from kagent.lag.log_ends import EndHistory
from kagent.lag.measure import Flags, Longs
from kagent.policy import Policy


def tracked(columns: ObservedColumns, state: JudgeState, excluded: Flags, idle: float) -> list[int]:
    """Codes of the members that have something to do, or whose clocks run."""
    held = (columns.owner >= 0) & ~excluded
    waits = np.bincount(columns.owner[held], columns.backlog[held], columns.members)
    comes = np.bincount(columns.owner[held], columns.median_rates[held], columns.members)
    busy = waits > idle * comes
    for at, name in enumerate(columns.units.names):
        known = state.members.get(name)
        # An open window is followed to its end even if the member has caught up meanwhile.
        if known is not None and (known.running or known.mark is not None):
            busy[at] = True
    return np.flatnonzero(busy).tolist()


def advance(
    columns: ObservedColumns,
    state: JudgeState,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
    policy: Policy,
) -> JudgeState:
    """The state with what each tracked member committed since the last look, and with the capacity windows that closed."""
    members = dict(state.members)
    for at in tracked(columns, state, excluded, idle_s(policy)):
        name = columns.units.names[at]
        known, now = members.get(name, MemberState()), int(columns.committed_at[at])
        if now > known.time:
            members[name] = _committed(columns, at, known, now, excluded, ends, policy)
    return replace(state, members=members)


def _committed(
    columns: ObservedColumns,
    at: int,
    known: MemberState,
    now: int,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
    policy: Policy,
) -> MemberState:
    rows = np.flatnonzero(columns.owner == at)
    keys = columns.lags.keys(rows.tolist())
    done = dict(zip(keys, columns.lags.committed[rows].tolist(), strict=True))
    gaps = (*known.gaps, now - known.time)[-GAPS:] if known.time else known.gaps
    new = replace(known, time=now, done=done, gaps=gaps)
    mark = known.mark
    # Another set of partitions: records that a former holder committed must not count as this member's speed.
    if mark is None or set(mark.committed) != set(done):
        return replace(new, mark=WindowStart(now, done))
    leg = _Leg(columns, rows, keys, mark, known.time, now, excluded, ends)
    after = leg.mark_after()
    # Deleted since the window began: who can tell whether they were read, or leapt over.
    deleted = columns.lags.start[rows] > [mark.committed[key] for key in keys]
    if after is None or deleted.any():
        return replace(new, mark=WindowStart(now, done))
    records = _records(columns, rows, keys, mark)
    # A window in which nothing is done goes on: a client that commits once a block does nothing for minutes, and then all of it.
    if not records or (now - mark.time) / 1000 < window_length_s(float(columns.gap[at]), policy):
        return replace(new, mark=after)
    if after.unproven_since:
        return replace(new, mark=WindowStart(now, done))
    windows = kept((*known.windows, Window(now, after.busy_s, records)), now)
    return replace(new, windows=windows, mark=WindowStart(now, done))


@dataclass(frozen=True)
class _Leg:
    """The time between two commits of a member (``before`` and ``now``, ms) in a window that began with ``mark``; ``rows``, ``keys``: its
    partitions."""

    columns: ObservedColumns
    rows: Longs
    keys: list[str]
    mark: WindowStart
    before: int
    now: int
    excluded: Flags
    ends: Mapping[str, EndHistory]

    @property
    def length_s(self) -> float:
        return (self.now - self.before) / 1000

    def mark_after(self) -> WindowStart | None:
        """The window with this time in it; None where the member may have been idle."""
        moved = self.columns.lags.moved[self.rows]
        # For so long no window goes on without progress: the member sleeps or hangs.
        if self.now - int(moved.max(initial=0)) > LONGEST_S * 1000:
            return None
        counts = ~self.excluded[self.rows]
        served = np.flatnonzero(counts & (moved > self.mark.time)).tolist()
        unserved = np.flatnonzero(counts & (moved <= self.mark.time)).tolist()
        busy_s, mark = self._busy_s(served), self.mark
        if busy_s > 0:
            if mark.unproven_since and self._waited_in(served, mark.unproven_since):
                busy_s, mark = busy_s + mark.unproven_s, replace(mark, unproven_since=0, unproven_s=0.0)
            return replace(mark, busy_s=round(mark.busy_s + busy_s, 3))
        # A partition that has not been served since the window began may be paused or stuck, so it does not show that its member is busy;
        # or the member is at its block, which shows once it is done.
        if any(map(self._waited_throughout, unserved)):
            since, unproven_s = mark.unproven_since or self.before, mark.unproven_s + self.length_s
            return replace(mark, unproven_since=since, unproven_s=round(unproven_s, 3))
        return None

    def _busy_s(self, places: list[int]) -> float:
        """For how long these partitions show that the member was certainly busy, s; 0 if that is not certain."""
        best = 0.0
        for place in places:
            if self._waited_throughout(place):
                return self.length_s
            row = self.rows[place]
            waited_ms = self.now - int(self.columns.waiting_since[row])
            # Interval-censored: a record waited for at least half of the time (500 of its 1,000 ms a second), so the busy time lies
            # between that and the whole; the mean of both is taken. With rare commits few windows would count otherwise.
            rare = self.columns.gap[self.columns.owner[row]] >= RARE_GAP_S
            if rare and waited_ms < self.now and waited_ms >= self.length_s * 500:
                best = max(best, (self.length_s + waited_ms / 1000) / 2)
        return best

    def _waited_in(self, places: list[int], since: int) -> bool:
        """Whether one of these partitions had a record at that time (ms) that was not committed when the window began."""
        return any(self._end_at(place, since) > self.mark.committed[self.keys[place]] for place in places)

    def _waited_throughout(self, place: int) -> bool:
        """The certificate: the log end at the first commit lies beyond what is committed at the second, so a record waited all the time."""
        return self._end_at(place, self.before) > int(self.columns.lags.committed[self.rows[place]])

    def _end_at(self, place: int, time: int) -> int:
        """The log end of a partition at a time (ms), at least; UNKNOWN, which lies below all offsets."""
        row = self.rows[place]
        history = self.ends[self.columns.lags.topics[self.columns.lags.topic[row]]]
        end, _ = history.bracket(self.columns.lags.partition[row : row + 1], np.array([time]))
        return int(end[0])


def _records(columns: ObservedColumns, rows: Longs, keys: list[str], mark: WindowStart) -> dict[str, int]:
    out: dict[str, int] = {}
    for row, key in zip(rows.tolist(), keys, strict=True):
        topic = columns.lags.topics[columns.lags.topic[row]]
        out[topic] = out.get(topic, 0) + max(0, int(columns.lags.committed[row]) - mark.committed[key])
    return {topic: count for topic, count in out.items() if count}
