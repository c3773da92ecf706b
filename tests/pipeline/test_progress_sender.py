"""A beat arrives, or the next one goes out by another producer."""

from __future__ import annotations

from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.contract.events import Beat
from kagent.embedded.broker import HOST, free_port
from kagent.kafka.ends_aside import EndsAside
from kagent.pipeline.progress_sender import ProgressSender
from kagent.settings import Cluster, Topics
from tests.fixtures.waiting import PATIENCE_S

BEAT = Beat("main", 1_700_000_000_000, "run", 1.0, False, [0], [0], [10], [10], [10])


@pytest.mark.kafka
def test_a_producer_that_finds_its_brokers_no_more_is_replaced(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    topics, home = Topics(prefix=f"{uuid4().hex[:8]}-", partitions=2), Cluster(bootstrap=broker)
    client = AdminClient({"bootstrap.servers": broker})
    client.create_topics([NewTopic(topics.events, topics.partitions, 1)])[topics.events].result(PATIENCE_S)
    with ProgressSender(home, "main", topics) as sender:
        lost = {"bootstrap.servers": f"{HOST}:{free_port()}", "message.timeout.ms": 500, "log_level": 0}
        sender._producer = EndsAside(Producer(lost))
        arrived = sender.send(BEAT), sender.send(BEAT)

    assert arrived == (False, True)
    assert caplog.messages == ["Progress did not arrive: Local: Message timed out."]
