"""What moving partitions could do for a group: the planner's problem out of its model, and the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.detect import pauses
from kagent.detect.capacity import OLDEST_MS, PRIOR_SD, RARE_GAP_S
from kagent.detect.forecast import drain_s
from kagent.detect.group_model import GroupModel
from kagent.detect.inflow import Interval, totals
from kagent.lag.chance import UNSEEN, Z
from kagent.lag.membership import NOBODY
from kagent.planner import QUICK, Plan, PlanningProblem, plan
from kagent.planner.problem import Codes, classes

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cost:
    """``pause_s``: for how long a rebalance stops who must stop; ``r_score``: inflow of what moves ÷ one member's capacity (Landau
    et al., arXiv 2402.06085), None where capacities are unknown; ``drain_s``: the plan's T with that pause, None where
    it never ends or is unknown."""

    pause_s: float
    r_score: float | None
    drain_s: float | None


@dataclass(frozen=True, eq=False)
class Reassignment:
    """A plan over the partitions that count. ``rows``: their places in the group's columns; ``paired``: whether partition numbers
    move, not partitions; ``seconds``: whether work is in seconds; ``promise``: least and most seconds until the last member has
    caught up, None where that cannot be promised; ``cost``: what the rebalance that carries it out costs;
    ``cautious``: whether it was made with more inflow than is likely."""

    plan: Plan
    rows: Longs
    paired: bool
    seconds: bool
    promise: tuple[float, float] | None
    cost: Cost
    cautious: bool

    @property
    def now(self) -> float:
        """Greatest work under the current assignment."""
        return float(self.plan.work_now.max())

    @property
    def after(self) -> float:
        """Greatest work under the plan."""
        return float(self.plan.work_after.max())

    @property
    def drain(self) -> tuple[float | None, float | None]:
        """T now and after the plan, in s; None where it never ends or is unknown."""
        now, after = self.plan.drain_now, self.plan.drain_after
        return _finite(now), _finite(after)

    @property
    def helps(self) -> bool:
        """Whether the plan moves anything and its T, or its greatest work, is less than today's."""
        if not self.plan.moves:
            return False
        now, after = self.plan.drain_now, self.plan.drain_after
        if now is not None and after is not None and self.plan.objective == "drain":
            return bool(after.max() < now.max())
        return self.after < self.now

    @property
    def earns_back(self) -> bool:
        """Whether the group has caught up sooner than without the rebalance, its pause counted; true where times are unknown."""
        now, _ = self.drain
        return now is None or self.cost.drain_s is None or self.cost.drain_s < now

    @property
    def gain(self) -> float:
        """By what share the plan lowers the group's time to catch up, or its greatest work where that is unknown or endless."""
        now, after = self.drain
        if now is not None and after is not None and now > 0:
            return 1 - after / now
        if after is not None and self.plan.drain_now is not None:
            return 1.0
        return 1 - self.after / self.now if self.now > 0 else 0.0

    @property
    def bound(self) -> float:
        """No assignment has a smaller skew."""
        mean = float(self.plan.work_now.mean())
        if mean <= 0:
            return 1.0
        if self.plan.objective == "work":
            return min(self.plan.lower_bound / mean, self.plan.skew_after)
        problem = self.plan.problem
        work = problem.lag * (1.0 if problem.cost is None else problem.cost[problem.topic])
        fastest = 1.0 if problem.speed is None else float(problem.speed.max())
        return min(max(1.0, float(work.max()) / fastest / mean), self.plan.skew_after)


def _finite(drain: Floats | None) -> float | None:
    if drain is None or not len(drain) or not np.isfinite(drain.max()):
        return None
    return float(drain.max())


def reassign(model: GroupModel) -> Reassignment | None:
    """The plan for a group as it stands; None where members are unknown or nothing waits.

    Minimises T by the likely capacities and an inflow half-way to the latest minute, where that is more: an inflow that rose two minutes ago is
    in no median yet. Where that drains under no assignment, by the usual inflow. Never later than staying.
    """
    if not model.by_member or model.roster is None or model.work.max(initial=0.0) <= 0:
        return None
    # Partitions that are excluded stay in, pinned: the plan must carry them, though they weigh nothing.
    rows = np.flatnonzero(~model.lags.orphaned & (model.lags.owner != NOBODY))
    tolerance, max_moves = model.policy.tolerance, model.policy.max_moves
    made = plan(problem_of(model, rows, careful=True), tolerance, max_moves, QUICK)
    cautious = made.drain_after is not None and bool(np.isfinite(made.drain_after.max()))
    if not cautious:
        made = plan(problem_of(model, rows, careful=False), tolerance, max_moves, QUICK)
    # As of every other action: what cannot be promised of this assignment shows in its own errors. Of 56 random groups that took their
    # plan, the promise was kept by 20 of the 22 that drain under no cautious numbers, and by 29 of the other 34.
    promise = promised(model, made.assigned, rows) if model.works_in_seconds else None
    cost = cost_of(model, made, rows)
    return Reassignment(made, rows, model.columns.paired, model.works_in_seconds, promise, cost, cautious)


