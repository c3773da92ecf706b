"""From where a group stands to the plan: the public face of the planner."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kagent.planner import bounds, scale, search, spread
from kagent.planner.assignment_value import drain_per_member, drains, moved_share, skew, work_per_member
from kagent.planner.canonical_problem import CLOSE, Canonical, Case, canonical, score
from kagent.planner.problem import Codes, Flags, Numbers, PlanningProblem
from kagent.planner.search import Budget
from kagent.text import partition_name

REPAIRABLE = 400_000
"""Units × members up to which a pass that missed its target is repaired by exchanges."""
SKEWED = 1.5
"""From this skew on, a group that no move can improve is reported as limited by one partition, or as having idle members."""


@dataclass(frozen=True, slots=True)
class Move:
    """One partition from one member to another; ``source`` is None where it had no owner."""

    topic: str
    partition: int
    source: str | None
    to: str
    lag: float


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What to do, what it gives, and how good that is. Values are seconds of work, or records where costs are unknown."""

    problem: PlanningProblem
    assigned: Codes
    """Member code per partition; -1 where no member subscribes to its topic."""
    moves: tuple[Move, ...]
    """Most lag first."""
    move_count: int
    """Units moved: partitions, or partition numbers of co-partitioned topics; first placements do not count."""
    move_bound: int
    """No plan that comes as near the best has fewer moves."""
    objective: str
    """``work``, or ``drain``: seconds until drained."""
    now: float
    """Greatest member value under the current assignment."""
    after: float
    """Greatest member value under this plan."""
    best: float
    """Smallest greatest member value of any assignment found, however many moves it takes."""
    lower_bound: float
    """No assignment whatever gets below it: proven."""
    skew_now: float
    skew_after: float
    work_now: Numbers
    """Work per member under the current assignment."""
    work_after: Numbers
    frontier: tuple[tuple[int, float], ...]
    """[moves, greatest]: the least possible greatest work for each number of moves."""
    r_score: float | None
    """Moved inflow over one member's capacity (Landau et al.); None where rates or capacities are unknown."""
    drain_now: Numbers | None
    """Seconds until drained per member; inf where inflow is more than it can do; None where unknown."""
    drain_after: Numbers | None
    verdict: str
    """``rebalance`` where moves help; else ``balanced``, ``hot_partition``, ``idle_members`` or ``no_members``."""
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """How far the plan is above the proven bound at most; 0.05 is 5 %."""
        if self.after <= self.lower_bound:
            return 0.0
        return self.after / self.lower_bound - 1 if self.lower_bound > 0 else float("inf")

    @property
    def values(self) -> tuple[Numbers, Numbers]:
        """Per member, now and after, in the objective's unit."""
        if self.objective == "drain" and self.drain_now is not None and self.drain_after is not None:
            return self.drain_now, self.drain_after
        return self.work_now, self.work_after

    def assignment(self) -> dict[str, list[tuple[str, int]]]:
        """{member: [(topic, partition), …]}, every member present; one object a partition, so only when asked."""
        problem = self.problem
        lists: dict[str, list[tuple[str, int]]] = {name: [] for name in problem.members}
        order = np.lexsort((problem.partition, problem.topic, self.assigned))
        order = order[self.assigned[order] >= 0]
        for member, topic, number in zip(
            self.assigned[order].tolist(),
            problem.topic[order].tolist(),
            problem.partition[order].tolist(),
            strict=True,
        ):
            lists[problem.members[member]].append((problem.topics[topic], number))
        return lists


def lower_bound(problem: PlanningProblem, rounds: int = 8) -> float:
    """No assignment has a smaller greatest member value: a cheap bound to stop at before planning.

    In seconds of work (records where costs are unknown), or seconds until drained where rates and costs or
    capacities are known and some assignment drains.
    """
    case, bound = _weighty(problem, drains(problem), rounds)[1:3]
    return bound if len(case) else 0.0


def plan(
    problem: PlanningProblem,
    tolerance: float = 0.05,
    max_moves: int | None = None,
    budget: Budget | None = None,
) -> Plan:
    """The fewest moves with which the greatest member value is within the tolerance of the best of any assignment."""
    budget = budget or Budget()
    if not problem.members or not len(problem):
        return _nothing(problem)
    notes: list[str] = []
    drain = drains(problem)
    canon, case, bound, weighty = _weighty(problem, drain)
    # The lower bound already shows that no assignment drains: no search.
    if drain and bound == float("inf"):
        notes.append(_overrun(problem))
        drain = False
        canon, case, bound, weighty = _weighty(problem, drain)
    answer = _answer(case, bound, tolerance, max_moves, budget)
    if drain and answer.best == float("inf"):
        notes.append("No assignment was found under which every member drains; work is levelled instead.")
        canon, case, bound, weighty = _weighty(problem, False)
        drain, answer = False, _answer(case, bound, tolerance, max_moves, budget)
    at = _whole(canon, weighty, answer.plan.at)
    # Last: racks choose among plans that are equally good, and may not cost a move more.
    at = _nearer_racks(problem, canon, at, answer.plan.greatest)
    return _result(problem, canon, at, answer, drain, notes)


