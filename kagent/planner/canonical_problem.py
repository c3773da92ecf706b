"""The problem as the solvers see it: sizes, speeds, homes and who may hold what; canonical, so that order means nothing.

One form serves both objectives. A member with backlog A, inflow B and speed c is done after A ÷ (c - B): with no
inflow that is its work. For a target T a unit has the size work + T·inflow and a member room for T·speed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kagent.planner.problem import Codes, Flags, Numbers, PlanningProblem, summed

CLOSE = 1e-9
"""Relative slack of every comparison: sums of floats in another order differ by less."""
NEVER = 1e18
"""Where the score of a member that never drains begins; above it, more overload is worse."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Units × members as numbers. Units are what moves: a partition, or partitions that must stay together."""

    work: Numbers
    """Per unit."""
    inflow: Numbers
    """Per unit; all 0 where work is the objective."""
    speed: Numbers
    """Per member."""
    home: Codes
    """Member per unit; -1: must be placed."""
    kind: Codes
    """Row of ``may`` per unit."""
    may: Flags
    """[kind, member]: who may hold units of the kind."""

    def __len__(self) -> int:
        return len(self.work)

    @property
    def eligible(self) -> Flags:
        """[unit, member], for cases small enough to spell it out."""
        return self.may[self.kind]

    @property
    def draining(self) -> bool:
        """Whether the time until drained is the objective."""
        return bool(self.inflow.any())

    def take(self, units: Flags) -> Case:
        """The case of some units only."""
        return replace(
            self,
            work=self.work[units],
            inflow=self.inflow[units],
            home=self.home[units],
            kind=self.kind[units],
        )

    def sums(self, at: Codes) -> tuple[Numbers, Numbers]:
        """Backlog and inflow per member under an assignment; units at -1 count nowhere."""
        members = len(self.speed)
        return summed(at, self.work, members), summed(at, self.inflow, members)

    def scores(self, at: Codes) -> Numbers:
        """Per member: the objective's value under an assignment."""
        return score(*self.sums(at), self.speed)

    def greatest(self, at: Codes) -> float:
        """The objective: the greatest member's value; inf where one never drains."""
        if not len(self.speed):
            return 0.0
        return value(float(self.scores(at).max()))

    def sizes(self, target: float) -> tuple[Numbers, Numbers]:
        """Size per unit and room per member at a target."""
        if not self.draining:
            return self.work, target * self.speed
        return self.work + target * self.inflow, target * self.speed


def score(work: Numbers, inflow: Numbers, speed: Numbers) -> Numbers:
    """Work ÷ (speed - inflow); where that never ends, a number above NEVER that grows with the overload."""
    left = speed - inflow
    drains = left > CLOSE * speed
    # A finite number, not inf, for members that never drain: the descent must see which of two assignments is nearer to draining.
    done: Numbers = np.where(drains, work / np.where(drains, left, 1.0), NEVER * (1.0 + inflow / speed))
    return done


def value(scored: float) -> float:
    """A score as the value it stands for."""
    return scored if scored < NEVER else float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class Canonical:
    """A problem in canonical order with its units, and the way back."""

    case: Case
    members: Codes
    """Original member code per canonical one."""
    unit_of: Codes
    """Unit per original partition; -1 where no member subscribes to its topic."""
    forced: Codes
    """Units that must leave their owner, who may not hold them; counted as moves."""
    owner: Codes
    """Canonical owner per unit before anything, also where it may not hold it."""


def canonical(problem: PlanningProblem, drain: bool) -> Canonical:
    """The problem's case, the same whatever the order in which members and partitions were given."""
    # Sorted by name: members and partitions in another order must give the same plan, or two workers would contradict each other.
    order = _member_order(problem)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    rows = _partition_order(problem)
    unit, count = _unit_codes(problem, rows)
    owner = np.where(problem.owner >= 0, rank[problem.owner], -1) if len(order) else problem.owner
    home = _unit_owner(unit, owner, count)
    kind, may = _kinds(problem, unit, count, order)
    # A pinned partition is one that a single member may hold: no solver needs to know of pins.
    kind, may = _pin(problem, unit, owner, home, kind, may)
    work, inflow, speed = _numbers(problem, unit, count, order, drain)
    placeable: Flags = np.asarray(may.any(axis=1))[kind] if count else np.zeros(0, np.bool_)
    allowed = np.zeros(count, np.bool_)
    held = home >= 0
    allowed[held] = may[kind[held], home[held]]
    # New number of each unit that is left, once those without a subscriber are out.
    keep = np.cumsum(placeable) - 1
    case = Case(work, inflow, speed, np.where(allowed, home, -1), kind, may).take(placeable)
    return Canonical(
        case,
        order,
        np.where(placeable[unit], keep[unit], -1) if count else unit,
        keep[held & ~allowed & placeable],
        home[placeable],
    )


