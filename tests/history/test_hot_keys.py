"""``kagent keys``: a topic with one heavy key is told, and what more partitions would do comes true."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from confluent_kafka import Producer

from kagent.commands.keys import as_document
from kagent.errors import InputError, KafkaError
from kagent.history.hot_keys import hot, ranges_to_sample, sample, with_partition_counts
from kagent.kafka.admin import Admin
from kagent.settings import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def produced(kafka: Any, topic: str, keys: list[bytes | None], partitioner: str = "murmur2_random") -> None:
    producer = Producer({"bootstrap.servers": kafka.broker.bootstrap, "partitioner": partitioner})
    for key in keys:
        producer.produce(topic, b"value", key=key)
    assert producer.flush(20) == 0


def sampled(
    runs: Callable[[], Any], kafka: Any, topic: str, most: int = 10**6, by_bytes: bool = False
) -> Any:
    ranges, seconds = ranges_to_sample(kafka.asked, topic, 3600, most)
    cluster = Cluster(bootstrap=kafka.broker.bootstrap)
    return sample(runs().spark, cluster, topic, ranges, seconds, by_bytes, "kagent-keys")


def test_the_heavy_key_is_found_and_more_partitions_do_what_was_said(
    runs: Callable[[], Any], kafka: Any
) -> None:
    keys: list[bytes | None] = [*[b"heavy"] * 600, *(f"key-{n}".encode() for n in range(400))]
    topic, wider = kafka.topic("keys", 4), kafka.topic("keys-wider", 12)
    produced(kafka, topic, keys)
    produced(kafka, wider, keys)

    found = sampled(runs, kafka, topic)
    predicted = with_partition_counts(found, [4, 12])
    truth = sampled(runs, kafka, wider)

    assert found.records == 1000
    assert found.fit == 1.0
    (partition, times, heaviest), *_ = hot(found)
    assert heaviest[0][0] == b"heavy"
    assert heaviest[0][1] == pytest.approx(600 / found.load[partition])
    assert times == pytest.approx(found.load.max() / 250)
    assert predicted[0].skew == pytest.approx(found.load.max() / found.load.mean())
    assert predicted[1].skew == pytest.approx(truth.load.max() / truth.load.mean())
    assert predicted[1].bound == pytest.approx(600 / (1000 / 12))


def test_another_partitioner_is_noticed_and_nothing_is_predicted(runs: Callable[[], Any], kafka: Any) -> None:
    topic = kafka.topic("keys-crc", 4)
    produced(kafka, topic, [f"key-{n}".encode() for n in range(300)], "consistent")

    found = sampled(runs, kafka, topic)

    assert found.fit < 0.6
    assert as_document(found, (4, 8))["changes"] is None


def test_records_without_a_key_and_a_small_sample_are_counted(runs: Callable[[], Any], kafka: Any) -> None:
    topic = kafka.topic("keys-none", 4)
    produced(kafka, topic, [None] * 400 + [b"a"] * 100)

    found = sampled(runs, kafka, topic, most=250, by_bytes=True)

    assert 240 <= found.records <= 260
    assert found.keyless.sum() > 0
    assert float(np.sum(found.load)) == pytest.approx(found.keyless.sum() + found.weight.sum())


def test_a_partition_without_a_leader_is_one_sentence() -> None:
    def answer(*partitions: int) -> SimpleNamespace:
        return SimpleNamespace(found={("t", p): 10 * p for p in partitions})

    admin = SimpleNamespace(
        topics=lambda names: {"t": SimpleNamespace(partitions=3)},
        log_start=lambda keys: answer(0, 1),
        offset_at=lambda keys, since: answer(),
        log_end=lambda keys, committed_only: answer(0, 1, 2),
    )
    with pytest.raises(KafkaError, match="Partitions 2 of t do not answer"):
        ranges_to_sample(cast(Admin, admin), "t", 60, 10)


def test_a_topic_that_is_missing_or_silent_is_one_sentence(kafka: Any) -> None:
    with pytest.raises(KafkaError, match="There is no topic nowhere"):
        ranges_to_sample(kafka.asked, "nowhere", 60, 10)
    with pytest.raises(InputError, match="Nothing was written"):
        ranges_to_sample(kafka.asked, kafka.topic("silent"), 60, 10)
