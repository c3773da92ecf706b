"""Events that expired unread: blind until a replay, and then the lag table equals what the broker says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kagent.contract.admission import decode_all
from kagent.contract.events import GroupEvent
from tests.fixtures.waiting import PATIENCE_S
from tests.worker.test_poison import page

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def test_the_lag_table_equals_the_admin_api_after_events_expired_unread(kagent: Callable[..., Any]) -> None:
    running = kagent()
    running.start_pipeline()
    running.start_worker()
    running.wait_until_watching()
    running.topic("rare", 2)
    running.produce("rare", {0: 50, 1: 50})
    running.commit("idle", {("rare", 0): 10, ("rare", 1): 20})
    running.eventually("the first commit is known", lambda: "idle" in running.lag_table())
    assert running.stop("worker") == 0
    running.commit("idle", {("rare", 0): 30})
    expire_events(running)

    running.start_worker()
    running.eventually(
        "it says that it is blind", lambda: (s := running.state()) and "--replay" in (s.reason or ""), 90
    )
    assert running.lag_table()["idle"] == {("rare", 0): 10, ("rare", 1): 20}
    running.start("replay", "pipeline", "--replay", "--master", "local[1]")
    assert running.processes.pop("replay").wait(240) == 0

    running.wait_until_watching()
    running.assert_table_equals_admin()
    assert running.history() == []

    assert '"idle"' in page(running, "/api/groups")[1]
    admin = AdminClient({"bootstrap.servers": running.broker.bootstrap})
    admin.delete_consumer_groups(["idle"])["idle"].result(PATIENCE_S)
    running.eventually(
        "a deleted group is not listed", lambda: '"idle"' not in page(running, "/api/groups")[1]
    )
    assert "idle" not in page(running, "/metrics")[1]


def expire_events(running: Any) -> None:
    """What retention does to the events topic: wait until all is in it, then cut it off."""

    def written() -> bool:
        events = [e for _, value in running.read("kagent-group-events") if value for e in decode_all(value)]
        commits = [o for e in events if isinstance(e, GroupEvent) and e.group == "idle" for o in e.offsets]
        return any(30 in list(o.committed) for o in commits)

    running.eventually("the event was written", written)
    admin = AdminClient({"bootstrap.servers": running.broker.bootstrap})
    ends = [TopicPartition("kagent-group-events", p, -1) for p in range(2)]
    for future in admin.delete_records(ends).values():
        future.result(PATIENCE_S)
