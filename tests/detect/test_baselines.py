"""What is remembered of a group's membership: who came back."""

from __future__ import annotations

from dataclasses import replace

from kagent.detect.baselines import update_membership
from kagent.detect.state import MemberState, Standing, WindowStart
from kagent.policy import Policy
from tests.fixtures.seen_members import T, after, seen


def test_a_member_that_comes_for_the_first_time_has_not_come_back() -> None:
    deployed = after(("a", "b"), ("a", "b", "c"), ("a", "b"), ("a", "b", "c"))
    looping = after(("a", "b"), ("a",), ("a", "b"), ("a",), ("a", "b"))

    assert max(map(len, deployed.comings.values())) == 1
    assert max(map(len, looping.comings.values())) == 2


def test_a_member_whose_process_is_another_has_come_back_though_no_generation_was_without_it() -> None:
    killed = after(("a", "b"), ("a", "b.2"), ("a", "b.3"), ("a", "b.3"))

    assert {name.split("/")[0]: len(times) for name, times in killed.comings.items()} == {"b": 2}


def test_a_process_that_takes_the_number_of_another_with_its_name_is_no_return() -> None:
    """Members that share client id and host are numbered by their ids."""
    grown = after(("b.2", "b.3"), ("b.1", "b.2", "b.3"))

    # The newcomer has the first number now; the two others were there.
    assert sum(map(len, grown.comings.values())) == 0


def test_another_process_of_a_member_has_had_no_turn_with_what_stands() -> None:
    before = after(("a", "b"))
    a, b = before.names
    clock = Standing(since=T, turn=T, passed_over_s=300.0)
    begun = replace(
        before,
        standing={"t/0": replace(clock, holder=a), "t/1": replace(clock, holder=b)},
        members={name: MemberState(mark=WindowStart(T, {})) for name in before.names},
    )

    state = update_membership(begun, seen(T + 60_000, 2, "a", "b.2"), Policy())

    assert state.standing["t/0"].passed_over_s == 300.0
    assert (state.standing["t/1"].turn, state.standing["t/1"].passed_over_s) == (0, 0.0)
    assert [state.members[name].mark is None for name in (a, b)] == [False, True]


def test_each_of_two_deployments_has_its_own_time() -> None:
    deployment = (("a",), ("a", "b"))
    quiet = 8 * (("a", "b"),)
    generations = (1, 2, 3, *8 * (3,), 4, 5)

    state = after(("a", "b"), *deployment, *quiet, *deployment, generations=generations)

    assert state.restless_s == 60.0
    assert state.restless_from == 1
    assert state.generations[-1][0] - state.restless_since == 11 * 60_000
