"""Whether a group is in its first hour, in which its habits are unknown and it needs more evidence: what the state counts."""

from __future__ import annotations

from kagent.detect.evidence import NEW_MS


def is_learning(first_seen_ms: int, now_ms: int) -> bool:
    """Whether the group is so new that its habits are unknown."""
    return now_ms < learned_by_ms(first_seen_ms)


def learned_by_ms(first_seen_ms: int) -> int:
    """When the group's first hour is over, ms since the epoch."""
    return first_seen_ms + NEW_MS
