"""Since when this worker has been awake: ticks have come one after another, and its clock has not leapt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Presence:
    """``longest_ms``: between two ticks at most; longer, and this worker slept or somebody set its clock."""

    longest_ms: int
    since_ms: int = 0
    last_ms: int = 0

    def tick(self, now_ms: int) -> None:
        """A tick, by this worker's clock."""
        if not 0 <= now_ms - self.last_ms <= self.longest_ms:
            self.since_ms = now_ms
        self.last_ms = now_ms
