"""Brokers start and groups work whatever is wrong with kagent's side; a followed plan outlives the broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kagent.apply.nudge import nudge
from kagent.assignor import JAR
from kagent.embedded.broker import Broker, free_port
from kagent.kafka.acls import rules
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Topics
from tests.conftest import JAVA_OPTIONS, PASSWORD, encrypted_broker
from tests.fixtures.certificates import Certificates
from tests.fixtures.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka
PARTITIONS = 6
READ = "kagent's topics are read to their ends"
REFUSED = "cannot be read"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGGED = f"{JAVA_OPTIONS} -Dorg.slf4j.simpleLogger.log.io.kagent.assignor=info"


def logged(broker: Broker, text: str, times: int = 1) -> bool:
    return broker.log.read_text(errors="replace").count(text) >= times


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(PATIENCE_S)


def test_a_plan_outlives_the_broker_and_without_kagents_topics_groups_are_uniform(
    own_broker: Callable[..., Broker],
    settings_of: Callable[..., Any],
    stage_on: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", LOGGED)
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
    stage.until(partial(followed, stage, after))
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


def test_without_rights_groups_are_uniform_and_with_them_a_plan_is_followed_by_tls_and_scram(
    tmp_path: Path,
    certificates: Certificates,
    settings_of: Any,
    stage_on: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", LOGGED)
    port = free_port()
    client = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM_LOGIN} required username="subscriber" password="{PASSWORD}";',
    }
    more = settings_of(port) | {f"kagent.client.{name}": value for name, value in client.items()}
    guarded = encrypted_broker(tmp_path / "guarded", certificates, PASSWORD, more, (JAR,), port)
    try:
        stage = stage_on(guarded.root, "guarded")
        ensure(Admin(stage.cluster), Topics())
        stage.topic(PARTITIONS)
        stage.join(2)
        before = stage.settled(2, PARTITIONS)
        stage.until(lambda: logged(guarded.broker, REFUSED))
        first, second = sorted(before)
        after = {first: before[first] | before[second], second: frozenset()}
        stage.advise(before, after)
        assert not followed(stage, after)
        guarded.allow("subscriber", rules(Topics())["subscriber"])
        stage.until(lambda: logged(guarded.broker, READ))
        stage.until(partial(followed, stage, after))
    finally:
        guarded.broker.stop()


def followed(stage: Any, after: Any) -> bool:
    """Move the group's epoch; whether the coordinator then wants what the plan gives."""
    with nudge(stage.cluster, stage.name, "kagent-apply-nothing") as member:
        member.poll(1.0)
        stage.poll()
        return bool({**stage.targets(), **after} == stage.targets())


def rejoined(stage: Any, member: Any) -> bool:
    """Poll everybody once; whether the coordinator has a target for four members."""
    member.poll(0.2)
    return bool(stage.poll() or len(stage.targets()) == 4)
