"""What a group does again and again: the longest pauses and spells of lateness that ended by themselves."""

from __future__ import annotations

from collections.abc import Mapping

from kagent.detect.state import Habit

PAUSE_FACTOR = 1.5
"""A pause this much longer than the longest one that ended by itself is no habit."""
HABIT_MEMORY_MS = 7 * 86_400_000
WORTH_S = 60.0
"""A shorter pause is every group's habit."""


def habit(habits: Mapping[str, Habit], kind: str, now: int) -> float:
    """The longest pause or spell of this kind, in s, that ended by itself in the last seven days."""
    known = habits.get(kind)
    return known.longest_s if known is not None and now - known.ended <= HABIT_MEMORY_MS else 0.0


def learned(habits: Mapping[str, Habit], kind: str, length_s: float, now: int) -> Mapping[str, Habit]:
    """The habits after something of this kind ended by itself."""
    # The longest is replaced only by a longer one, and runs out a week after it ended: a habit that stopped is forgotten.
    if length_s < WORTH_S or length_s <= habit(habits, kind, now):
        return habits
    return {**habits, kind: Habit(round(length_s, 1), now)}
