"""Whether a group is still being learned, and until when at the latest: what the state message counts."""

from __future__ import annotations

from kagent.policy import Policy


def is_learning(first_seen_ms: int, now_ms: int, commits: int, policy: Policy) -> bool:
    """Whether the group is too new to be judged: not enough time has passed, or too few commits were seen."""
    return now_ms < learned_by_ms(first_seen_ms, policy) or commits < policy.learn_commits


def learned_by_ms(first_seen_ms: int, policy: Policy) -> int:
    """When the group has been known long enough, ms since the epoch."""
    return first_seen_ms + int(policy.learn * 1000)
