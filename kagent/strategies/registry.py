"""All strategies by name, with what one has to know before switching to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kagent.errors import InputError
from kagent.strategies import (
    constrained_cooperative,
    fair,
    kip848,
    lag,
    lag_global,
    ranges,
    roundrobin,
    sticky,
    uniform,
)
from kagent.strategies.assignment import Assignment
from kagent.strategies.scenario import Scenario
from kagent.text import shown

# librdkafka has no eager sticky assignor and cannot load others, so it is named for three strategies only.
JAVA, LIBRDKAFKA, PYTHON, SERVER = "java", "librdkafka", "python", "server"


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy: what it does, where it runs, what it keeps."""

    name: str
    summary: str
    runs_on: frozenset[str]
    """Of java, librdkafka, python (the clients that have it, or can load it) and server (KIP-848)."""
    sticky: bool
    """Whether members keep what they have as far as balance allows."""
    copartitions: bool
    """Whether partition p of topics with equal counts stays with one member; where not, joins across topics break."""
    cooperative: bool
    """Whether partitions change hands over two rounds (KIP-429), or by the server's own reconciliation."""
    java_class: str | None
    """The class to name in ``partition.assignment.strategy``, where one is published."""
    compute: Callable[..., Assignment]
    needs_lag: bool = False
    settles_claims: bool = False
    """Whether it has a rule for members that own one partition in one generation; elsewhere that is bad input."""


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            "range",
            "Per topic, contiguous blocks to the members in order; the first members collect the extras.",
            frozenset({JAVA, LIBRDKAFKA, PYTHON}),
            sticky=False,
            copartitions=True,
            cooperative=False,
            java_class="org.apache.kafka.clients.consumer.RangeAssignor",
            compute=ranges.assign,
        ),
        Strategy(
            "roundrobin",
            "All partitions in a row to a ring of the members; uneven when subscriptions differ.",
            frozenset({JAVA, LIBRDKAFKA, PYTHON}),
            sticky=False,
            copartitions=False,
            cooperative=False,
            java_class="org.apache.kafka.clients.consumer.RoundRobinAssignor",
            compute=roundrobin.assign,
        ),
        Strategy(
            "sticky",
            "Even counts, and members keep what they had; all members stop during a rebalance.",
            frozenset({JAVA, PYTHON}),
            sticky=True,
            copartitions=False,
            cooperative=False,
            java_class="org.apache.kafka.clients.consumer.StickyAssignor",
            compute=sticky.eager,
            settles_claims=True,
        ),
        Strategy(
            "cooperative-sticky",
            "Even counts, and only the partitions that change hands stop, over two rebalances.",
            frozenset({JAVA, LIBRDKAFKA, PYTHON}),
            sticky=True,
            copartitions=False,
            cooperative=True,
            java_class="org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            compute=sticky.cooperative,
            settles_claims=True,
        ),
        Strategy(
            "constrained-cooperative-sticky",
            "The text of a rejected KIP: sticky and cooperative, for identical subscriptions only.",
            frozenset({PYTHON}),
            sticky=True,
            copartitions=False,
            cooperative=True,
            java_class=None,
            compute=constrained_cooperative.assign,
            settles_claims=True,
        ),
        Strategy(
            "fair",
            "The most constrained topics first, each partition to the member with the fewest (KIP-49).",
            frozenset({JAVA, PYTHON}),
            sticky=False,
            copartitions=False,
            cooperative=False,
            java_class="com.cerner.common.kafka.consumer.assignors.FairAssignor",
            compute=fair.assign,
        ),
        Strategy(
            "lag",
            "Per topic, most lag first, to the member with the fewest partitions of it, then the least lag (KAFKA-5337).",
            frozenset({JAVA, PYTHON}),
            sticky=False,
            copartitions=False,
            cooperative=False,
            java_class="com.github.grantneale.kafka.LagBasedPartitionAssignor",
            compute=lag.assign,
            needs_lag=True,
        ),
        Strategy(
            "lag-global",
            "Lag and count of all topics together, members keep what they had; `balance` weighs the two.",
            frozenset({PYTHON}),
            sticky=True,
            copartitions=False,
            cooperative=False,
            java_class=None,
            compute=lag_global.assign,
            needs_lag=True,
        ),
        Strategy(
            "kip848-uniform",
            "The broker gives even counts, members keep what they hold (`group.remote.assignor=uniform`).",
            frozenset({SERVER}),
            sticky=True,
            copartitions=False,
            cooperative=True,
            java_class=None,
            compute=uniform.assign,
        ),
        Strategy(
            "kip848-range",
            "The broker gives contiguous blocks per topic (`group.remote.assignor=range`).",
            frozenset({SERVER}),
            sticky=False,
            copartitions=True,
            cooperative=True,
            java_class=None,
            compute=kip848.assign_range,
        ),
    )
}
"""Name → strategy."""


def assign(name: str, scenario: Scenario, **options: Any) -> Assignment:
    """What the strategy of that name gives for the scenario.

    The only options are those of ``lag-global``. Raises InputError for an unknown name.
    """
    if name not in STRATEGIES:
        raise InputError(f'strategy: "{shown(name)}" is not known; there are {", ".join(STRATEGIES)}')
    return STRATEGIES[name].compute(scenario, **options)
