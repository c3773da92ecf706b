"""In which one of five states a group is. Decided here alone: every count of groups, in the state message, the metrics and the
lists, comes from it. Of what is true of a group at once, the state is what a reader has to know first."""

from __future__ import annotations

from enum import StrEnum

from kagent.detect.evidence import NEW_MS


class EvaluationState(StrEnum):
    """In this order: the first that is true of a group is its state."""

    IGNORED = "ignored"
    """Left out by the settings: nothing is looked at."""
    BLIND = "blind"
    """What it does cannot be seen, or its judgement failed: nothing opens and nothing resolves."""
    MUTED = "muted"
    """Judged, and somebody silenced it for a while."""
    LEARNING = "learning"
    """Judged by stricter evidence, as its habits are unknown in its first hour."""
    JUDGED = "judged"


def group_state(
    *, ignored: bool, blind: bool, muted: bool, first_seen_ms: int, now_ms: int
) -> EvaluationState:
    """The state of a group of which these things are true."""
    if ignored:
        return EvaluationState.IGNORED
    if blind:
        return EvaluationState.BLIND
    if muted:
        return EvaluationState.MUTED
    return EvaluationState.LEARNING if now_ms < learned_by_ms(first_seen_ms) else EvaluationState.JUDGED


def learned_by_ms(first_seen_ms: int) -> int:
    """When the group's first hour is over, ms since the epoch."""
    return first_seen_ms + NEW_MS
