"""The spell is the unit of evidence: it runs on commit time, and only while a member is late and getting later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kagent.detect import evidence, spells
from kagent.detect.baselines import update_membership
from kagent.detect.evidence import BACKLOG, SPELL, LatenessLimits
from kagent.detect.lateness_sample import LatenessSample
from kagent.detect.state import MemberState
from kagent.policy import Policy
from tests.fixtures.timeline import Timeline, judged

HELD = {"m0": (0, 1), "m1": (2, 3)}
LIMITS = LatenessLimits.of(Policy())
NOW = 1_700_000_000_000
INF = float("inf")


def sample(
    second: int, lateness: float, gap: float = 5.0, drain: float = INF, records: int = 100
) -> LatenessSample:
    return LatenessSample(
        NOW + second * 1000, lateness, lateness >= 60 and drain > 300, drain, gap, records, lateness
    )


def after(samples: list[LatenessSample]) -> MemberState:
    known = MemberState()
    for one in samples:
        known = replace(known, spell=spells.measured(known.spell, one))
        spell, backlog = (
            spells.next_spell(known, one, LIMITS),
            spells.next_backlog(known, one, LIMITS),
        )
        known = replace(known, spell=spell, backlog=backlog, lateness=spells.history(known, one, LIMITS))
    return known


def rising(seconds: int, step: int = 5, start: float = 61.0, slope: float = 0.5) -> list[LatenessSample]:
    return [sample(t, start + slope * t, step) for t in range(0, seconds, step)]


def test_a_member_that_gets_later_for_a_minute_has_shown_enough() -> None:
    assert not evidence.enough_growth(after(rising(60)), 5, 60, LIMITS)
    assert evidence.enough_growth(after(rising(85)), 5, 60, LIMITS)


def test_each_topic_is_held_against_its_latest_of_the_first_minute() -> None:
    samples = [replace(one, topics={"a": 900.0 + n % 3, "b": n * 1.0}) for n, one in enumerate(rising(120))]
    moved_here = replace(sample(120, 130.0), topics={"a": 901.0, "b": 24.0, "c": 40.0})

    spell = after([*samples, moved_here]).spell

    assert spell is not None
    assert spell.topics == {"a": (902.0, 901.0), "b": (12.0, 24.0), "c": (0.0, 40.0)}


def test_where_lateness_is_extrapolated_it_must_rise_by_more_than_that_may_be_off() -> None:
    def rises_by(seconds: float, unsure_s: float = 45.0) -> MemberState:
        samples = [sample(t, 900.0 + (seconds if t > 60 else 0.0)) for t in range(0, 180, 5)]
        return after([replace(one, extrapolated_s=900.0, unsure_s=unsure_s) for one in samples])

    assert not evidence.enough_growth(rises_by(40), 5, 60, LIMITS)
    assert evidence.enough_growth(rises_by(60), 5, 60, LIMITS)
    assert not evidence.enough_growth(rises_by(60, unsure_s=90.0), 5, 60, LIMITS)


def test_an_inflow_that_rises_does_not_pass_for_catching_up_before_the_log_ends_are_known() -> None:
    def inflow(second: int) -> float:
        return 20.0 + second / 60

    world = Timeline([inflow] * 4, HELD, dict.fromkeys(HELD, 30.0), order="even")
    world.position = [end - 80_000 for end in world.end]
    samples = judged(world, 420)
    states = [one.state.members["m0/h"] for one in samples if "m0/h" in one.state.members]
    grown = [known.spell.grown_s for known in states if known.spell]

    assert any(one.candidate for one in samples)
    assert grown == sorted(grown)
    assert all(SPELL not in one.state.habits for one in samples)


def test_a_beginning_that_was_extrapolated_counts_no_more_once_the_lateness_is_measured() -> None:
    """A delay of 300 s is seen as 250 s until the log ends reach back over it."""

    def seen(t: int, slope: float = 0.0) -> LatenessSample:
        known = t >= 300
        late = 300.0 + t % 10 / 5 if known else 250.0 + t / 6
        return replace(sample(t, late + slope * t), extrapolated_s=0.0 if known else 300.0 - t)

    delayed = after([seen(t) for t in range(0, 500, 5)])
    behind = after([seen(t, slope=0.3) for t in range(0, 500, 5)])

    assert evidence.enough_growth(after([seen(t) for t in range(0, 300, 5)]), 5, 60, LIMITS)
    assert not evidence.enough_growth(delayed, 5, 60, LIMITS)
    assert evidence.enough_growth(behind, 5, 240, LIMITS)
    assert behind.spell is not None
    assert behind.spell.grown_s - behind.spell.carried_s < 205


@pytest.mark.slow
def test_a_lateness_beyond_the_history_of_log_ends_is_unsure_and_one_within_it_is_not() -> None:
    world = Timeline([20.0] * 4, HELD, dict.fromkeys(HELD, 30.0), order="even")
    world.position = [end - 20_000 for end in world.end]
    beyond = judged(world, 600)[-1].state.members["m0/h"].spell
    within = (
        judged(Timeline([20.0] * 4, HELD, dict.fromkeys(HELD, 30.0)), 1200)[-1].state.members["m0/h"].spell
    )

    assert beyond is not None
    assert 15 < beyond.unsure_s < 50
    assert within is not None
    assert within.unsure_s == 0


def test_a_constant_lateness_is_a_habit_and_opens_nothing() -> None:
    known = after([sample(t, 200.0) for t in range(0, 3600, 5)])

    assert not evidence.enough_growth(known, 5, 60, LIMITS)


def test_what_remains_of_a_lateness_after_a_pause_and_does_not_fall_is_no_drain() -> None:
    drain = [sample(t, max(124.0, 320.0 - t), drain=900.0) for t in range(0, 300, 5)]
    delay = [sample(t, 124.0 - t % 10 / 10, drain=900.0) for t in range(300, 700, 5)]

    assert evidence.enough_drain(after(drain), 180, 1.02, LIMITS)
    assert not evidence.enough_drain(after([*drain, *delay]), 180, 1.02, LIMITS)


def test_a_drain_that_is_slow_but_goes_on_stays_one() -> None:
    slow = [sample(t, 600.0 - 0.04 * t + t % 10 / 2, drain=900.0) for t in range(0, 3000, 5)]

    assert evidence.enough_drain(after(slow), 180, 1.04, LIMITS)


def test_each_topic_of_a_member_drains_for_itself() -> None:
    """Their mean falls also when more arrives of the one that is on time."""
    drain = [
        replace(sample(t, 400.0 - t / 4, drain=900.0), topics={"a": 500.0, "b": 0.0})
        for t in range(0, 400, 5)
    ]
    falls = after(drain).backlog.falls  # type: ignore[union-attr]

    assert not evidence.enough_drain(after(drain), 180, 1.2, LIMITS)
    assert {topic: (f.most, f.least) for topic, f in falls.items()} == {"a": (500.0, 500.0), "b": (0.0, 0.0)}


def test_a_spell_ends_when_the_lateness_is_back_where_it_began() -> None:
    known = after([*rising(300), *[sample(300 + t, max(61.0, 210 - 2 * t)) for t in range(0, 100, 5)]])

    assert known.spell is None or known.spell.grown_s < 60


def test_a_client_that_serves_its_partitions_in_turn_does_not_begin_anew_at_each_dip() -> None:
    # Measured of kafkajs with two hot partitions on a member: a fetch of 512 records takes 13 s, and the lateness swings by 6 s.
    lateness = (60.4, 56.0, 65.0, 65.7, 77.5, 72.0, 83.6, 90.7)
    known = after([sample(13 * at, late, 13.0) for at, late in enumerate(lateness)])

    assert known.spell is not None
    assert evidence.enough_growth(known, 13, 60, LIMITS)


def test_a_minute_at_the_beginning_again_ends_a_spell() -> None:
    back = [sample(90 + t, 60.5) for t in range(0, 70, 5)]

    assert after([*rising(90), *back[:2]]).spell is not None
    assert after([*rising(90), *back]).spell is None


def test_a_member_that_is_slow_and_quick_by_turns_does_not_begin_anew_in_each_trough() -> None:
    """As measured of a librdkafka consumer that was slow for 20 s and quick for 20 s: later by 16 s a turn, and less late by 11 s."""
    turns = [16 * t / 20 if t < 20 else 16 - 11 * (t - 20) / 20 for t in range(0, 40, 5)]
    late = [61.0 + 5 * turn + more for turn in range(8) for more in turns]
    known = after([sample(5 * at, one) for at, one in enumerate(late)])

    assert known.spell is not None
    assert evidence.enough_growth(known, 5, 120, LIMITS)


def test_what_drains_soon_is_no_spell() -> None:
    assert after([sample(t, 61.0 + t, drain=200.0) for t in range(0, 300, 5)]).spell is None


def test_one_long_gap_is_a_pause_and_counts_as_half_a_minute() -> None:
    known = after([sample(0, 61.0), sample(600, 661.0)])

    assert known.spell is not None
    assert known.spell.grown_s == 30


@pytest.mark.slow
def test_a_spell_that_ended_by_itself_is_a_habit() -> None:
    def burst(second: int) -> float:
        return 400.0 if 300 < second <= 700 else 50.0

    world = Timeline([burst, 50, 50, 50], HELD, dict.fromkeys(HELD, 200.0))
    state = judged(world, 3000)[-1].state

    assert not any(m.spell or m.backlog for m in state.members.values())
    assert 200 <= state.habits[SPELL].longest_s <= 1000


@pytest.mark.slow
def test_a_backlog_that_was_worked_off_is_a_habit_once_its_member_is_on_time_again() -> None:
    world = Timeline([burst_at_once, 10, 10, 10], HELD, dict.fromkeys(HELD, 50.0))
    samples = judged(world, 2400)
    late_s = max(m.backlog.late_s for one in samples for m in one.state.members.values() if m.backlog)
    learned = [one.state for one in samples if BACKLOG in one.state.habits]

    assert all(m.lateness[-1][1] < 30 for m in learned[0].members.values() if m.lateness)
    assert learned[0].habits[BACKLOG].longest_s == pytest.approx(late_s, abs=30)
    assert not any(m.longest_late_s for m in samples[-1].state.members.values())


def burst_at_once(second: int) -> float:
    return 22_000.0 if second == 600 else 10.0


@pytest.mark.slow
def test_a_member_that_stays_late_and_falls_back_to_where_it_was_has_a_habit() -> None:
    """Late on purpose, and no more so than before: what rose and fell while it was late is its habit."""

    def wave(second: int) -> float:
        if second <= 700:
            return 400.0 if second > 300 else 50.0
        return 200.0 if second % 300 < 120 else 110.0

    world = Timeline([wave, 50, 50, 50], HELD, dict.fromkeys(HELD, 200.0))
    state = judged(world, 4500)[-1].state

    assert state.habits[SPELL].longest_s >= 60


@pytest.mark.slow
def bursts(second: int) -> float:
    """On average 60 records/s, above a member's speed of 50 for each of two partitions, and below it for most of the time."""
    return 10.0 if second < 600 else 120.0 if second % 240 < 96 else 20.0


