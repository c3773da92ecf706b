"""A partition of ``__consumer_offsets`` whose coordinator never answers costs the groups in it: a real broker, and one record that
makes it fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaError, KafkaException, Producer
from tenacity import stop_after_delay

from kagent.cli import root
from kagent.embedded.broker import Broker
from kagent.group_key import one_name_each, source_partition
from kagent.kafka import admin_errors
from kagent.kafka.admin import Admin
from kagent.kafka.ends_aside import EndsAside
from kagent.settings import Cluster
from tests.fixtures.cast import Cast
from tests.fixtures.waiting import until

SOURCES, SILENT = 4, 2
NAMES = {source_partition(name, SOURCES): name for name in ("g3", "g4", "g1", "g2")}
UNREADABLE = b"\0\1\0\2zz"
"""The key of an offset commit that ends within its group's name: the coordinator gives up loading the partition."""


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_errors.until_settled, "stop", stop_after_delay(0.5))


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a group in each partition of ``__consumer_offsets``, of which it cannot load one."""
    with Broker(tmp_path_factory.mktemp("silent") / "broker") as broker:
        cast = Cast(broker.bootstrap)
        cast.topic("orders", 1, records=3)
        for name in NAMES.values():
            cast.commit(name, "orders", 1)
        # Brokers let nobody else write to their internal topics.
        producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "__admin_client"})
        producer.produce("__consumer_offsets", b"\0", UNREADABLE, SILENT)
        assert producer.flush(30) == 0
        broker.stop()
        broker.start()
        others = set(NAMES.values()) - {NAMES[SILENT]}
        until(lambda: others == Admin(cast.admin.cluster).committed_each(others).found.keys())
        yield broker.bootstrap


def run(bootstrap: str, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["--bootstrap", bootstrap, *arguments])


def groups_in(result: Result) -> set[str]:
    return {json.loads(line)["group"] for line in result.stdout.splitlines()}


@pytest.mark.kafka
def test_lag_shows_the_other_groups_and_says_of_which_partition_groups_may_be_missing(silent: str) -> None:
    result = run(silent, "lag", "--json")

    assert groups_in(result) == set(NAMES.values()) - {NAMES[SILENT]}
    assert f"partition {SILENT} of __consumer_offsets (NOT_COORDINATOR" in result.stderr
    assert result.exit_code == 2


@pytest.mark.kafka
def test_lag_of_named_groups_shows_those_that_are_known_and_names_the_other(silent: str) -> None:
    result = run(silent, "lag", "--json", *NAMES.values())

    assert groups_in(result) == set(NAMES.values()) - {NAMES[SILENT]}
    assert f"1 group, {NAMES[SILENT]}." in result.stderr
    assert result.exit_code == 2


@pytest.mark.kafka
def test_check_judges_the_other_groups_and_is_not_well(silent: str) -> None:
    named = run(silent, "check", "--for", "1s", *NAMES.values())
    everything = run(silent, "check", "--for", "1s")

    assert named.stdout.startswith("3 groups judged")
    assert f"1 group, {NAMES[SILENT]}." in named.stderr
    assert everything.stdout.startswith("3 groups judged")
    assert f"partition {SILENT} of __consumer_offsets" in everything.stderr
    assert (named.exit_code, everything.exit_code) == (2, 2)


@pytest.mark.kafka
def test_where_all_coordinators_answer_none_is_missing(cast: Cast) -> None:
    cast.topic("all-answer", 1)
    cast.commit("all-answer", "all-answer", 0)

    assert cast.admin.without_coordinator() == {}


class Leaderless:
    """Answers as librdkafka does: one partition has no leader."""

    def list_offsets(self, asked: Any, **options: Any) -> dict[Any, Future[Any]]:
        futures = {}
        for place in asked:
            futures[place] = future = Future[Any]()
            if place.partition:
                future.set_exception(KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
            else:
                future.set_result(Answer(7))
        return futures

    def poll(self, seconds: float) -> None:
        pass


class Answer:
    leader_epoch = None

    def __init__(self, offset: int) -> None:
        self.offset = offset


@pytest.mark.slow
def test_a_partition_without_a_leader_costs_no_other_its_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Admin(Cluster(bootstrap="127.0.0.1:1"))
    admin._held, admin._checked = EndsAside(Leaderless()), True  # type: ignore[arg-type]

    answers = admin.log_end([("orders", 0), ("orders", 1)])

    assert answers.found == {("orders", 0): 7}
    assert "Leader not available" in answers.failed["orders", 1]


@pytest.mark.parametrize("partitions", [1, 2, 50])
def test_each_partition_of_the_offsets_topic_gets_a_name_of_its_own(partitions: int) -> None:
    names = one_name_each(partitions)

    assert names.keys() == set(range(partitions))
    assert all(source_partition(name, partitions) == partition for partition, name in names.items())