def _member_order(problem: PlanningProblem) -> Codes:
    names = problem.instance or (None,) * len(problem.members)
    keys = [
        (other or own, own, at) for at, (own, other) in enumerate(zip(problem.members, names, strict=True))
    ]
    return np.array([at for _, _, at in sorted(keys)], np.int64)


def _partition_order(problem: PlanningProblem) -> Codes:
    by_name = sorted(range(len(problem.topics)), key=problem.topics.__getitem__)
    rank = np.empty(len(by_name), np.int64)
    rank[by_name] = np.arange(len(by_name))
    return np.lexsort((problem.partition, rank[problem.topic])) if len(problem) else problem.topic


def _unit_codes(problem: PlanningProblem, rows: Codes) -> tuple[Codes, int]:
    """Unit per partition, numbered by the first partition of each in canonical order."""
    unit = np.empty(len(problem), np.int64)
    if problem.unit is None:
        unit[rows] = np.arange(len(problem))
        return unit, len(problem)
    _, first, inverse = np.unique(problem.unit[rows], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    unit[rows] = rank[inverse]
    return unit, len(first)


def _unit_owner(unit: Codes, owner: Codes, count: int) -> Codes:
    """Who has most of the unit's partitions; the smallest code among equals."""
    home = np.full(count, -1, np.int64)
    held = owner >= 0
    if held.any():
        pairs, held_by = np.unique(np.stack([unit[held], owner[held]]), axis=1, return_counts=True)
        order = np.lexsort(
            (-pairs[1], held_by)
        )  # the last write wins: most partitions, then the smallest code
        home[pairs[0][order]] = pairs[1][order]
    return home


def _kinds(problem: PlanningProblem, unit: Codes, count: int, order: Codes) -> tuple[Codes, Flags]:
    """Kind per unit, and who may hold it: those subscribed to every topic of the unit."""
    may_topic = (
        problem.subscribed[problem.member_class[order]].T
        if len(order)
        else np.zeros((len(problem.topics), 0), np.bool_)
    )
    kind = np.zeros(count, np.int64)
    if problem.unit is None or not count:
        kind[unit] = problem.topic
        return _distinct(kind, may_topic)
    pairs = np.unique(np.stack([unit, problem.topic]), axis=1)
    together: dict[tuple[int, ...], int] = {}
    rows = []
    for topics in np.split(pairs[1], np.flatnonzero(np.diff(pairs[0])) + 1):
        key = tuple(topics.tolist())
        rows.append(together.setdefault(key, len(together)))
    may = np.array([may_topic[list(key)].all(axis=0) for key in together], np.bool_)
    return _distinct(np.array(rows, np.int64), may)


def _distinct(kind: Codes, may: Flags) -> tuple[Codes, Flags]:
    if len(may) <= 1:
        return kind, may
    # Topics with the same subscribers are one kind: bounds and searches go by kinds, of which there are few.
    rows, inverse = np.unique(may, axis=0, return_inverse=True)
    return inverse.reshape(-1)[kind], rows


def _pin(
    problem: PlanningProblem, unit: Codes, owner: Codes, home: Codes, kind: Codes, may: Flags
) -> tuple[Codes, Flags]:
    """Gives pinned units a kind that only their owner may hold; a pinned partition without an owner is free."""
    if problem.pinned is None or not problem.pinned.any():
        return kind, may
    fixed = problem.pinned & (owner >= 0)
    stays = _unit_owner(unit[fixed], owner[fixed], len(home))
    home[stays >= 0] = stays[stays >= 0]  # the pinned partitions decide where their unit stays
    units = np.unique(unit[fixed])
    owners, inverse = np.unique(home[units], return_inverse=True)
    only = np.zeros((len(owners), may.shape[1]), np.bool_)
    only[np.arange(len(owners)), owners] = True
    kind = kind.copy()
    kind[units] = len(may) + inverse.reshape(-1)
    return kind, np.concatenate([may, only])


def _numbers(
    problem: PlanningProblem, unit: Codes, count: int, order: Codes, drain: bool
) -> tuple[Numbers, Numbers, Numbers]:
    cost = np.ones(len(problem.topics)) if problem.cost is None else problem.cost
    speed = np.ones(len(order)) if problem.speed is None else problem.speed[order]
    # Capacity in records/s of each member already holds cost and speed.
    if drain and problem.capacity is not None:
        cost, speed = np.ones(len(problem.topics)), problem.capacity[order]
    per_record = cost[problem.topic]
    work = summed(unit, problem.lag * per_record, count)
    inflow = np.zeros(count)
    if drain and problem.rate is not None:
        inflow = summed(unit, problem.rate * per_record, count)
    return work, inflow, speed
