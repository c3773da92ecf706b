"""The bounds: never above what exists, and tight where they can be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.planner.bounds import largest, lower_bound, member_sets, pigeonhole, removals
from kagent.planner.canonical_problem import Case
from kagent.planner.fewest import Goal, fewest


def case(work: list[float], speed: list[float], may: list[list[int]], kind: list[int]) -> Case:
    flags = np.array(may, np.bool_)
    home = np.array([int(np.flatnonzero(flags[k])[0]) for k in kind], np.int64)
    return Case(
        np.array(work, float), np.zeros(len(work)), np.array(speed, float), home, np.array(kind), flags
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    members = draw(st.integers(1, 3))
    kinds = draw(st.integers(1, 2))
    row = st.lists(st.integers(0, 1), min_size=members, max_size=members).filter(any)
    work = draw(st.lists(st.integers(1, 30), min_size=1, max_size=7))
    return case(
        [float(w) for w in work],
        draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=members, max_size=members)),
        draw(st.lists(row, min_size=kinds, max_size=kinds)),
        draw(st.lists(st.integers(0, kinds - 1), min_size=len(work), max_size=len(work))),
    )


def assignments(one: Case) -> list[np.ndarray]:
    return [
        np.array(at, np.int64)
        for at in itertools.product(*(np.flatnonzero(row).tolist() for row in one.eligible))
    ]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(cases())
def test_no_assignment_is_below_the_bound(one: Case) -> None:
    best = min(one.greatest(at) for at in assignments(one))

    assert lower_bound(one) <= best * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(cases(), st.floats(1.0, 2.0))
def test_fewest_moves_are_found_and_their_bound_holds(one: Case, loose: float) -> None:
    every = assignments(one)
    target = loose * min(one.greatest(at) for at in every)
    exact = min(int((at != one.home).sum()) for at in every if one.greatest(at) <= target * (1 + 1e-9))
    movable = one.eligible.sum(axis=1) > 1

    found = fewest(Goal(*one.sizes(target), one.home, one.eligible), None)

    assert int(removals(*one.sizes(target), one.home, movable).sum()) <= exact
    assert found.bound <= exact
    assert (found.moves, found.proven) == (exact, True)


def test_a_set_of_members_carries_what_only_it_may_hold() -> None:
    one = case([10, 10, 10, 10], [1, 1, 1], [[1, 1, 0], [1, 1, 1]], [0, 0, 0, 1])

    assert member_sets(one) == 15.0
    assert largest(one) == 10.0


def test_seven_equal_partitions_put_three_on_one_of_three_members() -> None:
    assert pigeonhole(case([10.0] * 7, [1, 1, 1], [[1, 1, 1]], [0] * 7)) == 30.0


def test_counting_knows_that_fast_members_hold_more() -> None:
    assert abs(pigeonhole(case([10.0] * 4, [1, 2], [[1, 1]], [0] * 4)) - 15.0) < 1e-6


def test_a_unit_that_comes_in_faster_than_anybody_works_never_drains() -> None:
    one = case([10.0], [1.0], [[1]], [0])
    fast = Case(one.work, np.array([2.0]), one.speed, one.home, one.kind, one.may)

    assert largest(fast) == float("inf")
    assert fast.greatest(fast.home) == float("inf")