def _weighty(
    problem: PlanningProblem, drain: bool, rounds: int = bounds.ROUNDS
) -> tuple[Canonical, Case, float, Codes]:
    """The canonical problem, the case of the units that weigh anything, its bound, and which units those are."""
    canon = canonical(problem, drain)
    # Units without lag and inflow need no plan, and the search grows with units × members.
    weighs = (canon.case.work > 0) | (canon.case.inflow > 0)
    case = canon.case if weighs.all() else canon.case.take(weighs)
    return canon, case, bounds.lower_bound(case, rounds), np.flatnonzero(weighs)


def _answer(
    case: Case, bound: float, tolerance: float, max_moves: int | None, budget: Budget
) -> search.SearchResult:
    now = case.greatest(case.home) if len(case) else 0.0
    enough = (1 + tolerance) * bound if budget.settle else bound
    if bool((case.home >= 0).all()) and now <= enough * (1 + CLOSE):
        here = search.ReachedAssignment(case.home, 0, now)
        return search.SearchResult(here, now, min(bound, now), 0, (here,))
    if len(case) * len(case.speed) <= budget.cells:
        return search.solve(case, bound, tolerance, max_moves, budget)
    return _levelled(case, now, bound, tolerance, max_moves)


def _levelled(
    case: Case, now: float, bound: float, tolerance: float, max_moves: int | None
) -> search.SearchResult:
    """Large groups: passes at a few targets."""
    finest = scale.finest(case, bound)
    ideal = None
    if len(case) * len(case.speed) <= REPAIRABLE:
        ideal = spread.spread(case, bound, spread.Effort(1500, 4))
    best = min(finest.greatest, float("inf") if ideal is None else case.greatest(ideal))
    target = (1 + tolerance) * best
    if bool((case.home >= 0).all()) and now <= target * (1 + CLOSE):
        here = search.ReachedAssignment(case.home, 0, now)
        return search.SearchResult(here, min(best, now), bound, 0, (here,))
    chosen = scale.level(case, target)
    plan = search.ReachedAssignment(chosen.at, chosen.moves, chosen.greatest)
    if ideal is not None and chosen.greatest > target * (1 + CLOSE):
        plan = search.repaired(case, chosen.at, ideal, target)
    passes = [
        search.ReachedAssignment(one.at, one.moves, one.greatest)
        for one in (*scale.frontier(case, now, target), chosen, finest)
    ]
    line = _falling(case, now, [*passes, plan])
    if max_moves is not None and plan.moves > max_moves:
        plan = max(
            (one for one in line if one.moves <= max_moves), key=lambda one: one.moves, default=line[0]
        )
    return search.SearchResult(
        plan, min(best, plan.greatest), bound, min(chosen.bound, plan.moves), tuple(line)
    )


def _falling(
    case: Case, now: float, passes: list[search.ReachedAssignment]
) -> list[search.ReachedAssignment]:
    """Those of the passes that reach less than any with as few moves, from the present on."""
    line: list[search.ReachedAssignment] = []
    if bool((case.home >= 0).all()):
        line.append(search.ReachedAssignment(case.home, 0, now))
    for one in sorted(passes, key=lambda one: (one.moves, one.greatest)):
        if not line or one.greatest < line[-1].greatest * (1 - CLOSE):
            line.append(one)
    return line


def _whole(canon: Canonical, weighty: Codes, at: Codes) -> Codes:
    """All units' members: what weighs nothing stays, or goes where the fewest units are."""
    case = canon.case
    whole = case.home.copy()
    whole[weighty] = at
    counts = np.bincount(whole[whole >= 0], minlength=len(case.speed))
    for unit in np.flatnonzero(whole < 0).tolist():
        able = np.flatnonzero(case.may[case.kind[unit]])
        whole[unit] = able[counts[able].argmin()]
        counts[whole[unit]] += 1
    return whole


def _nearer_racks(problem: PlanningProblem, canon: Canonical, at: Codes, greatest: float) -> Codes:
    """Among plans equally good, one whose moved units have a replica in their member's rack."""
    if not (problem.rack and problem.replica_racks):
        return at
    case = canon.case
    near = _near(problem, canon)
    work, inflow = case.sums(at)
    for unit in np.flatnonzero(at != case.home).tolist():
        able = case.may[case.kind[unit]] & near[unit]
        if near[unit, at[unit]] or not able.any():
            continue
        then = score(work + case.work[unit], inflow + case.inflow[unit], case.speed)
        then[~able] = np.inf
        to = int(then.argmin())
        # Not back home, which would undo a move of the plan, and nowhere where the greatest value would rise.
        if to != case.home[unit] and then[to] <= greatest * (1 + CLOSE):
            for column, sums in ((case.work, work), (case.inflow, inflow)):
                sums[at[unit]] -= column[unit]
                sums[to] += column[unit]
            at[unit] = to
    return at