@pytest.mark.slow
def test_bursts_that_are_too_much_on_average_are_no_habit_and_take_more_members() -> None:
    samples = judged(Timeline([bursts] * 4, HELD, dict.fromkeys(HELD, 100.0), order="even"), 4200)
    told = [one.findings[0] for one in samples if one.candidate]

    assert all(SPELL not in one.state.habits for one in samples)
    assert len(told) > 60
    assert {str(finding.verdict) for finding in told} == {"under_provisioned"}


@pytest.mark.slow
def test_what_is_expected_of_partitions_and_of_their_member_is_the_same() -> None:
    samples = judged(Timeline([bursts] * 4, HELD, dict.fromkeys(HELD, 100.0), order="even"), 2700)
    models = [one.model for one in samples if one.model is not None and one.model.columns.rates_since.any()]

    assert models
    for model in models:
        expected = np.bincount(model.owner, model.columns.usual_rates)
        assert expected == pytest.approx(model.inflow.mid, rel=0.01)
        # Each member gets more than it can do on average: no assignment catches up.
        assert np.isinf(model.best_drain(3600.0))


@pytest.mark.slow
def test_nothing_is_learned_while_the_illness_lasts() -> None:
    world = Timeline([150.0, 150, 50, 50], HELD, dict.fromkeys(HELD, 220.0))

    assert judged(world, 3000)[-1].state.habits == {}


