"""``kagent alert`` against a real broker, a real Alertmanager and a real HTTP server, killed and cut off on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kagent.cli import root
from kagent.contract.recommendation import Recommendation, to_bytes
from kagent.embedded.broker import die_with_parent
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, Topics
from tests.fixtures.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow(minutes=2)]


class Bridge:
    """``kagent alert`` as a process, with topics of its own."""

    def __init__(self, folder: Path, bootstrap: str, destinations: dict[str, Any]) -> None:
        self.folder, self.prefix = folder, f"kagent-{uuid.uuid4().hex[:8]}-"
        self.config = folder / "kagent.yaml"
        values = {
            "clusters": {"main": {"bootstrap": bootstrap}},
            "topics": {"prefix": self.prefix, "partitions": 1},
            "alert": {"destinations": destinations},
        }
        self.config.write_text(yaml.safe_dump(values))
        ensure(Admin(Cluster(bootstrap=bootstrap)), Topics(prefix=self.prefix, partitions=1))
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "alert.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kagent", "--config", str(self.config), "alert"],
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )

    def kill(self, number: int = signal.SIGKILL) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        return self.process.wait(30)

    def log(self) -> str:
        return (self.folder / "alert.log").read_text()

    def publish(self, *messages: Recommendation) -> None:
        for message in messages:
            key = f"{message.cluster}/{message.group}"
            self.producer.produce(f"{self.prefix}recommendations", to_bytes(message), key)
        assert self.producer.flush(20) == 0


@pytest.fixture
def bridge(tmp_path: Path, broker: str) -> Iterator[Callable[..., Bridge]]:
    made: list[Bridge] = []

    def make(bootstrap: str = broker, **destinations: Any) -> Bridge:
        made.append(Bridge(tmp_path, bootstrap, destinations))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        if one.process is not None and one.process.poll() is None:
            one.kill()


def test_opens_changes_and_closes_arrive_once_though_bridge_and_destination_fail(
    bridge: Any, alertmanager: Any, receiver: Any, rec: Any, eventually: Any
) -> None:
    running = bridge(
        hook={"type": "webhook", "url": receiver.url, "secret": "s3cret-key", "retry_most": 0.5},
        am={"type": "alertmanager", "url": alertmanager.url, "resend": 1},
    )
    running.publish(rec("one"), rec("low", severity="info"))
    eventually("the webhook hears of it", lambda: receiver.events("one") == ["open"])
    eventually("the Alertmanager fires", lambda: len(alertmanager.now("one")) == 1)
    first = alertmanager.now("one")[0]

    running.publish(rec("one", status="updated", at=2, skew={"now": 3.0}))  # figures alone are no news
    running.publish(rec("one", status="updated", at=3, verdict="slow_member", severity="page"))
    eventually("the change arrives", lambda: receiver.events("one") == ["open", "change"])
    eventually(
        "the alert changes its annotations, not its labels",
        lambda: alertmanager.now("one")[0]["annotations"]["verdict"] == "slow_member",
    )
    assert alertmanager.now("one")[0]["labels"] == first["labels"]

    receiver.status = 503  # a destination that is down
    running.publish(rec("two"))
    eventually("the other destination does not wait", lambda: len(alertmanager.now("two")) == 1)
    tried = receiver.tried
    eventually("it is tried again", lambda: receiver.tried > tried + 1)
    running.kill()
    running.publish(rec("one", status="resolved", resolution="drained", at=4), rec("three"))
    running.publish(rec("three", status="resolved", resolution="drained", at=2))
    running.start()
    eventually("the close arrives", lambda: not alertmanager.now("one"))
    receiver.status = 200
    eventually("what waited arrives", lambda: receiver.events("two") == ["open"])
    eventually("what ended meanwhile, too", lambda: receiver.events("three") == ["open", "close"])
    assert receiver.events("one") == ["open", "change", "close"]

    assert running.kill(signal.SIGTERM) == 0
    before = len(receiver.received)
    running.start()
    running.publish(rec("two", status="resolved", resolution="followed", at=9))
    eventually("the next close arrives", lambda: receiver.events("two") == ["open", "close"])
    eventually("and ends the alert", lambda: not alertmanager.now("two"))
    assert len(receiver.received) == before + 1
    assert receiver.events("low") == []
    assert not alertmanager.now("low")
    assert "s3cret-key" not in running.log()


def test_what_is_open_stays_alive_and_stale_while_kagent_is_silent(
    bridge: Any, alertmanager: Any, rec: Any, eventually: Any
) -> None:
    running = bridge(am={"type": "alertmanager", "url": alertmanager.url, "resend": 1})

    running.publish(rec("silent"))

    eventually(
        "it is marked stale",
        lambda: (found := alertmanager.now("silent")) and "out of date" in found[0]["annotations"]["summary"],
    )
    updated = eventually("it is active", lambda: [alert["endsAt"] for alert in alertmanager.now("silent")])
    eventually(
        "it is kept alive",
        lambda: any(alert["endsAt"] > max(updated) for alert in alertmanager.now("silent")),
    )


def test_a_broker_that_goes_and_comes_back_costs_no_open_and_no_close(
    bridge: Any, own_broker: Any, receiver: Any, rec: Any, eventually: Any
) -> None:
    home = own_broker()
    running = bridge(home.bootstrap, hook={"type": "webhook", "url": receiver.url, "retry_most": 0.5})
    running.publish(rec("before"))
    eventually("the first open arrives", lambda: receiver.events("before") == ["open"])

    home.kill()
    eventually("the bridge notices", lambda: "Unable" in running.log() or "rror" in running.log())
    home.start(180)
    running.publish(rec("before", status="resolved", resolution="drained", at=2), rec("after"))

    eventually("what came then arrives", lambda: receiver.events("after") == ["open"])
    eventually("and the close", lambda: receiver.events("before") == ["open", "close"])
    assert running.process.poll() is None
    assert running.kill(signal.SIGTERM) == 0
    running.start()
    running.publish(rec("after", status="resolved", resolution="drained", at=9))
    eventually("its place was kept", lambda: receiver.events("after") == ["open", "close"])
    assert len(receiver.received) == 4


class Lost:
    """Topics that lose what is on them."""

    def __init__(self, bootstrap: str) -> None:
        self.cluster = Cluster(bootstrap=bootstrap)
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def cut(self, topic: str) -> None:
        """Delete all records, which Kafka refuses for a topic that is only compacted."""
        change = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource("topic", topic, incremental_configs=[change])
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
        until(lambda: self._cut(topic), "the records are deleted")

    def _cut(self, topic: str) -> bool:
        found = self.admin.delete_records([TopicPartition(topic, 0, -1)])
        return all(future.exception(30) is None for future in found.values())

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(PATIENCE_S)
        until(lambda: topic not in Admin(self.cluster).topics([topic]), "the topic is gone")

    def keys(self, topic: str) -> set[str]:
        """The keys of all records that are on it."""
        reader = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": "r", "log_level": 0,
                           "enable.partition.eof": True, "enable.auto.commit": False})  # fmt: skip
        reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: set[str] = set()
        while (record := reader.poll(10)) is not None and record.error() is None:
            found.add((record.key() or b"").decode())
        reader.close()
        return found


@pytest.mark.parametrize("how", ["cut", "delete"])
def test_a_delivery_log_that_is_lost_under_a_running_bridge_is_written_again(
    bridge: Any, broker: str, receiver: Any, rec: Any, eventually: Any, how: str
) -> None:
    running, lost = bridge(hook={"type": "webhook", "url": receiver.url, "retry_most": 0.5}), Lost(broker)
    running.publish(rec("one"))
    eventually("the open arrives", lambda: receiver.events("one") == ["open"])
    topic = f"{running.prefix}alerts"
    eventually("it is kept", lambda: "hook/main/one" in lost.keys(topic))

    getattr(lost, how)(topic)
    running.publish(rec("two"))

    eventually("the next open arrives", lambda: receiver.events("two") == ["open"])
    eventually(
        "both are kept again",
        lambda: {"hook/", "hook/main/one", "hook/main/two"} <= lost.keys(topic),
    )
    assert "has lost records of what was delivered" in running.log()
    running.kill()
    running.publish(rec("one", status="resolved", resolution="drained", at=4))
    running.start()
    eventually("the close arrives", lambda: receiver.events("one") == ["open", "close"])
    assert receiver.events("two") == ["open"]
    assert "Traceback" not in running.log()


def test_a_topic_of_recommendations_that_is_made_anew_closes_no_alert(
    bridge: Any, broker: str, receiver: Any, rec: Any, eventually: Any
) -> None:
    running, lost = bridge(hook={"type": "webhook", "url": receiver.url, "retry_most": 0.5}), Lost(broker)
    running.publish(rec("one"))
    eventually("the open arrives", lambda: receiver.events("one") == ["open"])

    lost.delete(f"{running.prefix}recommendations")
    eventually("the bridge notices", lambda: "trying again" in running.log())
    ensure(Admin(lost.cluster), Topics(prefix=running.prefix, partitions=1))
    running.publish(rec("marker"))
    eventually("it reads the new topic", lambda: receiver.events("marker") == ["open"])
    running.publish(rec("one", status="updated", at=3, verdict="slow_member"))

    eventually("it goes on", lambda: receiver.events("one")[-1] == "change")
    assert receiver.events("one") == ["open", "change"]


def test_a_bridge_that_starts_before_its_cluster_waits_for_it(
    bridge: Any, own_broker: Any, receiver: Any, rec: Any, eventually: Any
) -> None:
    home = own_broker()
    running = bridge(home.bootstrap, hook={"type": "webhook", "url": receiver.url, "retry_most": 0.5})
    running.kill()
    home.kill()

    running.start()
    eventually("it says what it waits for", lambda: "cannot be reached" in running.log())
    home.start(180)
    running.publish(rec("late"))

    eventually("an open arrives", lambda: receiver.events("late") == ["open"])
    assert running.process.poll() is None
    assert "Traceback" not in running.log()


def test_a_destination_is_tried_by_name_with_an_incident_that_is_no_group_s(
    receiver: Any, tmp_path: Any
) -> None:
    config = tmp_path / "kagent.yaml"
    config.write_text(f"alert: {{destinations: {{hook: {{type: webhook, url: '{receiver.url}'}}}}}}\n")

    answer = CliRunner().invoke(root, ["alert", "test", "hook", "--config", str(config)])
    assert (answer.exit_code, answer.output) == (0, "hook (webhook) took a test incident and its end.\n")
    assert [(b["event"], b["group"]) for b in receiver.bodies()] == [
        ("open", "kagent-test"),
        ("close", "kagent-test"),
    ]

    receiver.status = 400
    failed = CliRunner().invoke(root, ["alert", "test", "hook", "--config", str(config)])
    assert "did not take the test incident" in str(failed.exception)
    unknown = CliRunner().invoke(root, ["alert", "test", "hok", "--config", str(config)])
    assert "did you mean hook?" in str(unknown.exception)
