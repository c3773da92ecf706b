"""The members' load: what waits for each, what arrives, and what it can do, by one cost of a record per topic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kagent.detect import capacity as capacities
from kagent.detect import inflow as inflows
from kagent.detect.busy_windows import tracked
from kagent.detect.capacity import Capacity, kept
from kagent.detect.evidence import idle_s
from kagent.detect.inflow import Interval
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.peers import by_member_and_topic
from kagent.detect.record_costs import BusyMix
from kagent.detect.state import JudgeState, Window
from kagent.lag.measure import Flags, Floats
from kagent.lag.membership import NOBODY
from kagent.lag.observation import Observation
from kagent.policy import Policy


def per_partition(columns: ObservedColumns, cost: Mapping[str, float]) -> Floats:
    """The cost of a record of each partition, from that of its topic; 1 where it is unknown."""
    per_topic = np.array([cost.get(t, 1.0) for t in columns.lags.topics] or [1.0])
    return per_topic[columns.lags.topic] if len(columns.lags) else np.ones(0)


def owner_of_counted(columns: ObservedColumns, excluded: Flags) -> npt.NDArray[np.int32]:
    """Code of the member whose work each partition counts as, or NOBODY."""
    held = columns.relevant & ~excluded & (columns.owner >= 0)
    return np.where(held, columns.owner, NOBODY).astype(np.int32)


def _windows(columns: ObservedColumns, state: JudgeState) -> list[tuple[Window, ...]]:
    """The busy windows that are remembered of every member."""
    known = [state.members.get(name) for name in columns.units.names]
    return [m.windows if m else () for m in known]


def mix_of(columns: ObservedColumns, state: JudgeState, excluded: Flags, now: int, policy: Policy) -> BusyMix:
    """What the members did of each topic while they were busy, and what arrives at those that are not behind; nothing for a group
    of one topic, whose records are all alike, or of which no member was ever busy."""
    windows = [kept(each, now) for each in _windows(columns, state)]
    if len(columns.lags.topics) < 2 or not any(windows):
        return BusyMix.of([])
    behind = set(tracked(columns, state, excluded, idle_s(policy)))
    rows = np.flatnonzero(owner_of_counted(columns, excluded) != NOBODY)
    comes = by_member_and_topic(columns, rows, columns.median_rates)
    on_time = [
        dict(zip(columns.lags.topics, each, strict=True))
        for at, each in enumerate(comes.tolist())
        if at not in behind and any(each)
    ]
    return BusyMix.of(windows, on_time)


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
    since = inflows.totals(owner[held], (columns.rates_since * each)[held], columns.members)
    # All three: raised alone, the lowest could lie above the others.
    flow = Interval(*(np.maximum(end, since) for end in (flow.low, flow.mid, flow.high)))
    return work, flow, capacities.of_windows(_windows(columns, state), cost, seen.now, flow.mid)
