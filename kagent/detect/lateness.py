"""How late each member is: one number V a member.

V is how long ago the log ends, summed over the member's partitions, were where its commits are now. The age of the oldest
record and ratios of lags jump when a client serves one partition's fetch after another; V does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kagent.detect.inflow import Interval
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import JudgeState
from kagent.lag.log_ends import EndHistory
from kagent.lag.measure import Floats, Lags, Longs
from kagent.lag.observation import Observation


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
    return float(span + (total[0] - reached) / _continued(times, total, inflow))


def continued_inflow(
    lags: Lags, ends: Mapping[str, EndHistory], rows: Longs, cost: Floats, inflow: float
) -> float:
    """At how much work/s the log ends of these partitions are taken to have grown before they were known."""
    return _continued(*_summed(lags, ends, rows, cost), inflow)


def _continued(times: Floats, total: Floats, inflow: float) -> float:
    grew_for_s = (times[-1] - times[0]) / 1000 if len(times) else 0.0
    grew = float(total[-1] - total[0]) / grew_for_s if grew_for_s > 0 else 0.0
    # Not zero: a topic without inflow would be late for ever.
    return max(inflow, grew, 1e-3)


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
