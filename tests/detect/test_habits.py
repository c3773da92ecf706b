"""A habit is the longest that ended by itself, for a week."""

from __future__ import annotations

from kagent.detect.habits import habit, learned
from kagent.detect.state import Habit

NOW = 1_700_000_000_000


def test_a_pause_is_learned_when_it_is_the_longest_and_forgotten_after_a_week() -> None:
    habits = learned({}, "silent", 90.0, NOW)

    assert habit(habits, "silent", NOW) == 90
    assert learned(habits, "silent", 80.0, NOW) is habits
    assert learned({}, "silent", 59.0, NOW) == {}
    assert habit(habits, "silent", NOW + 8 * 86_400_000) == 0
    assert habit({"silent": Habit(90.0, NOW)}, "idle", NOW) == 0
