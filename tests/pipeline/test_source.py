"""The source topic is watched: what becomes of it under the stream is noticed and told."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest
from tenacity import wait_none

from kagent.errors import KafkaError
from kagent.kafka.descriptions import Offsets, TopicDescription
from kagent.kafka.reach import LoginRefused
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.source import OffsetsSource


class Cluster:
    """A cluster as its admin client would tell of it."""

    def __init__(self) -> None:
        self.there: dict[str, TopicDescription] = {OFFSETS_TOPIC: TopicDescription(OFFSETS_TOPIC, "id-1", 2)}
        self.says: list[KafkaError] = []

    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        if self.says:
            raise self.says.pop(0)
        return {name: self.there[name] for name in names if name in self.there}

    def log_end(self, keys: Iterable[tuple[str, int]], committed_only: bool = False) -> Offsets:
        return Offsets(dict.fromkeys(keys, 9 if committed_only else 10), {})


def source(cluster: Cluster, patient: bool = True) -> OffsetsSource:
    made: Any = cluster
    return OffsetsSource(made, threading.Event(), patient)


def test_a_topic_that_was_recreated_under_the_stream_is_a_reason_to_stop() -> None:
    cluster = Cluster()
    watched = source(cluster)
    watched.wait()
    watched.ends()
    watched.check()

    cluster.there[OFFSETS_TOPIC] = TopicDescription(OFFSETS_TOPIC, "id-2", 2)
    watched.ends()

    with pytest.raises(KafkaError, match="re-created: remove the checkpoint"):
        watched.check()


def test_more_partitions_are_said_once_and_their_ends_are_asked(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    watched = source(cluster)
    watched.wait()

    cluster.there[OFFSETS_TOPIC] = TopicDescription(OFFSETS_TOPIC, "id-1", 3)
    found = [watched.ends(), watched.ends()]

    assert found == [dict.fromkeys(range(3), (10, 9))] * 2
    assert [r.message for r in caplog.records] == [f"{OFFSETS_TOPIC} has 3 partitions now, 2 before."]
    watched.check()


def test_a_topic_that_is_gone_or_may_not_be_seen_is_one_sentence() -> None:
    cluster = Cluster()
    watched = source(cluster)
    watched.wait()
    cluster.there.clear()

    with pytest.raises(KafkaError, match="is gone or may no longer be seen"):
        watched.ends()
    with pytest.raises(KafkaError, match=r"may not be seen .`kagent acls` prints the rights"):
        source(cluster, patient=False).wait()


def test_an_absent_cluster_is_waited_for_and_a_refusal_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagent.pipeline.source.BACKOFF", wait_none())
    cluster = Cluster()
    cluster.says = [KafkaError("The cluster cannot be reached.")] * 2

    assert source(cluster).wait() == cluster.there[OFFSETS_TOPIC]
    cluster.says = [LoginRefused("The cluster refuses the login.")]
    with pytest.raises(KafkaError, match="refuses"):
        source(cluster).wait()
