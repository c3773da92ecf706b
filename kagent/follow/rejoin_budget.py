"""When the group may be asked to rejoin: once per cooldown, up to a number of times a day, and then no more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

DAY = 24 * 3600.0
AHEAD = 300.0
"""Seconds by which another member's clock may be ahead."""
REMEMBERED = 8
"""How many of the latest requests each member sends in its user data, whose readers refuse a longer list."""


@dataclass(frozen=True, slots=True)
class Asking:
    """``cooldown``: seconds between two requests; ``per_day``: requests in 24 hours, at most 8, as no more are remembered."""

    cooldown: float = 900.0
    per_day: int = 3

    @property
    def most_per_day(self) -> int:
        """The number of requests in 24 hours after which no other is made."""
        # A greater number than is remembered would never be reached: the group would be asked after every cooldown, for ever.
        return min(self.per_day, REMEMBERED)


class May(Enum):
    """Whether to ask."""

    ASK = auto()
    WAIT = auto()
    LATCH = auto()


def may_ask(asked: Iterable[int], now: float, asking: Asking) -> May:
    """``asked``: when the group was asked before, by any of its members, ms since the epoch; ``now`` in seconds."""
    lately = recent(asked, now)
    if lately and now - lately[-1] / 1000 < asking.cooldown:
        return May.WAIT
    return May.LATCH if len(lately) >= asking.most_per_day else May.ASK


def recent(asked: Iterable[int], now: float) -> tuple[int, ...]:
    """The requests of the last day, oldest first, each once; times that cannot be are left out."""
    here = {at for at in asked if now - DAY < at / 1000 <= now + AHEAD}
    return tuple(sorted(here)[-REMEMBERED:])
