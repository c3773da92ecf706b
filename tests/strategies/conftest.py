"""Groups for the strategies' tests: random ones, and how they go on from rebalance to rebalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from kagent.strategies import Assignment, Member, Scenario, assign

MAX_ROUNDS = 4


# Outside of the function: to make a strategy takes longer than to draw from it.
COUNTS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "dé", "e10"]), st.integers(0, 9), min_size=1, max_size=5
)
IDS = st.lists(st.text("abcdef019-", min_size=1, max_size=6), min_size=1, max_size=7, unique=True)
RACK = st.sampled_from([None, "r1", "r2", "r3"])
REPLICA = st.lists(st.sampled_from(["r1", "r2", "r3"]), unique=True, max_size=3)
STATIC, LAG = st.sampled_from([None, "static"]), st.integers(0, 1000)


@st.composite
def scenarios(draw: st.DrawFn, same: bool | None = None, racks: bool | None = None) -> Scenario:
    """A group of a few members with a valid assignment of the generation before, and lags."""
    counts, ids = draw(COUNTS), draw(IDS)
    topics = sorted(counts)
    alike = draw(st.booleans()) if same is None else same
    everything = tuple(topics)
    some = st.lists(st.sampled_from([*topics, "gone"]), unique=True, max_size=6).map(tuple)
    racked = draw(st.booleans()) if racks is None else racks
    members = [
        Member(
            name,
            everything if alike else draw(some),
            f"i-{name}" if draw(STATIC) else None,
            draw(RACK) if racked else None,
            4,
            4,
        )
        for name in ids
    ]
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in ids}
    holders = st.sampled_from([*ids, None])
    for topic, count in counts.items():
        for partition in range(count):
            holder = draw(holders)
            if holder is not None:
                owned[holder].append((topic, partition))
    return Scenario.of(
        members,
        counts,
        owned=owned,
        lags={topic: [draw(LAG) for _ in range(count)] for topic, count in counts.items()},
        replica_racks={t: [draw(REPLICA) for _ in range(count)] for t, count in counts.items()}
        if racked
        else None,
    )


def lists(given: Assignment) -> dict[str, set[tuple[str, int]]]:
    return {member: set(rows) for member, rows in given.to_dict().items()}


def rounds(name: str, group: Scenario) -> list[Assignment]:
    """One rebalance after the other, as a cooperative group has them, until nothing is withheld."""
    results = []
    for generation in range(5, 5 + MAX_ROUNDS):
        results.append(assign(name, group))
        if results[-1].withheld is None:
            return results
        group = group.with_owned(results[-1], generation)
    raise AssertionError(f"no end after {MAX_ROUNDS} rounds")


@pytest.fixture
def converge() -> Callable[..., list[Assignment]]:
    return rounds


@pytest.fixture
def as_sets() -> Callable[[Any], dict[str, set[tuple[str, int]]]]:
    return lists


@pytest.fixture
def groups() -> Callable[..., st.SearchStrategy[Scenario]]:
    return scenarios
