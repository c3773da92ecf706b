"""A habit is the longest that ended by itself, for a week."""

from __future__ import annotations

from kagent.detect.habits import habit, learned, learned_again
from kagent.detect.state import Habit

NOW = 1_700_000_000_000


def test_a_pause_is_learned_when_it_is_the_longest_and_forgotten_after_a_week() -> None:
    habits = learned({}, "silent", 90.0, NOW)

    assert habit(habits, "silent", NOW) == 90
    assert learned(habits, "silent", 80.0, NOW) is habits
    assert learned({}, "silent", 59.0, NOW) == {}
    assert habit(habits, "silent", NOW + 8 * 86_400_000) == 0
    assert habit({"silent": Habit(90.0, NOW)}, "idle", NOW) == 0


def test_what_was_reported_is_a_habit_once_it_ends_by_itself_again_for_as_long_as_both_lasted() -> None:
    once = learned_again({}, "spell", 2000.0, NOW)
    twice = learned_again(once, "spell", 500.0, NOW + 3_600_000)
    thrice = learned_again(twice, "spell", 1500.0, NOW + 7_200_000)
    late = learned_again(once, "spell", 2000.0, NOW + 8 * 86_400_000)

    assert [habit(h, "spell", NOW + 7_200_000) for h in (once, twice, thrice)] == [0, 500, 1500]
    assert habit(late, "spell", NOW + 8 * 86_400_000) == 0
