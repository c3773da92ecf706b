"""A change of strategy, rolled as `switch_assignor` says, refuses no real client its join."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException

from kagent.contract.recommendation import GroupKind
from kagent.kafka.admin import Admin
from kagent.recommend.switching import JAVA_CLASS, how_to_switch

pytestmark = pytest.mark.kafka
PARTITIONS = 4
SETTING = "partition.assignment.strategy"


def rolls(how: str) -> list[str]:
    """The values of the setting that the sentence names, in order."""
    return re.findall(rf"{re.escape(SETTING)}=(\S+)", how)


def protocol(stage: Any) -> str:
    return Admin(stage.cluster).describe([stage.name])[stage.name].protocol


def test_java_consumers_change_strategy_in_two_rolls_without_a_refused_join(
    stage: Any, members: Callable[..., Any]
) -> None:
    """From an eager strategy to a cooperative one: the hardest of the changes."""
    stage.topic(PARTITIONS)
    how = how_to_switch(GroupKind.CLASSIC_JAVA, "cooperative-sticky", "range")
    running = [members(1, **{SETTING: JAVA_CLASS["range"]}) for _ in range(2)]
    started = list(running)
    stage.settled(2, PARTITIONS)
    for value in rolls(how):
        for at in range(2):
            running[at].stop()
            running[at] = members(1, **{SETTING: value})
            started.append(running[at])
            stage.settled(2, PARTITIONS)
    assert protocol(stage) == "cooperative-sticky"
    assert [line for one in started for line in one.lines if line[1] == "failed"] == []


def test_librdkafka_consumers_change_between_eager_strategies_in_two_rolls(stage: Any) -> None:
    stage.topic(PARTITIONS)
    how = how_to_switch(GroupKind.CLASSIC_LIBRDKAFKA, "roundrobin", "range")
    errors: list[Any] = []

    def join(value: str) -> None:
        stage.join(1, **{"group.protocol": "classic", SETTING: value, "error_cb": errors.append})

    for _ in range(2):
        join("range")
    stage.settled(2, PARTITIONS)
    for value in rolls(how):
        for _ in range(2):
            stage.consumers.pop(0).close()
            join(value)
            stage.settled(2, PARTITIONS)
    assert protocol(stage) == "roundrobin"
    assert errors == []


def test_librdkafka_refuses_a_list_that_mixes_eager_and_cooperative_so_the_group_is_stopped(
    stage: Any,
) -> None:
    stage.topic(PARTITIONS)
    with pytest.raises(KafkaException, match="same protocol type"):
        stage.join(1, **{"group.protocol": "classic", SETTING: "cooperative-sticky,range"})
    stage.join(2, **{"group.protocol": "classic", SETTING: "range"})
    stage.settled(2, PARTITIONS)
    stage.close()
    stage.consumers.clear()
    (value,) = rolls(how_to_switch(GroupKind.CLASSIC_LIBRDKAFKA, "cooperative-sticky", "range"))
    stage.join(2, **{"group.protocol": "classic", SETTING: value.rstrip(",")})
    stage.settled(2, PARTITIONS)
    assert protocol(stage) == "cooperative-sticky"
