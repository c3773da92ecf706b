"""What every action tells people of every kind of group to do: each command parses, each setting exists in its client.

Kafka's own commands have a few shapes, and tests/recommend/test_pasted_commands.py runs each of them on a broker.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shlex
import subprocess
from dataclasses import replace
from functools import cache
from typing import Any

import aiokafka
import faust
import kafka
import pytest
from aiokafka.coordinator import assignors as of_aiokafka
from confluent_kafka import Consumer
from kafka.coordinator import assignors as of_kafka_python

from kagent.cli import root
from kagent.contract.recommendation import Action, ActionType, GroupKind, Verdict
from kagent.detect.detectors import OF
from kagent.detect.finding import Finding
from kagent.detect.remedies import Remedy
from kagent.embedded.jars import broker_jars
from kagent.embedded.java import java
from kagent.policy import Policy
from kagent.recommend.actions import MAKERS, actions
from kagent.recommend.advice import Advice
from kagent.recommend.alternatives import alternatives_of
from kagent.recommend.member_actions import POLLING, restart_of_task
from kagent.recommend.member_counts import counts
from kagent.recommend.reassignment import reassign
from kagent.recommend.switching import GO, how_to_switch
from kagent.strategies.availability import SHIPPED, shipped
from tests.fixtures.findings import CALM, HOT
from tests.fixtures.group_builder import Group
from tests.fixtures.kafka_tools import commands

K = GroupKind
TOOLS = "--bootstrap-server 127.0.0.1:9092 --command-config 'my login/client.properties'"
LOGIN = ["--bootstrap-server", "--command-config"]
SHAPES: set[tuple[str, ...]] = {
    ("kafka-consumer-groups.sh", *LOGIN, "--group", "--topic", "--reset-offsets", "--to-offset", "--execute"),
    ("kafka-consumer-groups.sh", *LOGIN, "--group", "--describe", "--state"),
    ("kafka-transactions.sh", *LOGIN, "find-hanging", "--topic", "--partition"),
    ("kafka-transactions.sh", *LOGIN, "abort", "--topic", "--partition", "--start-offset"),
    ("kafka-topics.sh", *LOGIN, "--alter", "--topic", "--partitions"),
}
"""Tool, subcommand and options of the commands that run on a broker in test_pasted_commands.py."""
EVIDENCE = {
    "drains_in_s": 600, "needed": 3, "come_and_go": ["m0"], "silent_members": ["m0"], "together": True, "lost": 7, "last_stable_offset": 3, "may_not_be_enough": True, "members": 2,
}  # fmt: skip
SWITCHES = [(kind, new) for kind in SHIPPED for new in shipped(kind)]


@cache
def advised(kind: GroupKind) -> tuple[tuple[Verdict, Action], ...]:
    """Every action of every verdict for a group of this kind; with all that an action may be made from."""
    # Of two hot partitions more members may get both: only where there are four is it sure that more members help.
    return tuple(
        (verdict, action)
        for hot in (2, 4)
        for advice in [_advice(kind, hot)]
        for verdict in OF
        for known in (EVIDENCE, {k: v for k, v in EVIDENCE.items() if k != "members"})
        for action in actions(
            replace(
                advice,
                finding=Finding(verdict, advice.finding.members, rows=(0,), evidence=dict(known)),
            )
        )
    )


def _advice(kind: GroupKind, hot: int) -> Advice:
    grouped: dict[str, Any] = {"type": "consumer", "protocol": None} if kind is K.CONSUMER else {}
    halves = {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4, 5, 6, 7]}}
    made = Group({"t": [*hot * [HOT], *(8 - hot) * [CALM]]}, halves, name="it's my group", **grouped)
    model, _ = made.looked(
        Policy(kind=kind), members=made.at_work({"m0": 250 * hot, "m1": 250 * hot}, ["m0"])
    )
    model = replace(model, seen=replace(model.seen, tool_options=TOOLS))
    planned = reassign(model)
    lead = Finding(Verdict.REBALANCE, members=(0,) if model.names else ())
    return Advice(model, lead, planned, alternatives_of(model, planned), counts(model))


def sentences(kind: GroupKind) -> tuple[tuple[Action, str], ...]:
    """As :func:`advised`: each action, and what it says."""
    return tuple((action, f"{action.how} {action.reason or ''}") for _, action in advised(kind))


def shape(command: str) -> tuple[str, ...]:
    tool, *words = shlex.split(command)
    named = [word for word in words if word.startswith("--") or word in ("find-hanging", "abort")]
    return tool, *named


@pytest.mark.slow
def test_every_action_is_seen_here() -> None:
    seen = {action.type for kind in GroupKind for action, _ in sentences(kind)}

    assert set(ActionType) - seen <= {ActionType.NONE}


def test_each_remedy_has_a_maker_and_a_verdict() -> None:
    assert set(MAKERS) == set(Remedy) == {remedy for detector in OF.values() for remedy in detector.REMEDIES}


@pytest.mark.parametrize("verdict", OF)
def test_each_action_of_a_detector_is_offered_to_groups_of_some_kind(verdict: Verdict) -> None:
    offered = {action.type for kind in GroupKind for of, action in advised(kind) if of is verdict}

    assert offered - {ActionType.NONE} == {remedy.action for remedy in OF[verdict].REMEDIES}


@pytest.mark.parametrize("kind", GroupKind)
@pytest.mark.parametrize("verdict", OF)
def test_whatever_the_verdict_a_group_of_any_kind_is_told_something_first(
    verdict: Verdict, kind: GroupKind
) -> None:
    told = [action for of, action in advised(kind) if of is verdict]

    assert told[0].feasible != "no"
    assert all(action.how for action in told)


@pytest.mark.parametrize("kind", GroupKind)
def test_kafkas_commands_are_those_that_were_run(kind: GroupKind) -> None:
    found = [command for _, text in sentences(kind) for command in commands(text)]

    assert found
    assert {shape(command) for command in found} <= SHAPES
    assert all(shlex.split(command)[4] == "my login/client.properties" for command in found)


@pytest.mark.parametrize("kind", GroupKind)
def test_kagents_commands_are_taken_by_its_own_parser(kind: GroupKind) -> None:
    for _, text in sentences(kind):
        for command in re.findall(r"`kagent (.+?)`", text):
            name, *arguments = shlex.split(command)
            found = root.get_command(root.make_context("kagent", ["--help"], resilient_parsing=True), name)
            assert found is not None, command
            context = found.make_context(name, arguments)
            assert context.params.get("group", "it's my group") == "it's my group"


@pytest.mark.parametrize("kind", GroupKind)
def test_no_action_names_a_client_that_the_group_is_not(kind: GroupKind) -> None:
    unknown = {K.CLASSIC}
    for action, text in sentences(kind):
        if action.type is ActionType.SWITCH_ASSIGNOR and kind not in unknown:
            assert "cannot tell" not in text
            assert ("org.apache.kafka" in text) == (kind in (K.CLASSIC_JAVA, K.CONNECT))
            assert ("partition_assignment_strategy" in text) == (kind is K.CLASSIC_PYTHON)
            assert ("group.remote.assignor" in text) == (kind is K.CONSUMER)


@pytest.mark.parametrize("kind", [K.CLASSIC_JAVA, K.CLASSIC_PYTHON, K.CLASSIC_LIBRDKAFKA])
def test_every_action_names_only_what_the_groups_own_client_can_have(kind: GroupKind) -> None:
    of = {
        K.CLASSIC_JAVA: {"org.apache.kafka", "kagent assignor --consumer", "max.poll.records"},
        K.CLASSIC_PYTHON: {"kagent.follow", "aiokafka", "partition_assignment_strategy", "max_poll_records"},
        K.CLASSIC_LIBRDKAFKA: {"group.protocol=consumer"},
    }
    texts = [text for _, text in sentences(kind)]

    assert {name for names in of.values() for name in names if any(name in text for text in texts)} == of[
        kind
    ]


def test_each_client_has_what_is_named_beside_the_strategy() -> None:
    Consumer({"group.id": "x", "group.protocol": "consumer"}).close()
    longer, _, static = POLLING[K.CLASSIC_LIBRDKAFKA]
    Consumer({"group.id": "x", longer: 600_000, static: "x"}).close()
    longer, fewer, static = POLLING[K.CLASSIC_PYTHON]
    for name in (longer, fewer.removeprefix("lower "), static):
        assert name in kafka.KafkaConsumer.DEFAULT_CONFIG
        assert name in inspect.signature(aiokafka.AIOKafkaConsumer).parameters
    longer, fewer, static = POLLING[K.FAUST]
    assert all(hasattr(faust.Settings, name) for name in (longer, fewer.removeprefix("lower "), static))


def test_where_nobody_tells_who_holds_what_the_task_to_restart_is_left_open() -> None:
    """Findings then name readers of partitions, of which there may be more than members."""
    made = Group({"t": [HOT, *7 * [CALM]]}, {"0": {"t": range(8)}}, client="connector-consumer-my sink")
    model, _ = made.looked(Policy(kind=K.CONNECT))
    readers = replace(model.columns.units, names=("r0", "r1", "r2"), known=False)
    model = replace(model, columns=replace(model.columns, units=readers))
    finding = Finding(Verdict.SLOW_MEMBER, members=(2,), rows=(4,))

    how = restart_of_task(Advice(model, finding, None, (), counts(made.looked()[0])))

    assert how.endswith("/connectors/<name>/tasks/<n>/restart")


def test_the_task_of_a_connector_is_named_as_connect_names_it() -> None:
    made = Group(
        {"t": [HOT, *7 * [CALM]]},
        {"0": {"t": [0, 1, 2, 3]}, "1": {"t": [4, 5, 6, 7]}},
        client="connector-consumer-my sink",
    )
    model, _ = made.looked(Policy(kind=K.CONNECT))
    finding = Finding(Verdict.SLOW_MEMBER, members=(1,), rows=(4,))

    how = actions(Advice(model, finding, None, (), counts(model)))[0].how

    assert how.endswith("curl -X POST http://<connect worker>:8083/connectors/my%20sink/tasks/1/restart")


@pytest.mark.parametrize("new", shipped("classic_librdkafka"))
@pytest.mark.parametrize("present", shipped("classic_librdkafka"))
def test_librdkafka_takes_the_setting(new: str, present: str) -> None:
    how = how_to_switch(K.CLASSIC_LIBRDKAFKA, new, present)
    for value in re.findall(r"partition\.assignment\.strategy=([\w,-]+)", how):
        # librdkafka refuses a name it does not know and a list that mixes eager and cooperative ones.
        Consumer({"group.id": "x", "partition.assignment.strategy": value}).close()


@pytest.mark.parametrize(("kind", "new"), SWITCHES)
def test_python_clients_have_the_class_and_the_argument(kind: str, new: str) -> None:
    how = how_to_switch(GroupKind(kind), new, "range")
    named = re.findall(r"\[(\w+Assignor)", how)

    assert bool(named) == (kind in ("classic_python", "classic"))
    for name in named:
        assert any(hasattr(module, name) for module in _modules(of_kafka_python))
        assert new == "cooperative-sticky" or any(hasattr(module, name) for module in _modules(of_aiokafka))
    if named:
        argument = "partition_assignment_strategy"
        assert argument in how
        assert argument in kafka.KafkaConsumer.DEFAULT_CONFIG
        assert argument in inspect.signature(aiokafka.AIOKafkaConsumer).parameters


def _modules(package: Any) -> list[Any]:
    names = [found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [importlib.import_module(name) for name in names]


@pytest.mark.parametrize("strategy", [*GO, "cooperative-sticky"])
def test_where_the_library_is_unknown_each_has_its_own_setting(strategy: str) -> None:
    ways = how_to_switch(K.CLASSIC, strategy, None).split(" library. ")[1].rstrip(".").split("; ")

    whose = [way.split(": ")[0] for way in ways]
    assert whose[:2] == ["Java", "librdkafka"]
    # aiokafka ships no cooperative-sticky assignor.
    assert whose[2] == ("kafka-python and aiokafka" if strategy in GO else "kafka-python")
    assert whose[3] == "franz-go"
    assert ("sarama" in whose) == (strategy in GO)
    assert ("kafkajs" in whose) == (strategy == "roundrobin")


@pytest.mark.slow
def test_the_java_settings_are_those_that_kafka_documents() -> None:
    """Kafka's own configuration classes print what they document."""
    consumer = _documented("org.apache.kafka.clients.consumer.ConsumerConfig")
    topic = _documented("org.apache.kafka.storage.internals.log.LogConfig")
    texts = [text for kind in GroupKind for _, text in sentences(kind)]
    texts += [how_to_switch(GroupKind(kind), new, "range") for kind, new in SWITCHES]
    named = {
        name for text in texts for name in re.findall(r"(?<![\w./-])[a-z]+(?:\.[a-z]+)+(?![\w(/-])", text)
    }

    # Of Kafka Connect and Kafka Streams, whose classes are in none of the broker's jars.
    elsewhere = {"tasks.max", "connector.client.config.override.policy", "num.stream.threads"}
    classes = {name for name in named if name.startswith(("org.", "kagent."))}
    found = {name.removeprefix("consumer.override.") for name in named - elsewhere - classes}
    assert {
        "partition.assignment.strategy",
        "group.remote.assignor",
        "max.poll.records",
        "retention.ms",
    } <= found
    assert found - consumer - topic == set()


def _documented(name: str) -> set[str]:
    classpath = ":".join(map(str, broker_jars()))
    answer = subprocess.run(
        [str(java()), "-XX:TieredStopAtLevel=1", "-cp", classpath, name],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return set(re.findall(r'id="[a-z]+configs_([a-z.]+)"', answer.stdout))
