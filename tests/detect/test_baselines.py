"""What is remembered of a group's membership: who came back, and how many generations have passed."""

from __future__ import annotations

from kagent.detect.baselines import update_membership
from kagent.detect.state import JudgeState
from kagent.incident.glance import has_open_questions
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.testing import group_view, member_view

T = 1_700_000_000_000


def seen(now: int, generation: int, *names: str) -> Observation:
    members = [member_view(name, subscriptions=("t",), assigned={"t": (n,)}) for n, name in enumerate(names)]
    view = group_view("g", members=members, generation=generation, last_change_ms=now)
    return Observation("main", "g", now, Roster.of(view), {}, {})


def after(*groups: tuple[str, ...], generations: tuple[int, ...] | None = None) -> JudgeState:
    """After these members were seen, one set a minute."""
    state = JudgeState(first_seen=1)
    for at, names in enumerate(groups):
        generation = generations[at] if generations else at + 1
        state = update_membership(state, seen(T + at * 60_000, generation, *names), Policy())
    return state


def test_a_member_that_comes_for_the_first_time_has_not_come_back() -> None:
    deployed = after(("a", "b"), ("a", "b", "c"), ("a", "b"), ("a", "b", "c"))
    looping = after(("a", "b"), ("a",), ("a", "b"), ("a",), ("a", "b"))

    assert max(deployed.comings.values()) == 1
    assert max(looping.comings.values()) == 2


def test_a_storm_of_which_few_changes_were_seen_is_no_healthy_group() -> None:
    few = after(("a",), ("a", "b"), ("a",), generations=(1, 2, 9))
    calm = after(("a",), ("a", "b"), ("a",), generations=(1, 2, 3))

    now = seen(T + 120_000, 9, "a")
    assert has_open_questions(now, few, Policy())
    assert not has_open_questions(now, calm, Policy())
