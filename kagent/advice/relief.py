"""What moving partitions could do for a group: the planner's problem out of a look, and its plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.advice.load import NONE
from kagent.advice.look import Look
from kagent.contract.recommendation import GroupKind
from kagent.lag.membership import NOBODY, Roster
from kagent.planner import QUICK, Plan, Problem, plan
from kagent.planner.problem import classes


@dataclass(frozen=True, eq=False)
class Relief:
    """A plan over the partitions that count. ``rows``: their places in the look's columns."""

    plan: Plan
    rows: npt.NDArray[np.int64]
    paired: bool
    unit: str

    @property
    def now(self) -> float:
        """Greatest work under the current assignment."""
        return float(self.plan.work_now.max())

    @property
    def after(self) -> float:
        """Greatest work under the plan."""
        return float(self.plan.work_after.max())

    @property
    def gain(self) -> float:
        """By what share the plan lowers the greatest work."""
        return 1 - self.after / self.now if self.now > 0 else 0.0

    @property
    def bound(self) -> float:
        """No assignment has a smaller skew."""
        mean = float(self.plan.work_now.mean())
        return (
            self.plan.lower_bound / mean if mean > 0 and self.plan.objective == "work" else self._work_bound()
        )

    def _work_bound(self) -> float:
        problem = self.plan.problem
        work = problem.lag * (1.0 if problem.cost is None else problem.cost[problem.topic])
        fastest = 1.0 if problem.speed is None else float(problem.speed.max())
        mean = float(self.plan.work_now.mean())
        return max(1.0, float(work.max()) / fastest / mean) if mean > 0 else 1.0


def relieve(look: Look) -> Relief | None:
    """The plan for a group as it stands, None where nothing can be planned."""
    roster, load, lags = look.roster, look.load, look.lags
    if roster is None or load.greatest == NONE:
        return None
    rows = np.flatnonzero(~lags.orphaned & (lags.owner != NOBODY))
    topics = tuple(lags.topics)
    subscribed, member_class = classes(
        [[t for t in topics if roster.eligible(at, t)] for at in range(len(roster.members))],
        {t: at for at, t in enumerate(topics)},
    )
    paired = co_partitioned(look)
    cost, rate = _known(look, topics, rows) if load.unit == "seconds" else (None, None)
    problem = Problem(
        members=roster.names,
        topics=topics,
        topic=lags.topic[rows].astype(np.int64),
        partition=lags.partition[rows],
        lag=_lag(look)[rows],
        owner=lags.owner[rows].astype(np.int64),
        subscribed=subscribed,
        member_class=member_class,
        cost=cost,
        speed=look.rates.speeds(roster.names) if cost is not None else None,
        rate=rate,
        unit=_units(look, rows) if paired else None,
        pinned=look.aside[rows] | ~lags.known[rows],
        instance=tuple(m.instance_id for m in roster.members),
        rack=tuple(m.rack or "" for m in roster.members) if all(m.rack for m in roster.members) else (),
    )
    planned = plan(problem, look.policy.tolerance, look.policy.max_moves, QUICK)
    return Relief(planned, rows, paired, load.unit)


def _known(
    look: Look, topics: tuple[str, ...], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Cost per topic and inflow per partition; a topic without lag may have no known cost, and then no say."""
    known = {t: look.rates.cost[t].value for t in topics if t in look.rates.cost}
    usual = float(np.median(list(known.values()))) if known else 1.0
    heard = np.array([t in known for t in topics])
    rate = np.where(heard[look.lags.topic[rows]], look.lags.inflow[rows], 0.0)
    return np.array([known.get(t, usual) for t in topics]), rate


def _lag(look: Look) -> npt.NDArray[np.float64]:
    """Lag as it counts for a plan: at its least for the overloaded member, at its most for the others."""
    lags, load = look.lags, look.load
    at_least = lags.owner == load.greatest
    lag = np.where(at_least, lags.low, lags.high)
    return np.where(lags.counted & ~look.aside, np.maximum(lag, 0), 0).astype(np.float64)


def _units(look: Look, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Partition p of all topics is one unit; topics of another partition count go by their own number."""
    lags = look.lags
    if look.kind in (GroupKind.FAUST, GroupKind.STREAMS):
        return lags.partition[rows]
    counts = np.array([look.seen.ends[t].partitions for t in lags.topics], np.int64)
    return counts[lags.topic[rows]] * (int(lags.partition.max()) + 1) + lags.partition[rows]


def co_partitioned(look: Look) -> bool:
    """Whether partition p of several topics must stay with one member."""
    if look.policy.co_partitioned is not None:
        return look.policy.co_partitioned
    if look.kind in (GroupKind.FAUST, GroupKind.STREAMS):
        return True
    roster = look.roster
    return bool(roster and roster.protocol == "range" and _paired_now(roster))


def _paired_now(roster: Roster) -> bool:
    """Whether topics of equal partition count are held in pairs now, as range does it."""
    by_count: dict[int, list[npt.NDArray[np.int32]]] = {}
    for owner in roster.owners.values():
        by_count.setdefault(len(owner), []).append(owner)
    several = [owners for owners in by_count.values() if len(owners) > 1]
    return bool(several) and all((o == owners[0]).all() for owners in several for o in owners)
