"""How a group is given another assignment strategy without a refused join: the sentence of ``switch_assignor``.

A member is refused (INCONSISTENT_GROUP_PROTOCOL) unless it shares a strategy with all that are in the group. So every change
in a classic group takes two rolls: both strategies listed, then the new one alone. The first listed has the vote of a
member, so the new one stands first. librdkafka makes no consumer with a list that mixes eager and cooperative
strategies, and aiokafka joins once for each that is listed: there the group is stopped and started.
"""

from __future__ import annotations

from kagent.assignor import CONSUMER_CLASS
from kagent.contract.recommendation import GroupKind
from kagent.strategies.registry import STRATEGIES

K = GroupKind
JAVA_CLASS = {s.name: s.java_class for s in STRATEGIES.values() if s.java_class} | {"kagent": CONSUMER_CLASS}
PYTHON_CLASS = {
    "range": "RangePartitionAssignor",
    "roundrobin": "RoundRobinPartitionAssignor",
    "sticky": "StickyPartitionAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
"""Of kafka-python and, but for the last, of aiokafka."""
GO = {"range": "Range", "roundrobin": "RoundRobin", "sticky": "Sticky"}
"""As franz-go and sarama spell them: https://pkg.go.dev/github.com/IBM/sarama#BalanceStrategy"""
COOPERATIVE = "cooperative-sticky"
SETTING = "partition.assignment.strategy"


def how_to_switch(kind: GroupKind, strategy: str, present: str | None) -> str:
    """The exact setting and the order of restarts. ``present``: the strategy that the group runs now; None: not known."""
    if kind is K.CONSUMER:
        name = strategy.removeprefix("kip848-")
        return f"Set group.remote.assignor={name} in every consumer of the group and restart them one by one."
    if kind is K.CLASSIC_JAVA:
        return _two_rolls(SETTING, _java(strategy), _java(present), "in every consumer of the group")
    if kind is K.CONNECT:
        return _of_connector(f"consumer.override.{SETTING}", _java(strategy), _java(present))
    if kind is K.CLASSIC_PYTHON:
        return _python(PYTHON_CLASS.get(strategy, strategy), PYTHON_CLASS.get(present or "", present))
    # Two rolls work only between eager strategies; a list with cooperative-sticky in it is refused when the consumer is made.
    if kind is K.CLASSIC_LIBRDKAFKA and present and COOPERATIVE not in (strategy, present):
        return _two_rolls(SETTING, strategy, present, "in every consumer of the group")
    if kind is K.CLASSIC:
        return _for_any_library(strategy)
    return f"Stop all consumers of the group, set {SETTING}={strategy} in every one, then start them."


def _for_any_library(strategy: str) -> str:
    """Where the records do not tell the client library: the setting of each, and of which it is."""
    ways = [f"librdkafka: {SETTING}={strategy}"]
    if strategy in JAVA_CLASS:
        ways.insert(0, f"Java: {SETTING}={JAVA_CLASS[strategy]}")
    if strategy in PYTHON_CLASS:
        clients = "kafka-python" if strategy == COOPERATIVE else "kafka-python and aiokafka"
        ways.append(f"{clients}: partition_assignment_strategy=[{PYTHON_CLASS[strategy]}]")
    ways += _elsewhere(strategy)
    return (
        "Stop all consumers of the group, set the strategy in every one, then start them. kagent cannot tell their client "
        f"library. {'; '.join(ways)}."
    )


def _elsewhere(strategy: str) -> list[str]:
    """The setting of the clients that do not take it as a text."""
    name = GO.get(strategy)
    found = [f"franz-go: kgo.Balancers(kgo.{name or 'CooperativeSticky'}Balancer())"]
    if name is not None:
        made = f"[]sarama.BalanceStrategy{{sarama.NewBalanceStrategy{name}()}}"
        found.append(f"sarama: config.Consumer.Group.Rebalance.GroupStrategies = {made}")
    if strategy == "roundrobin":
        found.append("kafkajs: partitionAssigners: [PartitionAssigners.roundRobin]")
    return found if name or strategy == COOPERATIVE else []


def _python(new: str, present: str | None) -> str:
    name = "partition_assignment_strategy"
    both = f"[{new}, {present or '<the present one>'}]"
    return (
        f"kafka-python: pass {name}={both} in every consumer of the group and restart them one by one, then once more with "
        f"{name}=[{new}]. aiokafka: stop all consumers of the group, pass {name}=[{new}] in every one, then start them."
    )


def _java(strategy: str | None) -> str | None:
    """The class; what is not Kafka's own is named as it is."""
    return JAVA_CLASS.get(strategy or "", strategy)


def _of_connector(setting: str, new: str | None, present: str | None) -> str:
    """Connect restarts the tasks of a connector itself when its configuration changes."""
    return (
        f"Set {setting}={new},{present or '<the present one>'} in the connector's configuration (the workers' "
        "connector.client.config.override.policy has to allow it), and Connect restarts its tasks; when all run again, set "
        f"{setting}={new}."
    )


def _two_rolls(setting: str, new: str | None, present: str | None, where: str) -> str:
    both = f"{new},{present or '<the present one>'}"
    return (
        f"Set {setting}={both} {where} and restart them one by one; when all have it, set {setting}={new} and restart them one "
        "by one again."
    )