def cost_of(model: GroupModel, made: Plan, rows: Longs) -> Cost:
    """What the pause of the rebalance costs: inflow goes on, and what stands still is not read."""
    pause_s = pauses.usual_s(model.state)
    drain_s = _with_pause(model, made, rows, pause_s) if made.drain_after is not None else np.inf
    r_score = None if made.r_score is None else round(made.r_score, 3)
    return Cost(round(pause_s, 1), r_score, round(drain_s, 1) if np.isfinite(drain_s) else None)


def _with_pause(model: GroupModel, made: Plan, rows: Longs, pause_s: float) -> float:
    """The plan's T if everybody pauses first; or only what moves, in groups that rebalance incrementally."""
    backlog, flow, room = _quantities(model, rows)
    if not _incremental(model):
        # Eager members all stop, so all inflow of the pause waits on top.
        return pause_s + _longest(backlog + flow * pause_s, flow, room, made.assigned)
    # Incremental protocols revoke only what moves; everything else is read on meanwhile.
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
    moved = made.assigned != made.problem.owner
    return _longest(backlog + np.where(moved, flow * pause_s, 0.0), flow, room, made.assigned)


def _incremental(model: GroupModel) -> bool:
    protocol = (model.roster.protocol if model.roster else None) or ""
    return model.kind is GroupKind.CONSUMER or "cooperative" in protocol


def problem_of(model: GroupModel, rows: Longs, careful: bool) -> PlanningProblem:
    """The planner's problem: backlog, inflow and capacity, by which the time until caught up is minimised."""
    roster, topics = model.roster, tuple(model.lags.topics)
    assert roster is not None
    subscribed, member_class = classes(
        [[t for t in topics if roster.eligible(at, t)] for at in range(len(roster.members))],
        {t: at for at, t in enumerate(topics)},
    )
    backlog, flow, room = _quantities(model, rows, careful)
    known = model.works_in_seconds
    usual = float(room.mean()) if known else 1.0
    return PlanningProblem(
        members=roster.names,
        topics=topics,
        topic=model.lags.topic[rows].astype(np.int64),
        partition=model.lags.partition[rows],
        lag=backlog,
        owner=model.lags.owner[rows].astype(np.int64),
        subscribed=subscribed,
        member_class=member_class,
        # In seconds of a usual member: `backlog` and `flow` are in work already, so topics cost alike here.
        cost=np.full(len(topics), 1.0 / usual) if known else None,
        speed=room / usual if known else None,
        rate=flow if known else None,
        unit=model.columns.unit[rows] if model.columns.paired else None,
        pinned=model.excluded[rows] | ~model.lags.known[rows],
        instance=tuple(m.instance_id for m in roster.members),
        # One member without a rack makes "nearest" undefined for the group.
        rack=tuple(m.rack or "" for m in roster.members) if all(m.rack for m in roster.members) else (),
        replica_racks=_replica_racks(model, rows),
    )


def _replica_racks(model: GroupModel, rows: Longs) -> tuple[frozenset[str], ...]:
    """Racks of each partition's replicas; none unless members and brokers both say in which they are (KIP-392, KIP-881)."""
    infos = model.seen.topics
    racks = {topic: infos[topic].replica_racks for topic in model.lags.topics if topic in infos}
    if not any(racks.values()):
        return ()
    names = (model.lags.name(row) for row in rows.tolist())
    return tuple(racks[t][p] if p < len(racks.get(t, ())) else frozenset() for t, p in names)


