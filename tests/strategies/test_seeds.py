"""The worked examples of the texts that the strategies come from, by name."""

from __future__ import annotations

import pytest

from kagent.strategies import Member, Scenario, assign
from kagent.strategies.quality import measured

KIP49 = Scenario.of(
    [
        Member("C1", ("T1", "T2", "T3", "T4", "T5")),
        Member("C2", ("T1", "T3", "T5")),
        Member("C3", ("T1", "T3", "T5")),
        Member("C4", ("T1", "T2", "T3", "T4", "T5")),
    ],
    {"T1": 2, "T2": 1, "T3": 2, "T4": 1, "T5": 2},
)

NESTED = Scenario.of(
    [Member("C0", ("t0",)), Member("C1", ("t0", "t1")), Member("C2", ("t0", "t1", "t2"))],
    {"t0": 1, "t1": 2, "t2": 3},
)

README = Scenario.of(
    [Member("C0", ("t0",)), Member("C1", ("t0",))],
    {"t0": 3},
    lags={"t0": [100_000, 50_000, 60_000]},
)


def names(name: str, scenario: Scenario) -> dict[str, list[str]]:
    given = assign(name, scenario).to_dict()
    return {
        member: sorted(f"{topic}-{partition}" for topic, partition in rows) for member, rows in given.items()
    }


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            "range",
            {
                "C1": ["T1-0", "T2-0", "T3-0", "T4-0", "T5-0"],
                "C2": ["T1-1", "T3-1", "T5-1"],
                "C3": [],
                "C4": [],
            },
        ),
        (
            "roundrobin",
            {
                "C1": ["T1-0", "T3-0", "T5-0"],
                "C2": ["T1-1", "T3-1", "T5-1"],
                "C3": [],
                "C4": ["T2-0", "T4-0"],
            },
        ),
        (
            "fair",
            {
                "C1": ["T2-0", "T3-0"],
                "C2": ["T1-0", "T3-1"],
                "C3": ["T1-1", "T5-0"],
                "C4": ["T4-0", "T5-1"],
            },
        ),
    ],
)
def test_kip_49_five_topics_four_members(strategy: str, expected: dict[str, list[str]]) -> None:
    assert names(strategy, KIP49) == expected


def test_nested_subscriptions_by_round_robin_pile_up_at_one_member() -> None:
    assert names("roundrobin", NESTED) == {
        "C0": ["t0-0"],
        "C1": ["t1-0"],
        "C2": ["t1-1", "t2-0", "t2-1", "t2-2"],
    }


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky", "fair"])
def test_nested_subscriptions_by_sticky_are_as_even_as_they_can_be(strategy: str) -> None:
    assert names(strategy, NESTED) == {
        "C0": ["t0-0"],
        "C1": ["t1-0", "t1-1"],
        "C2": ["t2-0", "t2-1", "t2-2"],
    }


def test_three_topics_two_subscriptions_each_by_round_robin() -> None:
    group = Scenario.of(
        [Member("C0", ("T0", "T1")), Member("C1", ("T1", "T2")), Member("C2", ("T0", "T2"))],
        {"T0": 3, "T1": 2, "T2": 4},
    )
    # The text sorts by an unnamed hash and lists another order; Kafka sorts by topic and partition.
    assert names("roundrobin", group) == {
        "C0": ["T0-0", "T0-2", "T1-1"],
        "C1": ["T1-0", "T2-0", "T2-2"],
        "C2": ["T0-1", "T2-1", "T2-3"],
    }


def two_topics_three_members() -> Scenario:
    everything = ("T0", "T1")
    return Scenario.of([Member(name, everything) for name in ("C0", "C1", "C2")], {"T0": 3, "T1": 3})


@pytest.mark.parametrize("strategy", ["roundrobin", "sticky", "cooperative-sticky"])
def test_two_topics_three_members_are_dealt_out_alike(strategy: str) -> None:
    assert names(strategy, two_topics_three_members()) == {
        "C0": ["T0-0", "T1-0"],
        "C1": ["T0-1", "T1-1"],
        "C2": ["T0-2", "T1-2"],
    }


def after_c2_left(strategy: str) -> Scenario:
    before = two_topics_three_members()
    group = Scenario.of(before.members[:2], before.partitions_per_topic)
    return group.with_owned(assign(strategy, before), generation=1)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky", "constrained-cooperative-sticky"])
def test_when_c2_leaves_sticky_moves_only_what_c2_had(strategy: str) -> None:
    group = after_c2_left(strategy)
    after = assign(strategy, group)
    assert measured(group, after).moves == 0
    assert after.counts().tolist() == [3, 3]
    if strategy != "constrained-cooperative-sticky":
        assert after.to_dict() == {
            "C0": [("T0", 0), ("T1", 0), ("T0", 2)],
            "C1": [("T0", 1), ("T1", 1), ("T1", 2)],
        }


def test_when_c2_leaves_round_robin_moves_more() -> None:
    group = after_c2_left("roundrobin")
    after = assign("roundrobin", group)
    assert after.to_dict() == {
        "C0": [("T0", 0), ("T0", 2), ("T1", 1)],
        "C1": [("T0", 1), ("T1", 0), ("T1", 2)],
    }
    assert measured(group, after).moves == 2


@pytest.mark.parametrize("strategy", ["lag", "lag-global"])
def test_lag_readme_evens_out_100k_60k_50k(strategy: str) -> None:
    assert names(strategy, README) == {"C0": ["t0-0"], "C1": ["t0-1", "t0-2"]}
    assert measured(README, assign(strategy, README)).greatest_lag == 110_000


def test_lag_readme_range_leaves_them_uneven() -> None:
    # The text adds up to 160,000; with its own lags t0-0 and t0-1 are 150,000.
    assert names("range", README) == {"C0": ["t0-0", "t0-1"], "C1": ["t0-2"]}
    assert measured(README, assign("range", README)).greatest_lag == 150_000


def test_constrained_kip_2100_members_of_2100_partitions_get_one_each() -> None:
    everything = tuple(f"t{at}" for at in range(10))
    group = Scenario.of(
        [Member(f"c{at:04d}", everything) for at in range(2100)], dict.fromkeys(everything, 210)
    )
    for strategy in ("constrained-cooperative-sticky", "cooperative-sticky"):
        assert assign(strategy, group).counts().tolist() == [1] * 2100


@pytest.mark.parametrize("count", [3, 40])
def test_lags_whose_sum_is_beyond_64_bits_go_to_whoever_has_least(count: int) -> None:
    """Java's sums would wrap there, and the member with most lag seem to have none."""
    members = [Member(f"m{at:02d}", ("t",)) for at in range(count)]
    lags = [2**63 - 1] * (count - 1) + [2**40] * (count + 1) + [7, 0]
    given = assign("lag", Scenario.of(members, {"t": len(lags)}, lags={"t": lags})).to_dict()
    assert given[f"m{count - 1:02d}"] == [("t", count - 1), ("t", count), ("t", 2 * count)]
    assert [member for member, rows in given.items() if ("t", 2 * count + 1) in rows] == ["m00"]
