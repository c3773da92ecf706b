"""A real Kafka Streams application on Streams' own protocol (KIP-1071): its coordinator confirms, and its incident is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.contract.recommendation import GroupKind
from kagent.kafka.admin import Admin
from tests.fixtures.streams_app import start_streams

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

GROUP, TOPIC = "clicks-app", "clicks"


def test_a_late_application_of_the_streams_protocol_is_reported(
    kagent: Callable[..., Any], policy: dict[str, Any]
) -> None:
    running = kagent(policy)
    running.topic(TOPIC, 4)
    running.start_pipeline()
    running.start_worker()
    running.wait_until_watching()
    for name in ("clicks-1", "clicks-2"):
        running.processes[name] = start_streams(
            running.broker.bootstrap, GROUP, name, running.folder, TOPIC, ms=20
        )
    admin = Admin(running.cluster)

    def settled() -> bool:
        found = admin.describe([GROUP])[GROUP]
        return found.state == "stable" and [len(m.assigned) for m in found.members] == [2, 2]

    running.eventually("both instances have their tasks", settled)
    # Twice of what two threads can do in 20 ms a record.
    running.load(TOPIC, [50.0] * 4)
    incident = running.eventually("it is reported", lambda: running.incident(GROUP), deadline=240)

    assert incident.group_kind is GroupKind.STREAMS
    assert str(incident.verdict) == "under_provisioned"
    assert {m.client_id for m in incident.members} == {f"clicks-{n}-StreamThread-1-consumer" for n in (1, 2)}
