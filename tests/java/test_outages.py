"""Brokers start and groups work whatever is wrong with kagent's side; a followed plan outlives the broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kagent.apply.nudge import nudge
from kagent.assignor import JAR
from kagent.embedded.broker import Broker, free_port
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Topics

pytestmark = pytest.mark.kafka
PARTITIONS = 6
READ = "kagent's topics are read to their ends"
REFUSED = "cannot be read"


def logged(broker: Broker, text: str, times: int = 1) -> bool:
    return broker.log.read_text(errors="replace").count(text) >= times


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(15)


def test_a_plan_outlives_the_broker_and_without_kagents_topics_groups_are_uniform(
    own_broker: Callable[..., Broker],
    settings_of: Callable[..., Any],
    stage_on: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dorg.slf4j.simpleLogger.log.io.kagent.assignor=info")
    port = free_port()
    broker = own_broker(port=port, plugins=(JAR,), extra=settings_of(port))
    stage = stage_on(broker.bootstrap, "outliving")
    stage.topic(PARTITIONS)
    stage.join(3)
    before = stage.settled(3, PARTITIONS)  # there are no topics of kagent yet
    assert sorted(map(len, before.values())) == [2, 2, 2]
    stage.until(lambda: logged(broker, REFUSED))

    ensure(Admin(stage.cluster), Topics())
    stage.until(lambda: logged(broker, READ))
    first, second, third = sorted(before)
    after = {first: before[first] | before[second], second: frozenset(), third: before[third]}
    stage.advise(before, after)

    def followed() -> bool:
        with nudge(stage.cluster, stage.name, "kagent-apply-nothing") as member:
            member.poll(1.0)
            stage.poll()
            return bool({**stage.targets(), **after} == stage.targets())

    stage.until(followed)
    assert stage.settled(3, PARTITIONS) == after

    broker.kill()
    broker.start()
    stage.until(lambda: logged(broker, READ, 2))
    assert stage.settled(3, PARTITIONS) == after
    with nudge(stage.cluster, stage.name, "kagent-apply-nothing") as member:
        stage.until(partial(rejoined, stage, member))
        assert {m: held for m, held in stage.targets().items() if m in after} == after
    assert stage.settled(3, PARTITIONS) == after

    delete(stage.bootstrap, Topics().recommendations)
    stage.until(lambda: logged(broker, REFUSED, 2))
    with nudge(stage.cluster, stage.name, "kagent-apply-nothing") as member:
        stage.until(partial(rejoined, stage, member))
        assert {m: held for m, held in stage.targets().items() if m in after} == after


def test_a_wrong_address_keeps_no_broker_from_starting(
    own_broker: Any, settings_of: Any, stage_on: Any
) -> None:
    broker = own_broker(
        plugins=(JAR,), extra=settings_of(free_port(), "nonsense") | {"kagent.max.age.ms": "x"}
    )
    stage = stage_on(broker.bootstrap, "alone")
    stage.topic(PARTITIONS)
    stage.join(1)
    stage.settled(1, PARTITIONS)


def rejoined(stage: Any, member: Any) -> bool:
    """Poll everybody once; whether the coordinator has a target for four members."""
    member.poll(0.2)
    return bool(stage.poll() or len(stage.targets()) == 4)
