"""What is remembered of a group's membership: who came back."""

from __future__ import annotations

from tests.fixtures.seen_members import after


def test_a_member_that_comes_for_the_first_time_has_not_come_back() -> None:
    deployed = after(("a", "b"), ("a", "b", "c"), ("a", "b"), ("a", "b", "c"))
    looping = after(("a", "b"), ("a",), ("a", "b"), ("a",), ("a", "b"))

    assert max(map(len, deployed.comings.values())) == 1
    assert max(map(len, looping.comings.values())) == 2


def test_each_of_two_deployments_has_its_own_time() -> None:
    deployment = (("a",), ("a", "b"))
    quiet = 8 * (("a", "b"),)
    generations = (1, 2, 3, *8 * (3,), 4, 5)

    state = after(("a", "b"), *deployment, *quiet, *deployment, generations=generations)

    assert state.restless_s == 60.0
    assert state.restless_from == 1
    assert state.generations[-1][0] - state.restless_since == 11 * 60_000
