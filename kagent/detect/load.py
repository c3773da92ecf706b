"""The members' load: what waits for each, what arrives, and what it can do, by one cost of a record per topic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kagent.detect import capacity as capacities
from kagent.detect import inflow as inflows
from kagent.detect.capacity import Capacity
from kagent.detect.inflow import Interval
from kagent.detect.observed_columns import ObservedColumns, per_partition
from kagent.detect.state import JudgeState, Window
from kagent.lag.measure import Floats
from kagent.lag.observation import Observation

LATE_FOR_LONG_MS = 1_200_000
"""After twenty minutes of lateness the mean since then bounds the inflow from below, or frequent bursts with a calm median would
never be reported."""


def _windows(columns: ObservedColumns, state: JudgeState) -> list[tuple[Window, ...]]:
    """The busy windows that are remembered of every member."""
    known = [state.members.get(name) for name in columns.units.names]
    return [m.windows if m else () for m in known]


def record_costs(columns: ObservedColumns, state: JudgeState, now: int) -> dict[str, float]:
    """The work of a record by topic."""
    if len(columns.lags.topics) < 2:
        return {}
    return capacities.costs(_windows(columns, state), now)


def load_of(
    columns: ObservedColumns,
    owner: npt.NDArray[np.int32],
    cost: Mapping[str, float],
    state: JudgeState,
    seen: Observation,
) -> tuple[Floats, Interval, Capacity]:
    """What waits for each member, what arrives and what it can do, all in work by one cost of a record per topic."""
    each, held = per_partition(columns, cost), owner >= 0
    work = inflows.totals(owner[held], (columns.backlog * each)[held], columns.members)
    flow = inflows.estimate(inflows.summed(columns.rates, owner, columns.members, each))
    flow = _since_late(columns, owner, each, flow, state, seen)
    return work, flow, capacities.of_windows(_windows(columns, state), cost, seen.now, flow.mid)


def _since_late(
    columns: ObservedColumns,
    owner: npt.NDArray[np.int32],
    cost: Floats,
    flow: Interval,
    state: JudgeState,
    seen: Observation,
) -> Interval:
    """Who has been late for long has at least the mean inflow since then."""
    low = flow.low.copy()
    for at, name in enumerate(columns.units.names):
        known = state.members.get(name)
        # The stretch of the backlog, not of the spell: a lull ends a spell, and this mean has to span bursts and lulls.
        late = known.backlog if known else None
        if late is None or late.last - late.began < LATE_FOR_LONG_MS:
            continue
        rows = np.flatnonzero(owner == at)
        grown = inflows.grown_since(seen.ends, columns.lags, rows, cost, late.began, late.last)
        low[at] = max(low[at], grown * 1000 / (late.last - late.began))
    # Raised alone, low could lie above mid and high.
    return Interval(low, np.maximum(flow.mid, low), np.maximum(flow.high, low))
