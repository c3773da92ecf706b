"""A state whose clock was ahead, once that has been set back.

A host that wakes with a wrong date, or a mistake of its administrator: without this, all that waits for a time (an end, a
cooldown, the quiet after a rebalance) would wait until the clock has caught up with where it was.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from kagent.detect.state import Incident, JudgeState, Useful

Dated = TypeVar("Dated", JudgeState, Incident, Useful)
# Times of ticks only: those of commits come from other clocks. Not of the last message: a reminder may come late, not twice.
STATE = (
    "first_seen",
    "last_tick",
    "generation_at",
    "restless_since",
    "assigned_at",
    "empty_since",
    "members_at",
    "returned_at",
)
INCIDENT = (
    "calm_since",
    "other_since",
    "blind_since",
    "fresh_since",
    "changed_at",
    "followed_at",
    "least_at",
    "nothing_since",
)
USEFUL = ("more_since", "fewer_since", "looked_at", "raised_at")
# Every group is asked at every tick.
_of_state, _of_incident, _of_useful = attrgetter(*STATE), attrgetter(*INCIDENT), attrgetter(*USEFUL)


def latest_ms(state: JudgeState) -> int:
    """The latest time in it that a tick gave."""
    times = _of_state(state)
    if state.incident:
        times += _of_incident(state.incident)
    if state.useful:
        times += _of_useful(state.useful)
    return max(filter(None, times), default=0)


def set_back(state: JudgeState, now_ms: int, cooldown_ms: int) -> JudgeState:
    """The state with no tick's time ahead of this one, and no cooldown that ends later than one that begins now."""
    return replace(
        _not_ahead(state, STATE, now_ms),
        generations=tuple((min(time, now_ms), generation) for time, generation in state.generations),
        cooldown_until=min(state.cooldown_until, now_ms + cooldown_ms),
        incident=_not_ahead(state.incident, INCIDENT, now_ms) if state.incident else None,
        useful=_not_ahead(state.useful, USEFUL, now_ms) if state.useful else None,
    )


def _not_ahead(known: Dated, names: tuple[str, ...], now_ms: int) -> Dated:
    ahead: dict[str, Any] = {name: now_ms for name in names if (getattr(known, name) or 0) > now_ms}
    return replace(known, **ahead)
