"""A name that a client made up costs nobody else's answer: on a real broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.kafka.admin import Admin
from kagent.settings import Cluster
from kagent.worker.log_end_sampler import Sampler
from tests.fixtures.waiting import PATIENCE_S

HOSTILE = ["", ".", "..", "a b", "a\0b", "\0", "ä", "a/b", "x" * 250, "x" * 40_000, "line\nbreak", "a\ud800b"]


@pytest.fixture(scope="module")
def cluster(broker: str) -> Cluster:
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic("hostile-real", 3, 1)])["hostile-real"].result(PATIENCE_S)
    cluster = Cluster(bootstrap=broker)
    until = time.monotonic() + 30
    while "hostile-real" not in Admin(cluster).topics(["hostile-real"]):
        assert time.monotonic() < until, "the topic cannot be seen"
    return cluster


@pytest.mark.kafka
def test_names_that_kafka_does_not_allow_cost_only_themselves(cluster: Cluster) -> None:
    admin = Admin(cluster)

    assert set(admin.topics([*HOSTILE, "hostile-real"])) == {"hostile-real"}
    assert set(admin.topic_configs([*HOSTILE, "hostile-real"])) == {"hostile-real"}
    assert set(admin.log_end([(name, 0) for name in (*HOSTILE, "hostile-real")]).found) == {
        ("hostile-real", 0)
    }


@pytest.mark.kafka
def test_20_000_unknown_names_do_not_hide_the_topics_that_exist(cluster: Cluster) -> None:
    sampler = Sampler(Admin(cluster, deadline=10))
    wanted = {f"unknown-{n}" for n in range(20_000)} | {"hostile-real"}

    for _ in range(2):
        sampler.describe(wanted)

    assert set(sampler.topics) == {"hostile-real"}
    assert [sample.end.tolist() for sample in sampler.sample(wanted)] == [[0, 0, 0]]
