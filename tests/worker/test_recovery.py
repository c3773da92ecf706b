"""Nothing is lost: worker, pipeline and broker are killed in turn, and no incident opens twice or is forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kagent.advice.recommendation import Status
from kagent.events import GroupEvent, decode

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

GROUP = "skewed"
START = [[("orders", 0), ("orders", 1), ("orders", 2)], [("orders", 3)]]


def eventually(what: str, check: Callable[[], Any], deadline: float = 180.0) -> Any:
    until = time.monotonic() + deadline
    while not (found := check()):
        assert time.monotonic() < until, f"not within {deadline:.0f} s: {what}"
        time.sleep(0.25)
    return found


@pytest.fixture(scope="module")
def running(kagent: Callable[..., Any]) -> Any:
    """A kagent that watches a group whose first member gets more than it can do, with its incident open."""
    made = kagent()
    made.topic("orders", 4)
    for place in (0, 1):
        made.member(GROUP, place, ["orders"], start=START, cost=0.025)
    made.load("orders", [20.0] * 4)
    made.start_pipeline()
    made.start_worker()
    made.wait_until_watching()
    eventually("an incident opens", lambda: made.incident(GROUP))
    return made


def assert_still_one_incident(running: Any) -> None:
    """One id was ever opened, and it is open."""
    history = [rec for rec in running.history() if rec.group == GROUP]

    assert len({rec.id for rec in history}) == 1
    assert [rec.status for rec in history].count(Status.OPEN) == 1
    assert running.incident(GROUP).status is not Status.RESOLVED


def judged_again(running: Any) -> None:
    """Wait until the group was judged afresh: watching, with the incident counted and not stale."""

    def fresh() -> bool:
        state, incident = running.state(), running.incident(GROUP)
        return bool(
            state and state.status == "watching" and state.open == 1 and incident and not incident.stale
        )

    eventually("the group is judged again", fresh, 240)


def test_a_killed_worker_forgets_and_repeats_nothing(running: Any) -> None:
    running.kill("worker")
    running.start_worker()

    judged_again(running)
    assert_still_one_incident(running)


def test_a_killed_pipeline_goes_on_where_it_was(running: Any) -> None:
    running.kill("pipeline")
    running.start_pipeline()

    judged_again(running)
    assert_still_one_incident(running)


def test_a_killed_broker_is_sat_out(running: Any) -> None:
    running.broker.kill()
    running.broker.start()

    judged_again(running)
    assert_still_one_incident(running)


def test_a_stopped_pipeline_makes_blind_and_nothing_opens_or_resolves(running: Any) -> None:
    before = len(running.history())

    assert running.stop("pipeline") == 0
    eventually("the state says blind", lambda: (s := running.state()) is not None and s.status == "blind")
    eventually("the open incident is marked stale", lambda: running.incident(GROUP).stale)
    said = running.history()[before:]
    assert {rec.status for rec in said} <= {Status.UPDATED, Status.SUPERSEDED}
    assert [rec.stale for rec in said][-1] is True

    running.start_pipeline()
    judged_again(running)
    assert_still_one_incident(running)


def test_the_lag_table_equals_the_admin_api_after_events_expired_unread(running: Any) -> None:
    running.topic("rare", 2)
    running.produce("rare", {0: 50, 1: 50})
    running.commit("idle", {("rare", 0): 10, ("rare", 1): 20})
    eventually("the first commit is known", lambda: "idle" in running.lag_table())
    assert running.stop("worker") == 0
    running.commit("idle", {("rare", 0): 30})
    expire_events(running)

    running.start_worker()
    eventually(
        "it says that it is blind", lambda: (s := running.state()) and "--replay" in (s.reason or ""), 90
    )
    assert running.lag_table()["idle"] == {("rare", 0): 10, ("rare", 1): 20}
    running.start("replay", "pipeline", "--replay", "--master", "local[1]")
    assert running.processes.pop("replay").wait(240) == 0

    judged_again(running)
    assert_still_one_incident(running)
    for name in [name for name in running.processes if name.startswith((GROUP, "load"))]:
        running.stop(name)
    running.assert_table_equals_admin()


def expire_events(running: Any) -> None:
    """What retention does to the events topic: wait until all is in it, then cut it off."""

    def written() -> bool:
        events = [decode(value) for _, value in running.read("kagent-group-events") if value]
        commits = [o for e in events if isinstance(e, GroupEvent) and e.group == "idle" for o in e.offsets]
        return any(30 in list(o.committed) for o in commits)

    eventually("the event was written", written)
    admin = AdminClient({"bootstrap.servers": running.broker.bootstrap})
    ends = [TopicPartition("kagent-group-events", p, -1) for p in range(2)]
    for future in admin.delete_records(ends).values():
        future.result(10)
