"""Offsets of many partitions in one request per leader say the same as librdkafka: on a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.errors import KafkaError
from kagent.kafka import log_offsets
from kagent.kafka.admin import Admin
from kagent.kafka.log_offsets import ASKED, END, START, ListOffsetsAnswer, ListOffsetsQuestion, OffsetQuery
from kagent.lag.log_ends import UNKNOWN
from kagent.settings import Cluster
from kagent.worker import log_end_sampler
from kagent.worker.log_end_sampler import WANTED, Sampler
from tests.fixtures.waiting import PATIENCE_S

TOPICS = {"at-once-a": 3, "at-once-b": 1}


@pytest.fixture(scope="module")
def cluster(broker: str) -> Cluster:
    """Records 1, 2 and 3 in the partitions of a, an open transaction in b."""
    admin = AdminClient({"bootstrap.servers": broker})
    for future in admin.create_topics([NewTopic(name, n, 1) for name, n in TOPICS.items()]).values():
        future.result(PATIENCE_S)
    until = time.monotonic() + 30
    while set(Admin(Cluster(bootstrap=broker)).topics(TOPICS)) != set(TOPICS):
        assert time.monotonic() < until, "the topics cannot be seen"
    producer = Producer({"bootstrap.servers": broker})
    for partition, records in enumerate((1, 2, 3)):
        for _ in range(records):
            producer.produce("at-once-a", b"x", partition=partition)
    assert producer.flush(20) == 0
    return Cluster(bootstrap=broker)


@pytest.fixture
def hanging(cluster: Cluster) -> Iterator[None]:
    """A record of a transaction that is not committed while the test runs."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "at-once"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("at-once-b", b"x")
    producer.flush(20)
    yield
    producer.abort_transaction(20)


@pytest.mark.kafka
@pytest.mark.usefixtures("hanging")
def test_a_sample_at_once_is_the_sample_of_librdkafka(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler(Admin(cluster, deadline=20))
    sampler.describe(TOPICS)
    by_librdkafka = sampler.sample(TOPICS)
    monkeypatch.setattr(log_end_sampler, "AT_ONCE_FROM", 1)
    monkeypatch.setattr(log_end_sampler.Sampler, "_fill", lambda *_: None)  # nothing is left to librdkafka
    at_once = sampler.sample(TOPICS)

    offsets = [
        [(s.topic, s.start.tolist(), s.end.tolist(), s.stable.tolist()) for s in samples]
        for samples in (by_librdkafka, at_once)
    ]
    assert offsets[0] == offsets[1]
    assert offsets[1][0] == ("at-once-a", [0, 0, 0], [1, 2, 3], [1, 2, 3])
    _, start, end, stable = offsets[1][1]
    assert start == [0]
    assert stable == [end[0] - 1], "the open transaction is beyond the last stable offset"


@pytest.mark.kafka
def test_what_a_leader_does_not_answer_is_asked_of_librdkafka(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_end_sampler, "AT_ONCE_FROM", 1)
    admin = Admin(cluster, deadline=20)
    leader = admin.topics(TOPICS)["at-once-a"].leaders[0]

    columns = admin.columns({"at-once-a": [leader, leader + 77, -1, leader]}, WANTED)
    assert [one.offsets["at-once-a"].tolist() for one in columns] == [
        [1, UNKNOWN, UNKNOWN, UNKNOWN],  # of a node that is none, of no leader, of a partition that is none
        [0, UNKNOWN, UNKNOWN, UNKNOWN],
        [1, UNKNOWN, UNKNOWN, UNKNOWN],
    ]

    sampler = Sampler(admin)
    sampler.describe(TOPICS)
    found = sampler.topics["at-once-a"]
    object.__setattr__(found, "leaders", (leader + 77, leader, -1))
    assert sampler.sample(["at-once-a"])[0].end.tolist() == [1, 2, 3]


@pytest.mark.slow
def test_no_broker_at_all_is_an_error_for_people() -> None:
    with pytest.raises(KafkaError, match="cannot be reached"):
        Admin(Cluster(bootstrap="127.0.0.1:1"), deadline=3).columns({"t": [1]}, WANTED)


def test_requests_hold_whole_topics_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_offsets, "CHUNK", 5)
    topics = {name: np.arange(n) for name, n in (("a", 3), ("b", 2), ("c", 9), ("d", 1))}

    assert [list(chunk) for chunk in log_offsets._chunks(topics)] == [["a", "b"], ["c"], ["d"]]


def test_a_request_is_kafkas_own_layout() -> None:
    body = ListOffsetsQuestion(OffsetQuery(START), {"tä": np.array([0, 7])}).encode()

    head, rows = body[: -2 * ASKED.itemsize], np.frombuffer(body[-2 * ASKED.itemsize :], ASKED)
    assert head.hex(" ") == "ff ff ff ff 00 00 00 00 01 00 03 74 c3 a4 00 00 00 02"
    assert rows.tolist() == [(0, -2), (7, -2)]
    assert ListOffsetsQuestion(OffsetQuery(END, committed_only=True), {}).encode()[4] == 1


def test_an_answer_that_is_cut_short_is_refused() -> None:
    with pytest.raises(ValueError, match="buffer"):
        ListOffsetsAnswer.decode(bytes.fromhex("00000000 00000001 0001 74 00000003 0000"))
