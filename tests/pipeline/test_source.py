"""The source topic is watched: what becomes of it under the stream is noticed and told."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from tenacity import wait_none

from kagent.errors import KafkaError
from kagent.group_key import source_partition
from kagent.kafka.descriptions import Offsets, TopicDescription
from kagent.kafka.reach import LoginRefused
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.source import (
    LEADERLESS_AFTER_S,
    UNDEFINED,
    LeadersChanged,
    LogCutError,
    OffsetsSource,
)


class Cluster:
    """A cluster as its admin client would tell of it."""

    def __init__(self) -> None:
        self.there: dict[str, TopicDescription] = {OFFSETS_TOPIC: TopicDescription(OFFSETS_TOPIC, "id-1", 2)}
        self.says: list[KafkaError] = []
        self.end, self.epoch = 10, 4
        self.ended: dict[int, int] = {}

    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        if self.says:
            raise self.says.pop(0)
        return {name: self.there[name] for name in names if name in self.there}

    def log_end(self, keys: Iterable[tuple[str, int]], committed_only: bool = False) -> Offsets:
        keys = list(keys)
        end = self.end - 1 if committed_only else self.end
        return Offsets(dict.fromkeys(keys, end), {}, dict.fromkeys(keys, self.epoch))

    def epoch_ends(self, topic: TopicDescription, epochs: Mapping[int, int]) -> dict[int, int]:
        """``ended``: partition → where the epoch before this one ended in the leader's log."""
        assert set(epochs.values()) <= {4, 5}
        return {p: self.ended[p] for p in epochs if p in self.ended}


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


def test_partitions_that_have_no_leader_for_longer_than_an_election_takes_are_left_out_until_they_have_one() -> (
    None
):
    cluster, now_s = Cluster(), 100.0
    watched = source(cluster)
    watched.clock = lambda: now_s
    cluster.there[OFFSETS_TOPIC] = TopicDescription(OFFSETS_TOPIC, "id-1", 3, (1, 1, 1))
    watched.wait()
    watched.ends()
    cluster.there[OFFSETS_TOPIC] = TopicDescription(OFFSETS_TOPIC, "id-1", 3, (1, -1, 1))
    assert set(watched.ends()) == {0, 2}
    watched.check(read=range(3))
    now_s += LEADERLESS_AFTER_S
    with pytest.raises(LeadersChanged, match="No broker leads __consumer_offsets-1: the groups"):
        watched.check(read=range(3))
    watched.check(read=(0, 2))

    cluster.there[OFFSETS_TOPIC] = TopicDescription(OFFSETS_TOPIC, "id-1", 3, (1, 1, 1))
    assert set(watched.ends()) == {0, 1, 2}
    with pytest.raises(LeadersChanged, match="All partitions of __consumer_offsets have a leader again"):
        watched.check(read=(0, 2))


def test_a_query_does_not_begin_with_partitions_that_have_no_leader_nor_with_a_group_that_has_no_coordinator() -> (
    None
):
    cluster = Cluster()
    cluster.there[OFFSETS_TOPIC] = TopicDescription(OFFSETS_TOPIC, "id-1", 3, (-1, 1, -1))
    watched = source(cluster)
    watched.wait()
    watched.ends()

    assert watched.readable == {1}
    groups = {watched.group_with_coordinator("kagent-pipeline") for _ in range(20)}
    assert {source_partition(group, 3) for group in groups} == {1}


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
    monkeypatch.setattr("kagent.retry.BACKOFF", wait_none())
    cluster = Cluster()
    cluster.says = [KafkaError("The cluster cannot be reached.")] * 2

    assert source(cluster).wait() == cluster.there[OFFSETS_TOPIC]
    cluster.says = [LoginRefused("The cluster refuses the login.")]
    with pytest.raises(KafkaError, match="refuses"):
        source(cluster).wait()


def elected(cluster: Cluster, end: int, ended: int) -> None:
    """Another leader, whose log ends here, and in which the epoch before ended there."""
    cluster.epoch += 1
    cluster.end, cluster.ended = end, {0: ended, 1: ended}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def watched(cluster: Cluster) -> OffsetsSource:
    """A source whose logs were seen to end at 10."""
    made = source(cluster)
    made.wait()
    assert set(made.ends()) == {0, 1}
    return made


def test_a_log_that_lost_its_end_is_noticed_though_it_has_grown_past_it(
    cluster: Cluster, watched: OffsetsSource
) -> None:
    elected(cluster, end=50, ended=7)

    assert watched.ends() == {}
    assert watched.cut == {0: 7, 1: 7}
    with pytest.raises(
        LogCutError, match="-0 from offset 7 on, __consumer_offsets-1 from offset 7 on is gone"
    ):
        watched.check()


def test_a_leader_that_has_all_of_the_log_is_no_cut(cluster: Cluster, watched: OffsetsSource) -> None:
    elected(cluster, end=50, ended=12)

    assert set(watched.ends()) == {0, 1}
    watched.check()
    assert watched.epochs == {0: 5, 1: 5}


def test_a_leader_that_cannot_be_asked_yet_is_asked_again(cluster: Cluster, watched: OffsetsSource) -> None:
    elected(cluster, end=50, ended=7)
    cluster.ended.clear()
    assert watched.ends() == {}
    watched.check()

    cluster.ended = {0: 7, 1: 20}

    assert set(watched.ends()) == {1}
    assert watched.cut == {0: 7}


def test_a_leader_of_before_is_not_believed(cluster: Cluster, watched: OffsetsSource) -> None:
    cluster.epoch, cluster.end = 3, 8

    assert watched.ends() == {}
    watched.check()


def test_a_shorter_log_of_a_leader_that_knows_no_such_epoch_is_a_cut(
    cluster: Cluster, watched: OffsetsSource
) -> None:
    elected(cluster, end=6, ended=UNDEFINED)
    watched.ends()

    assert watched.cut == {0: 6, 1: 6}


@pytest.mark.parametrize(("end", "found"), [(8, {0: 8}), (50, {})])
def test_without_an_epoch_on_record_the_offsets_alone_are_compared(
    cluster: Cluster, end: int, found: dict[int, int]
) -> None:
    cluster.end = end
    resumed = source(cluster)
    resumed.wait()
    resumed.resume({0: 20 if found else 9}, {})
    resumed.ends()

    assert resumed.cut == found


def test_what_was_lost_while_no_pipeline_ran_is_noticed_by_the_epoch_on_record(cluster: Cluster) -> None:
    elected(cluster, end=50, ended=7)
    resumed = source(cluster)
    resumed.wait()
    resumed.resume({0: 9, 1: 6}, {0: 4, 1: 4})
    resumed.ends()

    assert resumed.cut == {0: 7}
