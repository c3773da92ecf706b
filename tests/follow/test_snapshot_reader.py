"""What stands under a group's key, message by message."""

from __future__ import annotations

import doctest
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kagent.contract.recommendation import Recommendation, State, to_bytes
from kagent.embedded.broker import free_port
from kagent.follow import host_address as hosts
from kagent.follow.decision_types import Snapshot
from kagent.follow.snapshot_reader import FOREVER, LARGEST, Reader, keep
from kagent.settings import Cluster, Topics

TOPICS = Topics()
NONE = Snapshot(5.0)


def read(*values: Any, topic: str = TOPICS.recommendations) -> Snapshot:
    found = NONE
    for value in values:
        found = keep(found, TOPICS, topic, value)
    return found


def test_the_last_recommendation_stands_until_a_tombstone(advise: Callable[..., Recommendation]) -> None:
    first, second = (
        to_bytes(advise({"a": [("t", 0)], "b": []}, {"a": [], "b": [("t", 0)]}, at)) for at in (1, 2)
    )
    assert read(first, second).recommendation == Recommendation.model_validate_json(second)
    assert read(first, None) == NONE


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b'{"type": "recommendation"}', b"\xff", b" " * (LARGEST + 1)]
)
def test_a_message_that_cannot_be_read_hides_the_one_before(
    advise: Callable[..., Recommendation], junk: bytes
) -> None:
    good = to_bytes(advise({"a": []}, {"a": [("t", 0)]}))
    found = read(good, junk)
    assert (found.recommendation, found.unreadable) == (None, True)
    assert not read(junk, good).unreadable


def test_a_state_message_is_no_recommendation() -> None:
    assert read(to_bytes(State(cluster="main", version="1", time=1, status="watching"))).unreadable


@pytest.mark.parametrize(
    ("value", "until"),
    [(b'{"until": 9000}', 9.0), (b'{"until": "x"}', FOREVER), (b"{", FOREVER), (b"[]", FOREVER), (None, 0.0)],
)
def test_a_mute_holds_until_its_time_and_for_good_if_it_cannot_be_read(
    value: bytes | None, until: float
) -> None:
    assert read(value, topic=TOPICS.mutes).muted_until == until


def test_addresses_are_written_as_a_broker_does() -> None:
    assert doctest.testmod(hosts).failed == 0
    assert hosts.java_host("fe80::1%eth0") == "fe80:0:0:0:0:0:0:1"
    assert hosts.java_host("somewhere") == "somewhere"


def test_a_cluster_that_is_away_leaves_the_cache_empty_and_stopping_takes_no_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    published: list[Snapshot] = []
    ticked = threading.Event()
    away = Cluster(bootstrap=f"127.0.0.1:{free_port()}")
    reader = Reader(away, "main", "billing", published.append, ticked.set)
    reader.start()
    assert ticked.wait(60)
    reader.stop(within=60)
    assert reader._thread is not None
    assert not reader._thread.is_alive()
    assert published == []
    assert f"kagent-mutes at {away.bootstrap} cannot be read" in caplog.text
    reader.stop()
