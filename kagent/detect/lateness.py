"""How late each member is: one number V a member.

V is how long ago the log ends, summed over the member's partitions, were where its commits are now. The age of the oldest
record and ratios of lags jump when a client serves one partition's fetch after another; V does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kagent.detect.inflow import Interval
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import JudgeState
from kagent.lag.log_ends import EndHistory
from kagent.lag.measure import Floats, Lags, Longs
from kagent.lag.observation import Observation

Curve = tuple[Floats, Floats]
"""Times of samples (ms), and the work that had arrived by then."""


def lateness_s(
    columns: ObservedColumns,
    owner: npt.NDArray[np.int32],
    cost: Floats,
    work: Floats,
    flow: Interval,
    state: JudgeState,
    seen: Observation,
    idle: float,
) -> Floats:
    """V of every member, s. Members with next to nothing waiting, and no clock running, are on time."""
    out = np.zeros(columns.members)
    for at in np.flatnonzero(work > 0).tolist():
        known = state.members.get(columns.units.names[at])
        # The usual case: so small a backlog arrived within the last seconds, so its age is backlog ÷ inflow without a search.
        if work[at] < idle * flow.mid[at] and not (known and known.running):
            out[at] = work[at] / flow.mid[at]
            continue
        rows = np.flatnonzero(owner == at)
        out[at] = virtual_lateness_s(
            columns.lags,
            seen.ends,
            rows,
            cost,
            float(work[at]),
            int(columns.committed_at[at]),
            float(flow.mid[at]),
        )
    return out


def virtual_lateness_s(
    lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats, work: float, at: int, inflow: float
) -> float:
    """V of the member that holds these partitions: s before ``at`` (ms) at which their log ends, summed, were where its commits
    are now. Where the history is too short: its span, and the time in which the rest arrived at this inflow (work/s)."""
    curves = _curves(lags, ends, rows, cost)
    times, total = _summed(curves)
    if not len(times) or work <= 0:
        return 0.0
    # What waits is counted to the last sample before the commit. To count what came since as read would make a member that is late on
    # purpose look less late by up to the time between two samples, and in a burst by many times that.
    reached = sum(_before(each, at) for each in curves) - work
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
    return float(span + (total[0] - reached) / _continued(times, total, inflow))


def off_between_samples_s(curve: Curve, when_ms: float) -> float:
    """How far a lateness may be off, in s, that takes log ends to have grown evenly between the samples around this time."""
    times, total = curve
    after = int(times.searchsorted(when_ms, side="right"))
    if not 0 < after < len(times):
        return 0.0
    near = slice(max(0, after - 2), after + 2)
    rates = np.diff(total[near]) / np.diff(times[near])
    # Where the rate changes by the factor k at the worst moment between two samples, the even line is off by this share of their distance.
    least, most = np.sqrt([rates.min(), rates.max()])
    spacing_s = float(times[after] - times[after - 1]) / 1000
    return spacing_s * float((most - least) / (most + least)) if most > 0 else 0.0


def continued_inflow(
    lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats, inflow: float
) -> float:
    """At how much work/s the log ends of these partitions are taken to have grown before they were known."""
    return _continued(*arrivals(lags, ends, rows, cost), inflow)


def _continued(times: Floats, total: Floats, inflow: float) -> float:
    grew_for_s = (times[-1] - times[0]) / 1000 if len(times) else 0.0
    grew = float(total[-1] - total[0]) / grew_for_s if grew_for_s > 0 else 0.0
    # Not zero: a topic without inflow would be late for ever.
    return max(inflow, grew, 1e-3)


def arrivals(lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats) -> Curve:
    """Work that had arrived at these partitions by the times of the samples of their log ends."""
    return _summed(_curves(lags, ends, rows, cost))


def _before(curve: Curve, at: int) -> float:
    """The work that had arrived in the last sample before a time (ms), or in the oldest one."""
    times, work = curve
    return float(work[max(0, int(times.searchsorted(at, side="right")) - 1)])


def _curves(lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats) -> list[Curve]:
    """Work that had arrived at these partitions, for each topic."""
    curves: list[Curve] = []
    for code in np.unique(lags.topic[rows]).tolist():
        mine = rows[lags.topic[rows] == code]
        times, records = ends[lags.topics[code]].curve(lags.partition[mine])
        if len(times):
            curves.append((times.astype(np.float64), np.asarray(records * float(cost[mine[0]]), np.float64)))
    return curves


def _summed(curves: Sequence[Curve]) -> Curve:
    """The sum of these curves."""
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
