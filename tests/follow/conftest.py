"""A group of three members and a recommendation that is exactly about it; tests then spoil one or the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from kagent.contract.recommendation import Recommendation

Pairs = Sequence[tuple[str, int]]


def recommendation(
    before: Mapping[str, Pairs], after: Mapping[str, Pairs], now: float | None = None, **said: Any
) -> Recommendation:
    """A recommendation that turns ``before`` into ``after``, with the fields that the worker fills."""
    at = int((time.time() if now is None else now) * 1000)
    holder = {tuple(pair): name for name, held in before.items() for pair in held}
    moves = [
        {"topic": topic, "partition": number, "from": holder.get((topic, number)), "to": name}
        for name, held in after.items()
        for topic, number in held
        if holder.get((topic, number)) != name
    ]
    topics = {topic for held in after.values() for topic, _ in held}
    usual = {
        "id": "0123456789abcdef",
        "cluster": "main",
        "group": "billing",
        "status": "open",
        "verdict": "rebalance",
        "severity": "ticket",
        "confidence": "high",
        "reason": "One member holds most of the group's backlog.",
        "group_kind": "classic_python",
        "opened_at": at,
        "as_of": at,
        "valid_until": at + 600_000,
        "skew": {"now": 2.5, "after": 1.1},
        "members": [{"member": name, "partitions": len(held)} for name, held in before.items()],
        "moves": moves,
        "move_count": len(moves),
        "assignment": {name: list(held) for name, held in after.items()},
        "actions": [{"type": "follow_plan", "how": "Let the group follow the plan.", "feasible": "yes"}],
        "basis": {
            "generation": 7,
            "digest": "d",
            "partitions": {
                t: 1 + max(n for held in after.values() for topic, n in held if topic == t) for t in topics
            },
        },
    }
    return Recommendation.model_validate(usual | said)


@pytest.fixture
def advise() -> Callable[..., Recommendation]:
    return recommendation
