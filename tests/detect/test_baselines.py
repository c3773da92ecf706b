"""What is remembered of a group's membership: who came back."""

from __future__ import annotations

from tests.fixtures.seen_members import after


def test_a_member_that_comes_for_the_first_time_has_not_come_back() -> None:
    deployed = after(("a", "b"), ("a", "b", "c"), ("a", "b"), ("a", "b", "c"))
    looping = after(("a", "b"), ("a",), ("a", "b"), ("a",), ("a", "b"))

    assert max(map(len, deployed.comings.values())) == 1
    assert max(map(len, looping.comings.values())) == 2
