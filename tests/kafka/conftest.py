"""What the tests on a real broker share: clients, and waiting with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.kafka.admin import Admin
from kagent.settings import Cluster

QUIET = {"log_level": 0}


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The condition's first true answer; fails after a deadline."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return answer


@dataclass
class Cast:
    """Topics, records and consumers of one test on one broker."""

    bootstrap: str
    consumers: list[Consumer] = field(default_factory=list)

    @property
    def admin(self) -> Admin:
        return Admin(Cluster(bootstrap=self.bootstrap), deadline=15)

    def topic(self, name: str, partitions: int, records: int = 0, **config: str) -> None:
        """A topic with so many records in each partition, but one more in each than in the one before."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        client.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(15)
        until(lambda: name in self.admin.topics([name]) and self.admin.topic_configs([name]))
        self.produce(name, {p: records + p for p in range(partitions)} if records else {})

    def produce(self, topic: str, counts: dict[int, int]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, **QUIET})
        for partition, count in counts.items():
            for _ in range(count):
                producer.produce(topic, b"x", partition=partition)
        assert producer.flush(15) == 0

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit for the topic's first partition without a member."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])]

        def taken() -> bool:
            answer = client.alter_consumer_group_offsets(asked)[group].result(15)
            return all(part.error is None for part in answer.topic_partitions)

        until(taken)

    def join(self, group: str, topics: list[str], **config: Any) -> Consumer:
        """A librdkafka consumer in the group, which commits only what it is told to."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False}
        consumer = Consumer({**settings, **QUIET, "auto.offset.reset": "earliest", **config})
        consumer.subscribe(topics)
        self.consumers.append(consumer)
        return consumer

    def settle(self, group: str, *consumers: Consumer) -> None:
        """Until consumers and coordinator agree on who holds what, and each holds something."""
        admin = self.admin

        def agreed() -> bool:
            for consumer in consumers:
                consumer.poll(0.05)
            theirs = [{(p.topic, p.partition) for p in consumer.assignment()} for consumer in consumers]
            seen = admin.describe([group]).get(group) if all(theirs) else None
            if seen is None or seen.state != "stable":
                return False
            return sorted(map(sorted, theirs)) == sorted(sorted(member.assigned) for member in seen.members)

        until(agreed)

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


@pytest.fixture
def cast(broker: str) -> Iterator[Cast]:
    acting = Cast(broker)
    yield acting
    acting.close()
