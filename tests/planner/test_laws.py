"""What holds for every plan, whatever the group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagent.planner import QUICK, Plan, PlanningProblem, lower_bound, plan
from kagent.planner.assignment_value import greatest, work_per_member

pytestmark = pytest.mark.slow  # examples are planned, some of them exhaustively

modest = settings(max_examples=35, deadline=None, suppress_health_check=[HealthCheck.too_slow])
data = st.data()


@pytest.fixture(scope="module")
def drawn(groups: Callable[..., st.SearchStrategy[PlanningProblem]]) -> st.SearchStrategy[PlanningProblem]:
    return groups()


def may(problem: PlanningProblem) -> np.ndarray:
    return problem.subscribed[problem.member_class][:, problem.topic].T


def whole_units(problem: PlanningProblem) -> bool:
    """Whether everything is held, by members that may, and units are together: nothing has to move."""
    held = (problem.owner >= 0).all() and may(problem)[np.arange(len(problem)), problem.owner].all()
    if not held or problem.unit is None:
        return bool(held)
    return all(len(set(problem.owner[problem.unit == unit])) == 1 for unit in np.unique(problem.unit))


def same(one: Plan, other: Plan) -> bool:
    return (one.moves, one.frontier, one.verdict) == (other.moves, other.frontier, other.verdict)


@modest
@given(data)
def test_every_partition_goes_to_one_member_that_may_hold_it(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)

    told = plan(problem, budget=QUICK)

    placed = told.assigned >= 0
    pinned = np.zeros(len(problem), np.bool_) if problem.pinned is None else problem.pinned
    able = may(problem)[np.arange(len(problem)), told.assigned]
    stuck = pinned & (problem.owner >= 0)
    assert (able | stuck)[placed & (problem.unit is None)].all()
    if problem.unit is None:
        assert (placed == (may(problem).any(axis=1) | stuck)).all()
    assert sum(map(len, told.assignment().values())) == placed.sum()


@modest
@given(data)
def test_the_greatest_never_rises_unless_something_had_to_move(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)

    told = plan(problem, budget=QUICK)

    if whole_units(problem):
        assert told.after <= told.now * (1 + 1e-9)
        values = [value for _, value in told.frontier]
        assert values == sorted(values, reverse=True)


@modest
@given(data)
def test_pinned_partitions_stay_and_units_stay_together(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)

    told = plan(problem, budget=QUICK)

    if problem.unit is not None:
        for unit in np.unique(problem.unit):
            assert len(set(told.assigned[problem.unit == unit])) == 1
    elif problem.pinned is not None:
        fixed = problem.pinned & (problem.owner >= 0)
        assert (told.assigned[fixed] == problem.owner[fixed]).all()


@modest
@given(data)
def test_the_moves_lead_from_here_to_the_assignment(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)

    told = plan(problem, budget=QUICK)

    owner = {(problem.topics[t], int(p)): int(o) for t, p, o in zip(problem.topic, problem.partition, problem.owner, strict=True)}  # fmt: skip
    for move in told.moves:
        place = owner[move.topic, move.partition]
        assert move.source == (problem.members[place] if place >= 0 else None)
        owner[move.topic, move.partition] = problem.members.index(move.to)
    lists = told.assignment()
    assert all(owner[row] == at for at, name in enumerate(problem.members) for row in lists[name])


@modest
@given(data)
def test_the_bounds_hold_and_the_figures_are_those_of_the_assignment(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)

    told = plan(problem, budget=QUICK)

    assert told.lower_bound <= told.best * (1 + 1e-9)
    assert told.best <= told.after
    work = work_per_member(problem, told.assigned)
    assert told.after == pytest.approx(greatest(problem, told.assigned, told.objective, work))
    assert told.move_bound <= told.move_count
    if told.objective == "work" and problem.rate is None:
        assert lower_bound(problem) <= told.best * (1 + 1e-9)


@modest
@given(data)
def test_the_same_input_gives_the_same_plan_in_whatever_order(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)
    rows = np.array(data.draw(st.permutations(range(len(problem)))), np.int64)
    mixed = replace(
        problem, topic=problem.topic[rows], partition=problem.partition[rows], lag=problem.lag[rows],
        owner=problem.owner[rows],
        rate=None if problem.rate is None else problem.rate[rows],
        unit=None if problem.unit is None else problem.unit[rows],
        pinned=None if problem.pinned is None else problem.pinned[rows],
    )  # fmt: skip

    told = plan(problem, budget=QUICK)

    assert same(plan(problem, budget=QUICK), told)
    assert same(plan(mixed, budget=QUICK), told)


@modest
@given(data)
def test_no_more_moves_are_made_than_allowed(
    drawn: st.SearchStrategy[PlanningProblem], data: st.DataObject
) -> None:
    problem = data.draw(drawn)
    most = data.draw(st.integers(0, 3))

    told = plan(problem, max_moves=most, budget=QUICK)

    if whole_units(problem):
        assert told.move_count <= most


@settings(max_examples=30, deadline=None)
@given(data)
def test_small_groups_get_the_exact_best_and_the_fewest_moves(
    groups: Callable[..., st.SearchStrategy[PlanningProblem]],
    brute: Callable[..., tuple[float, int]],
    data: st.DataObject,
) -> None:
    """Every assignment is tried: all groups of up to 6 partitions and 3 members."""
    problem = data.draw(groups(6, 3, extras=False))
    if not whole_units(problem):
        return

    told = plan(problem)

    best, fewest = brute(problem, 1.05 * told.best)
    assert told.best == pytest.approx(best)
    assert told.move_count == fewest


@settings(max_examples=30, deadline=None)
@given(data)
def test_small_groups_drain_as_soon_as_they_can_with_the_fewest_moves(
    brute: Callable[..., tuple[float, int]], data: st.DataObject
) -> None:
    """Every assignment is tried: two to three members of unequal capacity, up to 6 partitions with inflow."""
    names = ["a", "b", "c"][: data.draw(st.integers(2, 3))]
    lags = data.draw(st.lists(st.integers(1, 1000), min_size=2, max_size=6))
    owners = [data.draw(st.sampled_from(names)) for _ in lags]
    problem = PlanningProblem.of(
        {name: ["t"] for name in names},
        {"t": lags},
        {name: [("t", at) for at, owner in enumerate(owners) if owner == name] for name in names},
        rates={"t": [data.draw(st.sampled_from([0.0, 1.0, 7.0, 20.0])) for _ in lags]},
        capacities={name: data.draw(st.sampled_from([30.0, 60.0])) for name in names},
    )

    told = plan(problem)

    best, fewest = brute(problem, 1.05 * told.best, told.objective)
    assert told.best == pytest.approx(best)
    assert told.move_count == fewest
    assert (told.objective == "work") == (brute(problem, None, "drain")[0] == float("inf"))


def test_where_pinned_partitions_of_a_unit_lie_with_two_members_their_order_decides_nothing() -> None:
    problem = PlanningProblem(
        members=("m0", "m1"),
        topics=("a", "b"),
        topic=np.array([0, 1]),
        partition=np.array([0, 0]),
        lag=np.array([5.0, 7.0]),
        owner=np.array([0, 1]),
        subscribed=np.ones((1, 2), np.bool_),
        member_class=np.zeros(2, np.int64),
        unit=np.zeros(2, np.int64),
        pinned=np.ones(2, np.bool_),
    )
    turned = replace(
        problem,
        topic=problem.topic[::-1],
        partition=problem.partition[::-1],
        lag=problem.lag[::-1],
        owner=problem.owner[::-1],
    )

    assert same(plan(problem, budget=QUICK), plan(turned, budget=QUICK))
