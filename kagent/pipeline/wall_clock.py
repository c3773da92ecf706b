"""This machine's clock, which can be set back under a running stream.

Spark waits for the time of the next trigger on the wall clock (``ProcessingTimeExecutor``, ``SystemClock.waitTillTime``): once the clock is set
back by an hour, no batch begins for an hour. A query that is started again waits anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_S = 5.0
"""Spark is late by less than this after a lesser step; that passes sooner than a query starts."""


class ClockSetBack(Exception):
    """The clock was set back: a query that waits for it has to be started again."""


class WallClock:
    """Watches the wall clock beside the monotonic one, from now on."""

    def __init__(
        self, wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall_s, self._monotonic_s = wall_s, monotonic_s
        self._ahead_s = self._now_ahead_s()

    def check(self) -> None:
        """Raises ClockSetBack if it was set back since the last look."""
        before_s, self._ahead_s = self._ahead_s, self._now_ahead_s()
        back_s = before_s - self._ahead_s
        if back_s > MOST_S:
            raise ClockSetBack(
                f"This machine's clock was set back by {back_s:,.0f} s, and Spark would wait for as long."
            )

    def _now_ahead_s(self) -> float:
        return self._wall_s() - self._monotonic_s()