def _near(problem: PlanningProblem, canon: Canonical) -> Flags:
    """[unit, member]: whether every partition of the unit has a replica in the member's rack."""
    near = np.ones((len(canon.case), len(canon.members)), np.bool_)
    for row, racks in enumerate(problem.replica_racks):
        if canon.unit_of[row] >= 0:
            near[canon.unit_of[row]] &= [problem.rack[member] in racks for member in canon.members.tolist()]
    return near


def _result(
    problem: PlanningProblem,
    canon: Canonical,
    at: Codes,
    answer: search.SearchResult,
    drain: bool,
    notes: list[str],
) -> Plan:
    """The answer in the problem's own order and names."""
    assigned = np.where(canon.unit_of >= 0, canon.members[at[canon.unit_of]] if len(at) else -1, -1)
    forced = len(canon.forced)
    work_now, work_after = work_per_member(problem, problem.owner), work_per_member(problem, assigned)
    drain_now, drain_after = (drain_per_member(problem, owner) for owner in (problem.owner, assigned))
    measure_now, measure_after = (
        (drain_now, drain_after)
        if drain and drain_now is not None and drain_after is not None
        else (work_now, work_after)
    )
    now, after = float(measure_now.max()), float(measure_after.max())
    best = min(answer.best, after)
    stranded = int((assigned < 0).sum())
    if stranded:
        notes.append(f"{stranded} partitions of topics without a subscriber are left out.")
    result = Plan(
        problem,
        assigned,
        _moves(problem, assigned),
        int(((canon.owner >= 0) & (at != canon.owner)).sum()),
        answer.move_bound + forced,
        "drain" if drain else "work",
        now,
        after,
        best,
        min(answer.bound, best),
        skew(work_now),
        skew(work_after),
        work_now,
        work_after,
        tuple((one.moves + forced, one.greatest) for one in answer.frontier),
        moved_share(problem, assigned),
        drain_now,
        drain_after,
        "balanced",
    )
    verdict, note = _verdict(result, canon)
    return replace(result, verdict=verdict, notes=(*notes, *note))


def _moves(problem: PlanningProblem, assigned: Codes) -> tuple[Move, ...]:
    rows = np.flatnonzero((assigned >= 0) & (assigned != problem.owner))
    # Most lag first: who reads only the first few moves, or applies some, should get the most of it.
    rows = rows[np.lexsort((problem.partition[rows], problem.topic[rows], -problem.lag[rows]))]
    # Owner -1 picks the last entry: None, for a partition without an owner.
    names = (*problem.members, None)
    return tuple(
        Move(
            problem.topics[problem.topic[row]],
            int(problem.partition[row]),
            names[problem.owner[row]],
            problem.members[assigned[row]],
            float(problem.lag[row]),
        )
        for row in rows.tolist()
    )


def _verdict(result: Plan, canon: Canonical) -> tuple[str, tuple[str, ...]]:
    """The verdict that follows from work alone, and why."""
    case, problem = canon.case, result.problem
    note: tuple[str, ...] = ()
    hot = int(case.work.argmax()) if len(case) else -1
    bound_by_one = hot >= 0 and result.best <= bounds.largest(case) * (1 + 0.05) and result.best > 0
    if bound_by_one and result.skew_after >= SKEWED:
        row = int(np.flatnonzero(canon.unit_of == hot)[0])
        name, number = problem.topics[problem.topic[row]], int(problem.partition[row])
        note = (
            f"Limited by {partition_name(name, number)}: the member that holds it has the most work, and more members do not help.",
        )
    if result.moves:
        return "rebalance", note
    if result.skew_now < SKEWED or not bound_by_one:
        return "balanced", ()
    weighty = case.work[case.work > 0]
    if len(weighty) < len(problem.members) and weighty.max() < SKEWED * weighty.mean():
        return "idle_members", (f"{len(weighty)} partitions have lag, for {len(problem.members)} members.",)
    return "hot_partition", note


def _overrun(problem: PlanningProblem) -> str:
    return "More comes in than the members can do: nothing drains for good, and work is levelled instead."


def _nothing(problem: PlanningProblem) -> Plan:
    members = len(problem.members)
    zero = np.zeros(members)
    verdict = "balanced" if members else "no_members"
    return Plan(
        problem, np.full(len(problem), -1, np.int64), (), 0, 0, "work", 0.0, 0.0, 0.0, 0.0, 1.0, 1.0,
        zero, zero, ((0, 0.0),), None, None, None, verdict,
    )  # fmt: skip
