"""Real producers and consumers in threads, stopped after each test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic


class Stage:
    """A topic, producers at a steady rate, and consumers that take their time over each record."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []

    def topic(self, name: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(30)

    def produce(self, topic: str, per_second: dict[int, float]) -> None:
        self._run(self._produce, topic, per_second)

    def _produce(self, topic: str, per_second: dict[int, float]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        began, sent = time.monotonic(), dict.fromkeys(per_second, 0)
        while not self.stop.wait(0.05):
            for partition, rate in per_second.items():
                due = int((time.monotonic() - began) * rate)
                for _ in range(due - sent[partition]):
                    producer.produce(topic, b"x", partition=partition)
                sent[partition] = due
            producer.poll(0)
        producer.flush(10)

    def consume(self, topic: str, group: str, client: str, seconds: float = 0.0, **config: Any) -> None:
        self._run(self._consume, topic, group, client, seconds, config)

    def _consume(self, topic: str, group: str, client: str, seconds: float, config: dict[str, Any]) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "client.id": client,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1000,
                "enable.auto.offset.store": False,
                **config,
            }
        )
        consumer.subscribe([topic])
        try:
            while not self.stop.is_set():
                for message in consumer.consume(20, 0.2):
                    if message.error() is None:
                        self.stop.wait(seconds) if seconds else None
                        consumer.store_offsets(message)
        finally:
            consumer.close()

    def _run(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        thread.start()
        self.threads.append(thread)

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(30)


@pytest.fixture
def stage(broker: str) -> Iterator[Stage]:
    made = Stage(broker)
    yield made
    made.end()
