"""A source of fifty partitions, as brokers make it by default, in which a few groups each commit all the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.fixtures.beside import beside

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
GROUPS = [f"group-{number}" for number in range(100)]
"""So many fall on some forty partitions."""
IN_A_ROW = 20
"""State messages, one a second: longer than progress may be old."""


class Commits:
    """All groups commit, once a step."""

    def __init__(self, bootstrap: str) -> None:
        self.client, self.offset = AdminClient({"bootstrap.servers": bootstrap}), 0

    def step(self) -> None:
        self.offset += 1
        place = [TopicPartition("orders", 0, self.offset)]
        asked = [
            self.client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, place)])[group]
            for group in GROUPS
        ]
        for answer in asked:
            answer.exception(60)  # a coordinator that is not there yet: the next step


def test_groups_on_all_partitions_of_the_source_are_seen_in_time(kagent: Callable[..., Any]) -> None:
    running = kagent(extra={"offsets.topic.num.partitions": "50"})
    running.topic("orders", 1)

    watched: set[int] = set()

    def goes_on() -> bool:
        """Whether as many state messages in a row say so: the first ones come before the source was read once."""
        state = running.state()
        if state and state.status == "watching" and state.judged == len(GROUPS):
            watched.add(state.time)
        else:
            watched.clear()
        return len(watched) >= IN_A_ROW

    with beside(Commits(running.broker.bootstrap).step, every_s=1.0):
        running.start_pipeline()
        running.start_worker()
        running.eventually("all groups are judged while they commit", goes_on)
