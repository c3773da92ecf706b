"""How a group changes its assignor, for each kind of client.

A classic group takes two rolls, since all members must share a protocol at any time: first with both strategies listed, the old
one preferred, then with the new one alone (KIP-429). librdkafka refuses eager and cooperative strategies together.
"""

from __future__ import annotations

from kagent.contract.recommendation import GroupKind

K = GroupKind
JAVA_CLASS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
JAVA_PACKAGE = "org.apache.kafka.clients.consumer"
COOPERATIVE = "cooperative-sticky"


def java_class(strategy: str) -> str:
    """The class of a strategy in the Java client; other names as they are."""
    return f"{JAVA_PACKAGE}.{JAVA_CLASS[strategy]}" if strategy in JAVA_CLASS else strategy


def how_to_switch(kind: GroupKind, present: str, strategy: str) -> str:
    """The exact setting that makes a group of this kind use the strategy, and the order in which to roll it out."""
    if kind is K.CONSUMER:
        name = strategy.removeprefix("kip848-")
        return f"Set group.remote.assignor={name} in every consumer of the group and restart them one by one."
    if kind is K.CONNECT:
        return (
            f"Set consumer.override.partition.assignment.strategy={java_class(strategy)} in the connector's configuration (the "
            "worker's connector.client.config.override.policy must allow it)."
        )
    if kind is K.CLASSIC_JAVA:
        return _two_rolls("partition.assignment.strategy=", java_class(present), java_class(strategy))
    if kind is K.CLASSIC_PYTHON:
        return (
            f"Pass the {present or 'present'} and {strategy} assignors, in this order, as partition_assignment_strategy to every "
            f"consumer of the group and restart them one by one; then pass {strategy} alone and restart them again."
        )
    if kind is K.CLASSIC_LIBRDKAFKA and (strategy == COOPERATIVE) != (present == COOPERATIVE):
        return (
            f"Stop all consumers of the group, set partition.assignment.strategy={strategy} in each, and start them: librdkafka "
            "cannot list an eager and a cooperative strategy together."
        )
    return _two_rolls("partition.assignment.strategy=", present, strategy)


def _two_rolls(setting: str, present: str, strategy: str) -> str:
    first = f"{present},{strategy}" if present else strategy
    return (
        f"Set {setting}{first} in every consumer of the group and restart them one by one; then set {setting}{strategy} and "
        "restart them one by one again."
    )
