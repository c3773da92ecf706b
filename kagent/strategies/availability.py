"""Which strategy exists for which kind of group: the one table, used by actions, alternatives and ``kagent plan``.

A client library ships its own assignors, and Java and Python clients can load others; librdkafka takes no others; the broker of
a KIP-848 group has its own; Kafka Connect passes the Java client's through ``consumer.override``. Streams, Faust and programs
that assign partitions to themselves choose none.
"""

from __future__ import annotations

from kagent.strategies.registry import JAVA, LIBRDKAFKA, PYTHON, SERVER, Strategy

OF_JAVA = ("cooperative-sticky", "sticky", "roundrobin", "range")
# librdkafka has these three, and no other can be plugged in (partition.assignment.strategy):
# https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md
SHIPPED: dict[str, tuple[str, ...]] = {
    "classic_java": OF_JAVA,
    "classic_librdkafka": ("cooperative-sticky", "roundrobin", "range"),
    "classic_python": ("sticky", "roundrobin", "range"),
    "classic": ("roundrobin", "range"),
    "consumer": ("kip848-uniform", "kip848-range"),
    "connect": OF_JAVA,
}
"""The strategies that each kind's own library has, in the order in which they are preferred."""
RUNS_ON = {
    "classic_java": JAVA,
    "connect": JAVA,
    "classic_librdkafka": LIBRDKAFKA,
    "classic_python": PYTHON,
    "consumer": SERVER,
}
"""Kind of group → where its assignment is computed."""
NO_CHOICE = frozenset({"streams", "faust", "simple", "share"})
"""Kinds of groups whose strategy cannot be chosen."""


def shipped(kind: str) -> tuple[str, ...]:
    """The strategies that the kind's own library has, the preferred first."""
    return SHIPPED.get(kind, ())


def feasible(strategy: Strategy, kind: str | None) -> str:
    """Whether a group of the kind can use the strategy: ``yes`` where its library has it or can load it."""
    if kind in NO_CHOICE:
        return "no"
    if kind == "classic_python" and strategy.cooperative:
        return "unknown"  # kafka-python speaks the cooperative protocol, aiokafka does not, and commits do not tell them apart
    if kind in RUNS_ON:
        return "yes" if RUNS_ON[kind] in strategy.runs_on else "no"
    # A classic group of an unknown client: every library has range and roundrobin; what else it has cannot be known.
    return "yes" if kind is not None and strategy.name in shipped(kind) else "unknown"
