"""T = backlog ÷ (capacity − inflow), and the least T that any assignment was found to have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.forecast import LONGEST_S, Placement, best_drain_s, drain_s


def placed(backlog: list[float], inflow: list[float], eligible: list[list[bool]] | None = None) -> Placement:
    return Placement(
        np.array(backlog),
        np.array(inflow),
        np.zeros(len(backlog), np.int32),
        None if eligible is None else np.array(eligible),
    )


def test_what_gets_more_than_it_can_do_never_catches_up_and_what_has_nothing_needs_no_time() -> None:
    found = drain_s(np.array([1000.0, 1000, 0]), np.array([50.0, 100, 200]), np.array([100.0, 100, 100]))

    assert found.tolist() == [20.0, float("inf"), 0.0]


def test_two_hot_partitions_on_two_members_take_half_the_time() -> None:
    found = best_drain_s(placed([6000.0, 6000], [0.0, 0]), np.array([100.0, 100]))

    assert found == pytest.approx(60, abs=1)


def test_five_equal_partitions_do_not_fit_four_members_that_do_one_and_a_half_each() -> None:
    assert best_drain_s(placed([100.0] * 5, [100.0] * 5), np.array([150.0] * 4)) == float("inf")


def test_a_member_may_hold_only_what_it_subscribes_to() -> None:
    free = placed([6000.0, 6000], [0.0, 0])
    bound = placed([6000.0, 6000], [0.0, 0], [[True, False], [True, False]])

    assert best_drain_s(free, np.array([100.0, 100])) < best_drain_s(bound, np.array([100.0, 100]))


@given(
    st.lists(st.tuples(st.floats(0, 50_000), st.floats(0, 80)), min_size=1, max_size=8),
    st.lists(st.floats(10, 200), min_size=1, max_size=4),
)
def test_the_best_is_never_better_than_all_members_together(
    units: list[tuple[float, float]], capacity: list[float]
) -> None:
    backlog, inflow = [b for b, _ in units], [r for _, r in units]
    best = best_drain_s(placed(backlog, inflow), np.array(capacity))
    together = drain_s(np.array([sum(backlog)]), np.array([sum(inflow)]), np.array([sum(capacity)]))[0]

    assert best >= together - 2 or together > LONGEST_S
