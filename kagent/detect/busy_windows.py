"""Measures what members do while they are certainly busy: the windows from which ``kagent.detect.capacity`` takes their speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kagent.detect.capacity import RARE_GAP_S, kept, window_length_s
from kagent.detect.commit_gaps import KEPT_GAPS
from kagent.detect.evidence import idle_s
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import JudgeState, MemberState, Window, WindowStart
from kagent.lag.log_ends import UNKNOWN, EndHistory
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
            members[name] = _committed(columns, at, known, now, excluded, ends, policy.hold)
    return replace(state, members=members)


def _committed(
    columns: ObservedColumns,
    at: int,
    known: MemberState,
    now: int,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
    hold: float,
) -> MemberState:
    rows = np.flatnonzero(columns.owner == at)
    keys = columns.lags.keys(rows.tolist())
    done = dict(zip(keys, columns.lags.committed[rows].tolist(), strict=True))
    gaps = (*known.gaps, now - known.time)[-KEPT_GAPS:] if known.time else known.gaps
    new = replace(known, time=now, done=done, gaps=gaps)
    mark = known.mark
    # Another set of partitions: records that a former holder committed must not count as this member's speed.
    if mark is None or set(mark.committed) != set(done):
        return replace(new, mark=WindowStart(now, done))
    busy_s = _busy_s(columns, at, rows, mark.time, known.time, now, excluded, ends)
    # Deleted since the window began: who can tell whether they were read, or leapt over.
    deleted = columns.lags.start[rows] > [mark.committed[key] for key in keys]
    if busy_s <= 0 or deleted.any():
        return replace(new, mark=WindowStart(now, done))
    mark = replace(mark, busy_s=round(mark.busy_s + busy_s, 3))
    if (now - mark.time) / 1000 < window_length_s(float(columns.gap[at]), hold):
        return replace(new, mark=mark)
    window = Window(now, mark.busy_s, _records(columns, rows, keys, mark))
    windows = kept((*known.windows, window), now)
    return replace(new, windows=windows, mark=WindowStart(now, done))


def _busy_s(
    columns: ObservedColumns,
    at: int,
    rows: Longs,
    began: int,
    before: int,
    now: int,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
) -> float:
    """For how long the member was certainly busy between two commits (ms), s; 0 if that is not certain. ``began``: when
    the window did, ms."""
    length, best = (now - before) / 1000, 0.0
    for row in rows.tolist():
        committed = int(columns.lags.committed[row])
        # Not served since the window began: it may be paused or stuck, so it does not show that its member is busy.
        if excluded[row] or columns.lags.moved[row] < began:
            continue
        history = ends[columns.lags.topics[columns.lags.topic[row]]]
        partition = columns.lags.partition[row : row + 1]
        end, _ = history.bracket(partition, np.array([before]))
        # The certificate: the log end at the first commit lies beyond what is committed at the second: a record waited throughout.
        if end[0] != UNKNOWN and end[0] > committed:
            return length
        oldest = int(columns.waiting_since[row])
        # Interval-censored: a record waited for at least half of the time (500 of its 1,000 ms a second), so the busy time lies
        # between that and the whole; the mean of both is taken. With rare commits few windows would count otherwise.
        if columns.gap[at] >= RARE_GAP_S and oldest and now - oldest >= length * 500:
            best = max(best, (length + (now - oldest) / 1000) / 2)
    return best


def _records(columns: ObservedColumns, rows: Longs, keys: list[str], mark: WindowStart) -> dict[str, int]:
    out: dict[str, int] = {}
    for row, key in zip(rows.tolist(), keys, strict=True):
        topic = columns.lags.topics[columns.lags.topic[row]]
        out[topic] = out.get(topic, 0) + max(0, int(columns.lags.committed[row]) - mark.committed[key])
    return {topic: count for topic, count in out.items() if count}
