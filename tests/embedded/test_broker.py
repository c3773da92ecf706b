"""The embedded broker is a real one, comes back after a power cut, and says what hinders it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.embedded.broker import Broker
from kagent.errors import SetupError
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka]


def end_of(bootstrap: str, topic: str) -> int:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    admin = AdminClient({"bootstrap.servers": bootstrap})
    futures = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})
    return int(next(iter(futures.values())).result(PATIENCE_S).offset)


def test_a_killed_broker_comes_back_with_what_it_had(own_broker: Callable[..., Broker]) -> None:
    broker = own_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("t", b"x")
    assert producer.flush(PATIENCE_S) == 0

    broker.kill()
    broker.start()

    assert end_of(broker.bootstrap, "t") == 1


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(SetupError, match=f"Port {port} is in use"):
            Broker(tmp_path, port=port).start()


def test_a_broker_that_ends_while_it_starts_is_named_with_its_reason(tmp_path: Path) -> None:
    # Its controller's port: what is logged after the reason, while the broker shuts down, is no reason.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = Broker(tmp_path)
        broker.controller_port = taken.getsockname()[1]

        with pytest.raises(SetupError, match=r"ended at start: .*Address already in use"):
            broker.start()
