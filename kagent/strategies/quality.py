"""What an assignment is worth: the numbers that stand side by side when strategies are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.strategies.assignment import Assignment
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measure:
    """One assignment, measured; withheld partitions count for their future owner."""

    fewest: int
    """Partitions of the member that has the fewest."""
    most: int
    greatest_lag: int
    """Lag of the member that has most."""
    skew: float | None
    """Greatest ÷ mean lag per member; None without lag."""
    moves: int
    """Partitions that were owned by a member of the group and are another's now."""


def measured(scenario: Scenario, assignment: Assignment) -> Measure:
    """The numbers of an assignment of this scenario."""
    layout = scenario.layout
    parts = [assignment] + ([assignment.withheld] if assignment.withheld else [])
    number = np.concatenate([layout.numbers(part.topic, part.partition) for part in parts])
    member = np.concatenate([part.member for part in parts]).astype(np.int64)
    count = len(scenario.members)
    partitions = np.bincount(member, minlength=count)
    lag = np.bincount(member, weights=scenario.lag()[number], minlength=count)
    mean = float(lag.mean())
    return Measure(
        int(partitions.min()),
        int(partitions.max()),
        round(float(lag.max())),
        float(lag.max()) / mean if mean else None,
        _moves(scenario, number, member),
    )


def _moves(scenario: Scenario, number: Ints, member: Ints) -> int:
    layout = scenario.layout
    # An eager client names what it owned only in its user data.
    had = scenario.owned if len(scenario.owned) else scenario.remembered
    exists = had.partition < layout.count[had.topic]
    owner = np.full(layout.total, -1, np.int64)
    owner[number] = member
    before = layout.numbers(had.topic[exists], had.partition[exists])
    held = np.zeros(layout.total, np.bool_)
    held[before] = True
    stays = np.zeros(layout.total, np.bool_)
    stays[before[owner[before] == had.member[exists]]] = True
    return int((held & ~stays & layout.considered_partitions()).sum())
