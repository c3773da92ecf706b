"""What becomes of the offsets topic under a running stream, on a real broker."""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kagent.errors import KagentError
from kagent.kafka.admin import Admin
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.stream_service import Pipeline
from kagent.settings import Cluster, PipelineSettings, Settings
from tests.fixtures.cast import commit_when_loaded
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=2)]


class Running(threading.Thread):
    """A stream that runs until told to stop; ``ended``: why it ended before."""

    def __init__(self, spark: Any, bootstrap: str, folder: Path) -> None:
        super().__init__(daemon=True)
        main = Cluster(bootstrap=bootstrap)
        settings = Settings(
            clusters={"main": main}, pipeline=PipelineSettings(checkpoint=str(folder / "checkpoint"))
        )
        self.spark, self.pipeline = spark, Pipeline(settings, "main", main)
        self.ended: KagentError | None = None

    def run(self) -> None:
        try:
            source = self.pipeline.prepared()
            assert source is not None
            self.pipeline.run_on(self.spark, source)
        except KagentError as error:
            self.ended = error


@contextmanager
def running(spark: Any, bootstrap: str, folder: Path) -> Iterator[Running]:
    made = Running(spark, bootstrap, folder)
    made.pipeline.prepared()
    made.start()
    yield made
    made.pipeline.stop.set()
    made.join(60)
    assert not made.is_alive()


def commit(bootstrap: str, group: str, offset: int) -> None:
    """By the coordinator, which makes the offsets topic if there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    commit_when_loaded(consumer, [TopicPartition("t", 0, offset)])
    consumer.close()


def raw_commit(bootstrap: str, group: str, offset: int, partition: int) -> None:
    """As the coordinator would write it into this partition; only brokers may write there, or who says so."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "__admin_client"})
    name = group.encode()
    key = struct.pack(f">hh{len(name)}sh1si", 1, len(name), name, 1, b"t", 0)
    producer.produce(
        OFFSETS_TOPIC,
        struct.pack(">hqihq", 3, offset, -1, 0, 1_760_000_000_000),
        key=key,
        partition=partition,
    )
    assert producer.flush(20) == 0


def test_new_partitions_are_read_and_a_recreated_topic_ends_the_stream(
    spark: Any,
    own_broker: Callable[..., Any],
    kafka_reader: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "kagent.pipeline")
    broker = own_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_S)
    commit(broker.bootstrap, "before", 1)

    with running(spark, broker.bootstrap, tmp_path) as run:
        reader = kafka_reader(broker.bootstrap)
        reader.until(lambda found: found.get("before") == 1, 180)
        before = Admin(Cluster(bootstrap=broker.bootstrap)).topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions

        admin.create_partitions([NewPartitions(OFFSETS_TOPIC, before + 1)])[OFFSETS_TOPIC].result(PATIENCE_S)
        raw_commit(broker.bootstrap, "in-the-new-one", 7, before)
        reader.until(lambda found: found.get("in-the-new-one") == 7, 180)
        raw_commit(broker.bootstrap, "in-an-old-one", 8, 0)
        reader.until(lambda found: found.get("in-an-old-one") == 8, 180)
        assert f"{OFFSETS_TOPIC} has {before + 1} partitions now, {before} before." in caplog.messages

        admin.delete_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].result(PATIENCE_S)
        commit(broker.bootstrap, "after", 2)
        run.join(180)
        assert not run.is_alive()
        assert "re-created: remove the checkpoint" in str(run.ended)

    with running(spark, broker.bootstrap, tmp_path) as again:
        again.join(60)
        assert "was re-created since: remove the checkpoint" in str(again.ended)
    with running(spark, broker.bootstrap, tmp_path / "new"):
        reader.until(lambda found: found.get("after") == 2, 180)