def _quantities(
    model: GroupModel, rows: Longs, careful: bool = False, optimist: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Backlog (work) and inflow (work/s) per partition, capacity per member; by the middle values, with more inflow (``careful``),
    or by the best (``optimist``). Set-aside partitions weigh nothing."""
    counted = model.counted[rows]
    cost, usual = model.cost[rows], model.columns.usual_rates[rows]
    rate = model.capacity.rate
    flow, room = usual, rate.mid
    if careful:
        # No less capacity than is likely: a member that was never busy would count as little more than what it keeps up with, and the backlog stay
        # with the one whose speed is known. By what arrived in the next quarter of an hour, half of 18 such plans took 2.1 times as long as the
        # best one, and half of these take 1.1 times (benchmarks/plan_truth.py --seeds 2 --first-seed 72000).
        flow = (usual + np.maximum(model.columns.rates[0, rows], usual)) / 2
    elif optimist:
        flow, room = model.columns.least_rates[rows], rate.high
    # The planner divides by capacity; a member that did nothing is a thousandth of the fastest, not zero.
    floor = max(1e-6, float(rate.mid.max()) * 1e-3)
    backlog = np.where(counted, model.columns.backlog[rows] * cost, 0.0)
    return backlog, np.where(counted, flow * cost, 0.0), np.maximum(room, floor)


def expected_s(model: GroupModel, assigned: Codes, rows: Longs, optimist: bool = False) -> float:
    """When the last member has caught up by the middle values, or by the best ones, if this assignment takes effect now, in s; no
    promise."""
    return _longest(*_quantities(model, rows, optimist=optimist), assigned)


def promised(
    model: GroupModel, assigned: Codes, rows: Longs, rate: Interval | None = None
) -> tuple[float, float] | None:
    """Between which times the last member has caught up if this assignment takes effect now, in s; None above two hours.
    ``rate``: of the members that hold it, where these are not the present ones.

    The backlog is a random walk: capacity and mean inflow are known within their errors, and the inflow goes on to stray from minute to
    minute while it drains. Beyond either end in one case of twenty.
    """
    backlog, flow, _ = _quantities(model, rows)
    rate = model.capacity.rate if rate is None else rate
    members = len(rate.mid)
    work, comes = _held(assigned, backlog, members), _held(assigned, flow, members)
    swing = _swing(model, rows, flow) * np.sqrt(_held(assigned, flow**2, members))
    # The interval of the capacity back to a standard deviation; the prior where none was measured.
    relative = np.where(rate.mid > 0, (rate.high - rate.mid) / np.maximum(rate.mid, 1e-9) / Z, PRIOR_SD)
    error = Z * np.sqrt(rate.mid**2 * (relative**2 + UNSEEN**2) + swing**2 / len(model.columns.rates))
    # Of t seconds' inflow: t/60 minutes, each of which strays by 60 times the swing.
    stray = Z * swing * np.sqrt(60.0)
    late = _drained(work, rate.mid - comes - error, stray)
    # What was longer ago tells nothing of the present speed, so for longer it promises nothing.
    if late * 1000 > OLDEST_MS:
        return None
    soon = _drained(work, rate.mid - comes + error, -stray)
    # What is true now may be known by as much as a usual gap between commits later, and members pause.
    return max(0.0, soon - RARE_GAP_S), late + pauses.usual_s(model.state) + RARE_GAP_S


def _held(assigned: Codes, amount: Floats, members: int) -> Floats:
    """The sums of the members that hold the partitions."""
    held = assigned >= 0
    return totals(assigned[held], amount[held], members)


def _swing(model: GroupModel, rows: Longs, flow: Floats) -> float:
    """By what share of itself a partition's inflow strays from one minute to the next, as a standard deviation."""
    rates = np.where(model.counted[rows], model.columns.rates[:, rows] * model.cost[rows], 0.0)
    # Of all partitions together: five minutes of a single one say little. 1.4826: from the median deviation to the standard one.
    strays = 1.4826 * np.median(np.abs(rates - np.median(rates, axis=0)), axis=0)
    return float(strays.sum() / max(float(flow.sum()), 1e-9))


def _drained(work: Floats, left: Floats, stray: Floats) -> float:
    """The greatest t with ``left * t - stray * sqrt(t) = work``, s."""
    with np.errstate(divide="ignore", invalid="ignore"):
        root = (stray + np.sqrt(stray**2 + 4 * left * work)) / (2 * left)
    return float(np.where(work <= 0, 0.0, np.where(left > 0, root**2, np.inf)).max())


def _longest(backlog: Floats, flow: Floats, room: Floats, assigned: Codes) -> float:
    work, inflow = (_held(assigned, each, len(room)) for each in (backlog, flow))
    return float(drain_s(work, inflow, room).max())
