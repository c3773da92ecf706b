"""The commands in advice run as they are printed, with Kafka's own tools on a real broker, and do what the advice says."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from kagent.cli import root
from kagent.contract.recommendation import Action, ActionType, Verdict
from kagent.detect.decision import examine
from kagent.detect.state import JudgeState
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.policy import Policy
from kagent.recommend.render import diagnose
from kagent.settings import Cluster
from tests.fixtures.findings import FINE, LATE, STANDS
from tests.fixtures.group_builder import NOW
from tests.fixtures.kafka_tools import Run, commands

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

Make = Callable[..., Any]
RECORDS = 5
"""Records in every partition."""


@pytest.fixture
def cluster(broker: str, tmp_path: Path) -> Cluster:
    """A cluster whose tools need a file for their login, in a folder that a shell would split."""
    file = tmp_path / "my login" / "client.properties"
    file.parent.mkdir()
    file.write_text("security.protocol=PLAINTEXT\n")
    return Cluster(bootstrap=broker, command_config=file)


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic of eight partitions with records."""
    name, admin = f"orders-{uuid.uuid4().hex[:8]}", Admin(cluster)
    assert not admin.create([NewTopic(name, 8, 1)])
    writing = Producer({"bootstrap.servers": cluster.bootstrap})
    for partition in range(8):
        for _ in range(RECORDS):
            writing.produce(name, b"record", partition=partition)
    assert writing.flush(30) == 0
    return name


@pytest.fixture
def stopped(cluster: Cluster, topic: str) -> str:
    """A group that is stopped, with a name that a shell would not take for one word."""
    name = f'it\'s "{uuid.uuid4().hex[:8]}" $HOME'
    member = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": name})
    member.commit(offsets=[TopicPartition(topic, p, 1) for p in range(8)], asynchronous=False)
    member.close()
    return name


def advised(made: Any, cluster: Cluster, kind: ActionType, **known: Any) -> Action:
    """The action of this kind in the advice for the first finding, on this cluster."""
    seen = replace(made.observe(), tool_options=cluster.tool_options())
    usual = {"first_seen": NOW - 864_000_000, "members_at": NOW, "generation_at": NOW - 36_000_000}
    model, found = examine(seen, JudgeState(**{**usual, **known}), Policy())
    # Late for too short to be judged: the plan is that of a rebalance.
    finding = replace(found[0], verdict=found[0].verdict or Verdict.REBALANCE)
    return next(action for action in diagnose(model, finding).actions if action.type is kind)


def halves(topic: str) -> dict[str, dict[str, list[int]]]:
    return {"m0": {topic: [0, 1, 2, 3]}, "m1": {topic: [4, 5, 6, 7]}}


def test_a_record_is_skipped(group: Make, cluster: Cluster, topic: str, stopped: str, pasted: Run) -> None:
    made = group({topic: [STANDS, *7 * [FINE]]}, halves(topic), name=stopped)
    advice = advised(made, cluster, ActionType.SKIP_OR_FIX_RECORD, standing=made.stood())

    (command,) = commands(advice.how)
    pasted(command)

    committed = Admin(cluster).committed({stopped: None}, require_stable=False)[stopped]
    # The advice is for an offset beyond this log: the tool takes the log end in its place.
    assert committed == {(topic, 0): RECORDS} | {(topic, p): 1 for p in range(1, 8)}


@contextmanager
def open_transaction(cluster: Cluster, topic: str) -> Iterator[None]:
    writing = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": uuid.uuid4().hex})
    writing.init_transactions(60)
    writing.begin_transaction()
    writing.produce(topic, b"never committed", partition=0)
    assert writing.flush(30) == 0
    yield


def test_a_hanging_transaction_is_looked_for_and_aborted(
    group: Make, cluster: Cluster, topic: str, pasted: Run
) -> None:
    held = {**{k: v for k, v in STANDS.items() if k != "lag"}, "committed": 9_909_750, "stable": 9_909_750}
    made = group({topic: [held, *7 * [FINE]]}, halves(topic))
    look, abort = commands(advised(made, cluster, ActionType.ABORT_TRANSACTION).how)
    admin = Admin(cluster)

    with open_transaction(cluster, topic):
        assert "StartOffset" in pasted(look)
        assert admin.log_end([(topic, 0)], committed_only=True).found == {(topic, 0): RECORDS}
        pasted(abort.replace("9909750", str(RECORDS)))

    # The record and the mark of the abort.
    assert admin.log_end([(topic, 0)], committed_only=True).found == {(topic, 0): RECORDS + 2}


def test_partitions_are_added(group: Make, cluster: Cluster, topic: str, pasted: Run) -> None:
    members = {f"m{at}": {topic: [at]} for at in range(8)}
    made = group({topic: 8 * [LATE]}, members)
    work = made.at_work(dict.fromkeys(members, 75), list(members), "under_provisioned")
    advice = advised(made, cluster, ActionType.ADD_PARTITIONS_OR_REKEY, members=work)

    (command,) = commands(advice.how)
    pasted(command.replace("<n>", "16"))

    assert Admin(cluster).topics([topic])[topic].partitions == 16


def test_the_assignor_of_a_group_is_looked_up(
    group: Make, cluster: Cluster, topic: str, stopped: str, pasted: Run
) -> None:
    uneven = {
        topic: [{**LATE, "lag": 400_000, "age": 1, "moved": 1}] * 4 + [{**FINE, "age": 1, "moved": 1}] * 4
    }
    made = group(uneven, halves(topic), type="consumer", protocol=None, name=stopped)
    advice = advised(made, cluster, ActionType.FOLLOW_PLAN)

    (command,) = commands(advice.reason or "")

    assert "ASSIGNMENT-STRATEGY" in pasted(command)


def test_a_topic_of_kagent_is_mended(cluster: Cluster, pasted: Run) -> None:
    prefix = f"kagent-{uuid.uuid4().hex[:8]}-"
    options = {
        "KAGENT_CLUSTERS__MAIN__COMMAND_CONFIG": str(cluster.command_config),
        "KAGENT_CLUSTERS__MAIN__BOOTSTRAP": cluster.bootstrap,
        "KAGENT_TOPICS__PREFIX": prefix,
    }

    def topics() -> str:
        return CliRunner(env=options).invoke(root, ["topics"]).output

    assert "recommendations: created" in topics()
    pasted(
        f"kafka-configs.sh {cluster.tool_options()} --alter --entity-type topics --entity-name {prefix}recommendations "
        "--add-config cleanup.policy=delete"
    )
    (command,) = commands(topics())
    pasted(command)

    assert "wrong" not in topics()
