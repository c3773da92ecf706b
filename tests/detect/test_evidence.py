"""The spell is the unit of evidence: it runs on commit time, and only while a member is late and getting later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect import evidence
from kagent.detect.evidence import LatenessLimits, Look
from kagent.detect.state import Backlog, Habit, JudgeState, MemberState, Spell
from kagent.policy import Policy

LIMITS = LatenessLimits.of(Policy())
NOW = 1_700_000_000_000
INF = float("inf")


def look(second: int, lateness: float, gap: float = 5.0, drain: float = INF, records: int = 100) -> Look:
    return Look(NOW + second * 1000, lateness, lateness >= 60 and drain > 300, drain, gap, records, lateness)


def after(looks: list[Look]) -> MemberState:
    known = MemberState()
    for one in looks:
        spell, backlog = (
            evidence.next_spell(known, one, LIMITS),
            evidence.next_backlog(known, one, LIMITS),
        )
        known = replace(known, spell=spell, backlog=backlog, lateness=evidence.history(known, one, LIMITS))
    return known


def rising(seconds: int, step: int = 5, start: float = 61.0, slope: float = 0.5) -> list[Look]:
    return [look(t, start + slope * t, step) for t in range(0, seconds, step)]


def test_a_member_that_gets_later_for_a_minute_has_shown_enough() -> None:
    assert not evidence.enough_growth(after(rising(60)), 5, 60, LIMITS)
    assert evidence.enough_growth(after(rising(85)), 5, 60, LIMITS)


def test_a_constant_lateness_is_a_habit_and_opens_nothing() -> None:
    known = after([look(t, 200.0) for t in range(0, 3600, 5)])

    assert not evidence.enough_growth(known, 5, 60, LIMITS)


def test_a_spell_ends_when_the_lateness_is_back_where_it_began() -> None:
    known = after([*rising(300), *[look(300 + t, max(61.0, 210 - 2 * t)) for t in range(0, 100, 5)]])

    assert known.spell is None or known.spell.grown_s < 60


def test_a_client_that_serves_its_partitions_in_turn_does_not_begin_anew_at_each_dip() -> None:
    # Measured of kafkajs with two hot partitions on a member: a fetch of 512 records takes 13 s, and the lateness swings by 6 s.
    lateness = (60.4, 56.0, 65.0, 65.7, 77.5, 72.0, 83.6, 90.7)
    known = after([look(13 * at, late, 13.0) for at, late in enumerate(lateness)])

    assert known.spell is not None
    assert evidence.enough_growth(known, 13, 60, LIMITS)


def test_two_looks_at_the_beginning_again_end_a_spell() -> None:
    known = after([*rising(90), look(90, 60.5), look(95, 60.5)])

    assert known.spell is None


def test_what_drains_soon_is_no_spell() -> None:
    assert after([look(t, 61.0 + t, drain=200.0) for t in range(0, 300, 5)]).spell is None


def test_one_long_gap_is_a_pause_and_counts_as_half_a_minute() -> None:
    known = after([look(0, 61.0), look(600, 661.0)])

    assert known.spell is not None
    assert known.spell.grown_s == 30


@pytest.mark.parametrize("lacking", [{"commits": 2}, {"records": 29}, {"grown_s": 59.0}])
def test_three_commits_thirty_records_and_the_time_it_takes_are_each_needed(
    lacking: Any,
) -> None:
    spell = Spell(NOW, NOW, 61.0, 100.0, NOW, 20, 1000)
    known = MemberState(spell=spell, lateness=((NOW, 100.0),))

    assert evidence.enough_growth(known, 5, 60, LIMITS)
    assert not evidence.enough_growth(replace(known, spell=replace(spell, **lacking)), 5, 60, LIMITS)


def test_two_commits_are_enough_where_they_are_rare() -> None:
    known = MemberState(spell=Spell(NOW, NOW, 61.0, 300.0, NOW, 2, 100), lateness=((NOW, 300.0),))

    assert evidence.enough_growth(known, 300, 60, LIMITS)
    assert not evidence.enough_growth(known, 5, 60, LIMITS)


@given(st.floats(61, 3000), st.floats(0, 2000), st.floats(1, 10))
def test_a_drain_is_believed_only_when_it_has_fallen_visibly(
    most: float, fallen: float, ratio: float
) -> None:
    known = MemberState(
        backlog=Backlog(NOW, NOW + 300_000, most, NOW, 300.0, 60, 6000),
        lateness=((NOW + 300_000, max(0.0, most - fallen)),),
    )

    if evidence.enough_drain(known, 180, ratio):
        assert min(fallen, most) >= 30 - 1e-6
        assert min(fallen, most) >= 0.1 * most - 1e-6


def test_a_group_needs_twice_the_longest_spell_that_ended_by_itself_but_never_more_than_half_an_hour() -> (
    None
):
    known = JudgeState(first_seen=NOW - 10 * 86_400_000)
    habit = replace(known, habits={evidence.SPELL: Habit(200.0, NOW)})
    long = replace(known, habits={evidence.SPELL: Habit(5000.0, NOW)})
    old = replace(known, habits={evidence.SPELL: Habit(200.0, NOW - 8 * 86_400_000)})

    assert [evidence.needed_s(s, 60, NOW, 1.0, 4.0) for s in (known, habit, long, old)] == [60, 400, 1800, 60]


def test_a_new_group_needs_more_but_is_never_silent_for_a_fixed_time() -> None:
    assert evidence.needed_s(JudgeState(first_seen=NOW), 60, NOW + 1000, 1.0, 4.0) == 240
    assert evidence.needed_s(JudgeState(first_seen=NOW), 60, NOW + 3_700_000, 1.0, 4.0) == 60


def test_the_verdict_that_most_looks_gave_leads() -> None:
    votes: dict[str, int] = {}
    for verdict in ("wait", "rebalance", "rebalance", "slow_member"):
        votes = evidence.voted(votes, verdict)

    assert evidence.most_voted(votes) == "rebalance"
    assert evidence.most_voted({}) is None


def test_the_policy_may_ask_for_more_or_less_evidence() -> None:
    known = JudgeState(first_seen=NOW - 10 * 86_400_000)

    assert [evidence.needed_s(known, 60, NOW, factor, 4.0) for factor in (0.5, 1.0, 2.0)] == [30, 60, 120]