def test_a_member_that_is_on_time_and_idle_is_remembered_by_its_speed_alone() -> None:
    state = judged(Timeline([50.0] * 4, HELD, dict.fromkeys(HELD, 200.0)), 900)[-1].state

    assert not any(m.spell or m.backlog or m.silent_s for m in state.members.values())
    assert state.standing == {}


def test_another_assignment_ends_the_spells_and_keeps_the_speeds() -> None:
    world = Timeline([150.0, 150, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    state = judged(world, 600)[-1].state
    name = next(n for n, m in state.members.items() if m.spell)
    moved = Timeline([150.0, 150, 50, 50], {"m0": (0, 2), "m1": (1, 3)}, dict.fromkeys(HELD, 220.0))
    seen = replace(world.observe(), roster=moved.observe().roster)

    after = update_membership(state, seen, Policy())

    assert after.members[name].spell is None
    assert after.members[name].windows == state.members[name].windows
    assert after.assigned_at == seen.now


def test_a_new_generation_with_the_same_assignment_changes_no_clock() -> None:
    world = Timeline([150.0, 150, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    state = judged(world, 600)[-1].state
    seen = world.observe()
    assert seen.roster is not None
    again = replace(seen, roster=replace(seen.roster, generation=2))

    after = update_membership(state, again, Policy())

    assert after.members == state.members
    assert after.assigned_at == state.assigned_at


def test_right_after_a_reassignment_no_spell_runs() -> None:
    world = Timeline([150.0, 150, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    state = judged(world, 600)[-1].state
    fresh = replace(state, members={}, assigned_at=world.now)

    during = judged(world, 50, fresh)[-1].state

    assert not any(m.spell or m.backlog for m in during.members.values())
