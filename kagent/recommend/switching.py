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
OTHERS = {
    "range": "franz-go: kgo.Balancers(kgo.RangeBalancer()); sarama: sarama.NewBalanceStrategyRange()",
    "roundrobin": "franz-go: kgo.Balancers(kgo.RoundRobinBalancer()); sarama: sarama.NewBalanceStrategyRoundRobin(); "
    "kafkajs: PartitionAssigners.roundRobin",
    "sticky": "franz-go: kgo.Balancers(kgo.StickyBalancer()); sarama: sarama.NewBalanceStrategySticky()",
    "cooperative-sticky": "franz-go: kgo.Balancers(kgo.CooperativeStickyBalancer())",
}
"""Strategy → what the clients without a setting by that name call it."""
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
        where = "in the connector's configuration (the workers' connector.client.config.override.policy has to allow it)"
        return _two_rolls(f"consumer.override.{SETTING}", _java(strategy), _java(present), where)
    if kind is K.CLASSIC_PYTHON:
        return (
            f"Pass the {strategy} assignor as partition_assignment_strategy. kafka-python: restart the consumers one by one "
            f"with [{strategy}, {present or 'the present one'}], then once more with [{strategy}]. aiokafka: stop all "
            "consumers of the group, then start them with it."
        )
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
    if strategy in OTHERS:
        ways.append(OTHERS[strategy])
    return (
        "Stop all consumers of the group, set the strategy in every one, then start them. kagent cannot tell their client "
        f"library. {'; '.join(ways)}."
    )


def _java(strategy: str | None) -> str | None:
    """The class; what is not Kafka's own is named as it is."""
    return JAVA_CLASS.get(strategy or "", strategy)


def _two_rolls(setting: str, new: str | None, present: str | None, where: str) -> str:
    both = f"{new},{present or '<the present one>'}"
    return (
        f"Set {setting}={both} {where} and restart them one by one; when all have it, set {setting}={new} and restart them one "
        "by one again."
    )
