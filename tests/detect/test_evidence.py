"""How long a spell must last, and how visibly a backlog must drain, to be enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect import evidence
from kagent.detect.evidence import LatenessLimits
from kagent.detect.state import Backlog, Fall, Habit, JudgeState, MemberState, Spell
from kagent.policy import Policy

LIMITS = LatenessLimits.of(Policy())
NOW = 1_700_000_000_000


@pytest.mark.parametrize("lacking", [{"commits": 2}, {"records": 24}, {"grown_s": 59.0}])
def test_three_commits_25_records_and_the_time_it_takes_are_each_needed(
    lacking: Any,
) -> None:
    spell = Spell(NOW, NOW, 61.0, 100.0, NOW, 20, 1000)
    known = MemberState(spell=spell, lateness=((NOW, 100.0),))

    assert evidence.enough_growth(known, 5, 60, LIMITS)
    assert not evidence.enough_growth(replace(known, spell=replace(spell, **lacking)), 5, 60, LIMITS)


def test_a_member_of_several_topics_falls_behind_in_one_of_them() -> None:
    """Less that arrives of a topic on time makes the mean over topics later, beside one that is read late on purpose; and one that is on time
    swings by what a poll holds."""
    spell = Spell(NOW, NOW, 61.0, 100.0, NOW, 20, 1000)
    known = MemberState(spell=spell, lateness=((NOW, 100.0),))

    def enough(**topics: tuple[float, float]) -> bool:
        return evidence.enough_growth(replace(known, spell=replace(spell, topics=topics)), 5, 60, LIMITS)

    assert not enough(orders=(0.0, 0.0), retries=(899.0, 901.0))
    assert not enough(orders=(0.0, 6.0), retries=(899.0, 901.0))
    assert enough(orders=(0.0, 66.0), retries=(899.0, 901.0))


def test_a_lateness_rises_by_more_than_it_may_be_off() -> None:
    def enough(now: float, unsure_s: float) -> bool:
        spell = Spell(NOW, NOW, 900.0, 100.0, NOW, 20, 1000, unsure_s=unsure_s)
        return evidence.enough_growth(MemberState(spell=spell, lateness=((NOW, now),)), 5, 60, LIMITS)

    assert enough(904.0, 0.0)
    assert not enough(902.0, 0.0)
    assert enough(924.0, 20.0)
    assert not enough(922.0, 20.0)


def test_two_commits_are_enough_where_they_are_rare() -> None:
    known = MemberState(spell=Spell(NOW, NOW, 61.0, 300.0, NOW, 2, 100), lateness=((NOW, 300.0),))

    assert evidence.enough_growth(known, 300, 60, LIMITS)
    assert not evidence.enough_growth(known, 5, 60, LIMITS)


@given(st.floats(61, 3000), st.floats(0, 2000), st.floats(1, 10))
def test_a_drain_is_believed_only_when_it_has_fallen_visibly(
    most: float, fallen: float, ratio: float
) -> None:
    fell = min(fallen, most)
    fall = Fall(most, NOW, most - fell, NOW + 300_000)
    known = MemberState(
        backlog=Backlog(NOW, NOW + 300_000, most, NOW, 300.0, 60, 6000, falls={"orders": fall}),
    )

    promised = min(most, 300 * (ratio - 1))
    assert evidence.enough_drain(known, 180, ratio, LIMITS) == (fell >= max(30, 0.1 * most, 0.5 * promised))


def test_a_backlog_drains_where_one_of_its_topics_does() -> None:
    late, flat = Fall(900.0, NOW, 600.0, NOW + 300_000), Fall(120.0, NOW, 119.0, NOW)

    def drains(*falls: Fall) -> bool:
        backlog = Backlog(
            NOW, NOW + 300_000, 500.0, NOW, 300.0, 60, 6000, falls=dict(zip("ab", falls, strict=False))
        )
        return evidence.enough_drain(MemberState(backlog=backlog), 180, 1.2, LIMITS)

    assert [drains(), drains(flat), drains(late), drains(flat, late)] == [False, False, True, True]


def test_a_group_needs_twice_the_longest_spell_that_ended_by_itself_but_never_more_than_half_an_hour() -> (
    None
):
    known = JudgeState(first_seen=NOW - 10 * 86_400_000)
    habit = replace(known, habits={evidence.SPELL: Habit(200.0, NOW)})
    long = replace(known, habits={evidence.SPELL: Habit(5000.0, NOW)})
    old = replace(known, habits={evidence.SPELL: Habit(200.0, NOW - 8 * 86_400_000)})

    needed = [evidence.growing_need_s(state, NOW, Policy()) for state in (known, habit, long, old)]

    assert needed == [60, 400, 1800, 60]


def test_a_group_that_has_worked_off_backlogs_needs_a_drain_twice_as_long_and_no_more_growth() -> None:
    known = JudgeState(first_seen=NOW - 10 * 86_400_000, habits={evidence.BACKLOG: Habit(400.0, NOW)})
    both = replace(known, habits={**known.habits, evidence.SPELL: Habit(500.0, NOW)})

    assert [evidence.draining_need_s(state, NOW, Policy()) for state in (known, both)] == [800, 1000]
    assert evidence.growing_need_s(known, NOW, Policy()) == 60


def test_a_new_group_needs_more_but_is_never_silent_for_a_fixed_time() -> None:
    new = JudgeState(first_seen=NOW)

    assert [evidence.growing_need_s(new, NOW + ms, Policy()) for ms in (1000, 3_700_000)] == [240, 60]
    drains = [evidence.draining_need_s(new, NOW + ms, Policy()) for ms in (1000, 3_700_000)]
    assert drains == pytest.approx([360, 180])


def test_a_verdict_that_two_thirds_of_the_looks_gave_is_agreed_on() -> None:
    votes: dict[str, float] = {}
    agreed = []
    for verdict in ("wait", "rebalance", "rebalance", "slow_member", "rebalance", "rebalance"):
        votes = evidence.voted(votes, verdict, 100)
        agreed.append(evidence.agreed(votes, "rebalance"))

    assert agreed == [False, False, True, False, False, True]
    assert not evidence.agreed({}, "rebalance")


@pytest.mark.parametrize("before", [30, 300])
def test_looks_of_long_ago_do_not_hold_a_verdict_back(before: int) -> None:
    """A load that rises slowly passes another verdict on its way."""
    votes: dict[str, float] = {}
    for verdict in [*before * ["rebalance"], *14 * ["under_provisioned"]]:
        votes = evidence.voted(votes, verdict, 18)
        assert sum(votes.values()) <= 18.5

    assert evidence.agreed(votes, "under_provisioned") is False
    for _ in range(8):
        votes = evidence.voted(votes, "under_provisioned", 18)
    assert evidence.agreed(votes, "under_provisioned")


def test_the_looks_that_count_are_those_of_three_minutes_at_least_three() -> None:
    often, seldom = Spell(NOW - 600_000, NOW, 60.0, commits=61), Spell(NOW - 600_000, NOW, 60.0, commits=3)

    assert evidence.looks_that_count(often, LIMITS) == pytest.approx(18.3)
    assert evidence.looks_that_count(seldom, LIMITS) == 3


@pytest.mark.parametrize(("stood_s", "counted_s"), [(0, 180), (120, 180), (450, 450), (86_400, 600)])
def test_more_looks_count_the_longer_a_verdict_has_been_published(stood_s: float, counted_s: float) -> None:
    often = Spell(NOW - 600_000, NOW, 60.0, commits=60)

    assert evidence.looks_that_count(often, LIMITS, stood_s) == pytest.approx(counted_s / 10)


def test_the_policy_may_ask_for_more_or_less_evidence() -> None:
    known = JudgeState(first_seen=NOW - 10 * 86_400_000)

    policies = [replace(Policy(), evidence=factor) for factor in (0.5, 1.0, 2.0)]

    assert [evidence.growing_need_s(known, NOW, policy) for policy in policies] == [30, 60, 120]
