"""Real Java consumers of the classic protocol take kagent's plan, and can still go over to the new protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.assignor import CONSUMER_CLASS
from kagent.kafka.admin import Admin

pytestmark = pytest.mark.kafka
PARTITIONS = 6
KAFKAS = "org.apache.kafka.clients.consumer"
STRATEGY = "partition.assignment.strategy"


def test_cooperatively_only_the_moved_partitions_are_revoked_and_the_group_can_be_upgraded(
    stage: Any, members: Callable[..., Any]
) -> None:
    stage.topic(PARTITIONS)
    java = members(3, **{STRATEGY: CONSUMER_CLASS, "kagent.apply": "follow"})
    before = stage.settled(3, PARTITIONS)
    first, second, third = sorted(before)
    after = {first: before[first] | before[second], second: frozenset(), third: before[third]}
    seen = len(java.lines)
    stage.advise(before, after)
    stage.until(lambda: stage.held() == after)
    revoked = {part for _, what, part in java.lines[seen:] if what in ("revoked", "lost")}
    assert revoked == {f"{topic}-{number}" for topic, number in before[second]}
    stage.join(1)
    stage.until(
        lambda: stage.poll() or Admin(stage.cluster).describe([stage.name])[stage.name].type == "consumer"
    )
    stage.settled(4, PARTITIONS)
    assert not [line for line in java.lines if line[1] == "failed"]


def test_eagerly_the_plan_is_taken_too(stage: Any, members: Callable[..., Any]) -> None:
    stage.topic(PARTITIONS)
    both = f"{CONSUMER_CLASS},{KAFKAS}.RangeAssignor"
    members(2, **{STRATEGY: both, "kagent.apply": "follow", "group.instance.id": "static-{n}"})
    before = stage.settled(2, PARTITIONS)
    first, second = sorted(before)
    after = {first: frozenset(), second: before[first] | before[second]}
    stage.advise(before, after)
    stage.until(lambda: stage.held() == after)
