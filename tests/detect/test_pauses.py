"""The pause of a rebalance is what a busy member's gap between commits is longer than usual across it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kagent.detect import pauses
from kagent.detect.baselines import update_membership
from kagent.detect.state import JudgeState, MemberState
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.testing import group_view, member_view

T = 1_700_000_000_000
USUAL = 9 * (10_000,)
BUSY = {"a": MemberState(time=T - 2_000, gaps=USUAL), "b": MemberState(time=T - 4_000, gaps=USUAL)}


def seen(now: int, generation: int, held: tuple[int, ...]) -> Observation:
    others = tuple(p for p in range(4) if p not in held)
    members = [
        member_view(name, host="/h", subscriptions=("t",), assigned={"t": ps})
        for name, ps in (("a", held), ("b", others))
    ]
    view = group_view("g", members=members, generation=generation, last_change_ms=T)
    return Observation("main", "g", now, Roster.of(view), {}, {})


def rebalanced() -> JudgeState:
    state = update_membership(JudgeState(first_seen=1), seen(T - 60_000, 1, (0, 1)), Policy())
    names = seen(T, 1, (0, 1)).roster.names  # type: ignore[union-attr]
    members = dict(zip(names, BUSY.values(), strict=True))
    return update_membership(replace(state, members=members), seen(T + 5_000, 2, (0,)), Policy())


def test_the_gap_across_the_change_less_the_usual_gap_is_the_pause() -> None:
    state = rebalanced()
    a, b = state.stopping
    early = pauses.learned(state, {a: T - 2_000, b: T - 4_000})
    assert early is state, "nobody has committed since"
    state = pauses.learned(state, {a: T + 20_000, b: T - 4_000})
    assert state.pauses_s == (12.0,)
    state = pauses.learned(state, {a: T + 30_000, b: T + 8_000})
    assert state.pauses_s == (12.0, 2.0)
    assert not state.stopping
    assert pauses.usual_s(state) == 7.0


def test_members_that_went_on_did_not_pause() -> None:
    state = rebalanced()
    assert pauses.learned(state, dict.fromkeys(state.stopping, T + 1_000)).pauses_s == (0.0, 0.0)


@pytest.mark.parametrize("after", [{}, {"late": T + 3_600_000}], ids=["gone", "much later"])
def test_who_left_or_came_back_much_later_says_nothing(after: dict[str, int]) -> None:
    state = rebalanced()
    found = pauses.learned(state, dict.fromkeys(state.stopping, after["late"]) if after else {})
    assert (found.pauses_s, dict(found.stopping)) == ((), {})
    assert pauses.usual_s(found) == pauses.USUAL_S


def test_what_is_learned_is_kept_in_the_row() -> None:
    state = pauses.learned(rebalanced(), dict.fromkeys(rebalanced().stopping, T + 9_000))
    assert JudgeState.from_row(state.to_row()) == state
    assert JudgeState.from_row(rebalanced().to_row()) == rebalanced()
