"""A real Kafka Streams application on Streams' own protocol (KIP-1071): its coordinator confirms, and its incident is published."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kagent.contract.recommendation import GroupKind
from kagent.embedded.broker import die_with_parent
from kagent.embedded.jars import broker_jars
from kagent.embedded.java import java
from kagent.kafka.admin import Admin
from tests.fixtures.kafka_jar import kafka_jar

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

APPLICATION = Path(__file__).parent / "SlowStreams.java"
SHA256 = "aa3a70c72cb04c72eabcf6d04762c3a3ca8522e93654eca9180e7877172433c4"
"""Of kafka-streams of the embedded broker's version."""
GROUP, TOPIC = "clicks-app", "clicks"


def start(running: Any, name: str, ms: int) -> None:
    """An instance of the application."""
    classpath = os.pathsep.join(map(str, [*broker_jars(), kafka_jar("kafka-streams", SHA256)]))
    arguments = (running.broker.bootstrap, GROUP, name, str(running.folder / name), TOPIC, str(ms))
    with (running.folder / f"{name}.log").open("wb") as log:
        running.processes[name] = subprocess.Popen(
            [java(), "-Xmx128m", "-XX:+UseSerialGC", "-cp", classpath, str(APPLICATION), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def test_a_late_application_of_the_streams_protocol_is_reported(
    kagent: Callable[..., Any], policy: dict[str, Any]
) -> None:
    running = kagent(policy)
    running.topic(TOPIC, 4)
    running.start_pipeline()
    running.start_worker()
    running.wait_until_watching()
    for name in ("clicks-1", "clicks-2"):
        start(running, name, ms=20)
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
