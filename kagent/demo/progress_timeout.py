"""Give up when nothing moves any more, not when a clock runs out: a busy machine is slow, and that is no failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kagent.embedded.machine import slowness


@dataclass(slots=True)
class Patience:
    """Waits as long as there is progress. ``limit_s``: seconds without any; ``most_s``: seconds in all, whatever moves. Both are
    seconds of a quiet machine: on a busy one Spark needs minutes to start, and prints nothing in them."""

    limit_s: float
    most_s: float
    clock: Callable[[], float] = time.monotonic
    slowness: Callable[[], float] = slowness
    _seen: object = None
    _since: float = field(init=False)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._since = self._began = self.clock()

    def saw(self, progress: object) -> None:
        """What has been reached by now; anything new begins the waiting anew."""
        if progress != self._seen:
            self._seen, self._since = progress, self.clock()

    @property
    def left_s(self) -> float:
        """Seconds until it gives up if nothing moves; never below 0."""
        now, times = self.clock(), self.slowness()
        return max(
            0.0, min(self.limit_s * times - (now - self._since), self.most_s * times - (now - self._began))
        )
