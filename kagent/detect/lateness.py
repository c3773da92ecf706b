"""How late each member is: its judged backlog, and one number V a member.

V is how long ago the log ends, summed over the member's partitions, were where its commits are now. The age of the oldest
record and ratios of lags jump when a client serves one partition's fetch after another; V does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kagent.detect.state import MemberState
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.measure import Floats, Lags, Longs

KNOWN_GAPS = 3
"""An offset that was not committed again holds for this many of its member's commit gaps: clients that commit only what moved
do not repeat a waiting partition."""
GAPS_KEPT = 9
"""Up to four gaps that are not the usual ones leave the median of nine among the usual ones."""
LEAST_SPAN_S = 1.0
"""A history of one sample has no length: its inflow counts as that of a second."""


def commit_times(lags: Lags, owner: np.ndarray[tuple[int, ...], np.dtype[np.int32]], members: int) -> Longs:
    """Time of each member's latest commit, ms; 0 where it has none."""
    times = np.zeros(members, np.int64)
    held = owner >= 0
    np.maximum.at(times, owner[held], lags.time[held])
    return times


def gap_s(known: MemberState | None, cadence_ms: float) -> float:
    """The member's median gap between commits, in s; the topic's until three gaps of its own are known."""
    if known is None or len(known.gaps) < KNOWN_GAPS:
        return cadence_ms / 1000
    return float(np.median(known.gaps)) / 1000


def judged_at(lags: Lags, owner: Longs, committed_at: Longs, gaps_s: Floats) -> Longs:
    """The time at which each partition's committed offset is known to hold, ms."""
    held = owner >= 0
    repeated = np.zeros(len(lags), np.int64)
    # The partition's own commit where it is younger: one member's partitions may be committed seconds apart.
    repeated[held] = committed_at[owner[held]] - (KNOWN_GAPS * 1000 * gaps_s[owner[held]]).astype(np.int64)
    return np.maximum(lags.time, repeated)


def backlog(lags: Lags, ends: Mapping[str, EndHistory], times: Longs, allowed: int) -> tuple[Floats, Floats]:
    """Records that wait per partition, at least and at most: the log end in the last sample before, and in the first one
    after, the time at which the offset is known to hold. Within ``allowed`` it is 0 (transaction markers)."""
    low, high = np.zeros(len(lags)), np.zeros(len(lags))
    for code, name in enumerate(lags.topics):
        here = np.flatnonzero(lags.topic == code)
        # What retention deleted is lost, not waiting: a reader below the log start can only go on at the log start.
        base = np.maximum(lags.committed[here], lags.start[here])
        before, after = ends[name].bracket(lags.partition[here], times[here])
        waits = np.where(before == UNKNOWN, 0, np.maximum(before - base, 0))
        # Commit and abort markers of transactions take an offset each and are never read (KIP-98), so a reader of a transactional
        # topic may end one short of the log end for ever.
        # https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging
        low[here] = np.where(waits <= allowed, 0, waits)
        high[here] = np.maximum(np.where(after == UNKNOWN, lags.end[here], after) - base, low[here])
    return low, high


def waiting_since(lags: Lags, ends: Mapping[str, EndHistory], allowed: int) -> Longs:
    """When each partition's oldest unread record was in the log for certain, ms; 0 where nothing is unread, or no more than is
    allowed: these may be markers, which nobody reads and which would stand for ever."""
    out = np.zeros(len(lags), np.int64)
    for code, name in enumerate(lags.topics):
        here = np.flatnonzero(lags.topic == code)
        base = np.maximum(lags.committed[here], lags.start[here])
        since = ends[name].first_beyond(lags.partition[here], base)
        out[here] = np.where(lags.end[here] - base > allowed, since, 0)
    return out


def virtual_lateness_s(
    lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats, work: float, at: int, inflow: float
) -> float:
    """V of the member that holds these partitions: s before ``at`` (ms) at which their log ends, summed, were where its commits
    are now. Where the history is too short: its span, and the time in which the rest arrived at this inflow (work/s)."""
    times, total = _summed(lags, ends, rows, cost)
    if not len(times) or work <= 0:
        return 0.0
    now = float(np.interp(at, times, total))
    reached = now - work
    if reached >= total[0]:
        # The last sample at which no more than this had arrived; from there on it grew evenly to the next.
        after = int(np.searchsorted(total, reached, side="right"))
        if after >= len(times):
            return 0.0
        before = after - 1
        share = (reached - total[before]) / max(total[after] - total[before], 1e-9)
        return float(max(0.0, (at - (times[before] + share * (times[after] - times[before]))) / 1000))
    # The records are older than the oldest sample: beyond it, the inflow of the history, or now if that is more, is continued.
    span = max(0.0, (at - times[0]) / 1000)
    # Not zero: a topic without inflow would be late for ever.
    usual = max(inflow, (total[-1] - total[0]) / max((times[-1] - times[0]) / 1000, LEAST_SPAN_S), 1e-3)
    return float(span + (total[0] - reached) / usual)


def _summed(lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats) -> tuple[Floats, Floats]:
    """Work that had arrived at these partitions, over the times of the log-end samples."""
    curves: list[tuple[Floats, Floats]] = []
    for code in np.unique(lags.topic[rows]).tolist():
        mine = rows[lags.topic[rows] == code]
        times, records = ends[lags.topics[code]].curve(lags.partition[mine])
        if len(times):
            curves.append((times.astype(np.float64), np.asarray(records * float(cost[mine[0]]), np.float64)))
    if len(curves) <= 1:
        return curves[0] if curves else (np.zeros(0), np.zeros(0))
    # Topics are sampled at different times, so all are read at the union of these, and only from the moment at which each has a
    # sample: before it the sum lacks a topic, whose first sample would look like a jump.
    every = np.unique(np.concatenate([at for at, _ in curves]))
    every = every[every >= max(float(at[0]) for at, _ in curves)]
    total = np.zeros(len(every))
    for at, work in curves:
        total += np.interp(every, at, work)
    return every, total
