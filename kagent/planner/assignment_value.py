"""What an assignment gives each member of a problem: work, or seconds until drained; and what it costs to get there."""

from __future__ import annotations

import numpy as np

from kagent.planner.canonical_problem import score
from kagent.planner.problem import Codes, Numbers, PlanningProblem, summed


def drains(problem: PlanningProblem) -> bool:
    """Whether drain times can be computed: inflow and a member's capacity are known, and there is lag to drain."""
    known = problem.rate is not None and (problem.cost is not None or problem.capacity is not None)
    return known and bool(problem.lag.any())


def _per_record(problem: PlanningProblem) -> Numbers:
    return np.ones(len(problem)) if problem.cost is None else problem.cost[problem.topic]


def work_per_member(problem: PlanningProblem, owner: Codes) -> Numbers:
    """Lag × cost ÷ speed, summed per member, under an assignment given as member code per partition."""
    work = summed(owner, problem.lag * _per_record(problem), len(problem.members))
    return work if problem.speed is None else work / problem.speed


def drain_per_member(problem: PlanningProblem, owner: Codes) -> Numbers | None:
    """Seconds until drained per member, where rates and costs or capacities are known."""
    if not drains(problem) or problem.rate is None:
        return None
    members = len(problem.members)
    per, speed = _per_record(problem), problem.speed
    if problem.capacity is not None:
        per, speed = np.ones(len(problem)), problem.capacity
    work = summed(owner, problem.lag * per, members)
    inflow = summed(owner, problem.rate * per, members)
    scored = score(work, inflow, np.ones(members) if speed is None else speed)
    return np.where(scored < 1e18, scored, np.inf)


def greatest(problem: PlanningProblem, owner: Codes, objective: str, work: Numbers) -> float:
    """The greatest member value of an assignment, in seconds until drained or in ``work``, its work per member."""
    drained = drain_per_member(problem, owner) if objective == "drain" else None
    values = work if drained is None else drained
    return float(values.max()) if len(values) else 0.0


def skew(work: Numbers) -> float:
    """Greatest ÷ mean over the members; 1.0 without work."""
    mean = float(work.mean()) if len(work) else 0.0
    return float(work.max()) / mean if mean > 0 else 1.0


def moved_share(problem: PlanningProblem, assigned: Codes) -> float | None:
    """Moved inflow over one member's capacity, the R-score of Landau et al.; None where rates or capacities are unknown."""
    if not drains(problem) or problem.rate is None:
        return None
    moved = (problem.owner >= 0) & (assigned >= 0) & (assigned != problem.owner)
    if problem.capacity is not None:
        # One capacity for all, as the R-score is defined; the median where members differ.
        return float(problem.rate[moved].sum() / np.median(problem.capacity))
    speed = 1.0 if problem.speed is None else float(np.median(problem.speed))
    return float((problem.rate * _per_record(problem))[moved].sum() / speed)
