"""Every strategy of ``kagent.strategies`` beside the plan, measured the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kagent.errors import KagentError
from kagent.planner.assignment_value import greatest, skew, work_per_member
from kagent.planner.plan import Plan
from kagent.planner.problem import Codes, PlanningProblem
from kagent.strategies import STRATEGIES, Assignment, Scenario, Strategy, assign
from kagent.strategies.availability import feasible


@dataclass(frozen=True, slots=True)
class Alternative:
    """What one strategy would give."""

    strategy: str
    skew: float
    greatest: float
    """In the plan's own unit: work, or seconds until drained."""
    moves: int
    """Partitions that change hands."""
    feasible: str
    """``yes``, ``no`` or ``unknown``: whether groups of this kind can use it."""
    unsafe: str | None
    """Why it must not be used: ``co-partitioning`` where it parts what must stay together."""
    assigned: Codes = field(compare=False, repr=False)
    """Member of each partition of the plan's problem."""


def alternatives(
    plan: Plan, scenario: Scenario, kind: str | None = None, member_ids: Sequence[str] | None = None
) -> tuple[Alternative, ...]:
    """All strategies that have an answer for the group, the least greatest first.

    ``kind`` is a group kind as recommendations have it; without it, feasibility is unknown. ``member_ids``: the
    scenario's id of each of the plan's members, where the plan calls them by other names.
    """
    found = []
    for strategy in STRATEGIES.values():
        try:
            given = assign(strategy.name, scenario)
        # A strategy may have no answer for this group: it is left out, the others stand.
        except KagentError:
            continue
        owner = _owners(member_ids or plan.problem.members, plan.problem, scenario, given)
        found.append(_measured(plan, owner, strategy, kind))
    return tuple(sorted(found, key=lambda one: (one.greatest, one.moves, one.strategy)))


def _measured(plan: Plan, owner: Codes, strategy: Strategy, kind: str | None) -> Alternative:
    problem = plan.problem
    unsafe = "co-partitioning" if _parts_units(problem, owner) else None
    moves = int(((problem.owner >= 0) & (owner >= 0) & (owner != problem.owner)).sum())
    work = work_per_member(problem, owner)
    most = greatest(problem, owner, plan.objective, work)
    return Alternative(strategy.name, skew(work), most, moves, feasible(strategy, kind), unsafe, owner)


def _owners(ids: Sequence[str], problem: PlanningProblem, scenario: Scenario, given: Assignment) -> Codes:
    """Member per partition of the problem; what a cooperative round withholds counts for whom it is meant."""
    layout, owner = scenario.layout, np.full(scenario.layout.total, -1, np.int64)
    # A cooperative round withholds what its present owner must revoke first (KIP-429); the second round assigns it.
    for part in (given, given.withheld):
        if part is not None:
            owner[layout.numbers(part.topic, part.partition)] = part.member
    place = {name: at for at, name in enumerate(ids)}
    member = np.array([place[name] for name in scenario.member_ids], np.int64)
    start = np.array([layout.start[layout.code_of[name]] for name in problem.topics], np.int64)
    rows = owner[start[problem.topic] + problem.partition]
    return np.where(rows >= 0, member[rows], -1)


def _parts_units(problem: PlanningProblem, owner: Codes) -> bool:
    """Whether partitions of one unit end with different members."""
    if problem.unit is None:
        return False
    order = np.argsort(problem.unit, kind="stable")
    same = problem.unit[order][1:] == problem.unit[order][:-1]
    return bool((same & (owner[order][1:] != owner[order][:-1])).any())
