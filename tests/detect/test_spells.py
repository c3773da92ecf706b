"""What is remembered of members, and what an assignment's end ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kagent.detect.baselines import update_membership
from kagent.detect.evidence import SPELL
from kagent.policy import Policy
from tests.fixtures.timeline import Timeline, judged

HELD = {"m0": (0, 1), "m1": (2, 3)}


@pytest.mark.slow
def test_a_spell_that_ended_by_itself_is_a_habit() -> None:
    def burst(second: int) -> float:
        return 400.0 if 300 < second <= 700 else 50.0

    world = Timeline([burst, 50, 50, 50], HELD, dict.fromkeys(HELD, 200.0))
    state = judged(world, 3000)[-1].state

    assert not any(m.spell or m.backlog for m in state.members.values())
    assert 200 <= state.habits[SPELL].longest_s <= 1000


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
