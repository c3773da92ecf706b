"""How many members: as many as divide the partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kagent.recommend.member_counts import Counts, counts
from tests.fixtures.findings import FINE, FOUR

Make = Callable[..., Any]
ONE_PILE = np.zeros(12, np.int64)
"""Twelve partitions that are dealt out all together."""


def test_the_number_that_was_decided_is_named_with_those_above_it_that_divide_the_partitions(
    group: Make,
) -> None:
    found = counts(group({"t": 8 * [FINE]}, FOUR).look())

    named = found.of(5)
    assert named is not None
    assert (named.members, named.fitting, named.share_now, named.share_then) == (5, (5, 8), 0.25, 0.25)
    assert found.of(4) is None


def test_where_one_partition_is_the_bound_more_members_relieve_nothing(group: Make) -> None:
    heavy = {"end": 10_000_000, "rate": 5000, "lag": 0}

    assert counts(group({"t": [heavy, *7 * [FINE]]}, FOUR).look()).relieving(0.15) is None


def test_a_count_that_relieves_a_member_and_leaves_it_too_much_is_no_remedy() -> None:
    # Three members of 1,000/s; four of twelve partitions get 400/s. With four members one may hold three of those.
    hot = np.array([*4 * [400.0], *8 * [50.0]])
    found = Counts(3, 0.8, hot, hot, ONE_PILE, 1000.0)

    relieved = found.relieving(0.15)
    assert relieved is not None
    assert relieved.members == 6
    assert found.relieving(0.15) == replace(found, load=1.2 * hot).relieving(0.15)
    # What waits, too, asks for more than a member can process: two of the hot ones are too many then.
    assert replace(found, load=1.3 * hot).relieving(0.15) is None
    assert replace(found, most=float("inf")).relieving(0.15).members == 4  # type: ignore[union-attr]


def test_no_less_is_named_than_autoscalers_are_told_and_none_with_which_one_may_get_too_much() -> None:
    even, hot = np.full(12, 100.0), np.array([*4 * [400.0], *8 * [50.0]])
    named = [
        Counts(3, 0.5, even, even, ONE_PILE, 850.0).relieving(0.15),
        Counts(3, 0.5, even, even, ONE_PILE, 850.0, useful=5).relieving(0.15),
        # With four members, three partitions each, one might get three of the hot ones.
        Counts(3, 0.8, hot, hot, ONE_PILE, 850.0, useful=4).relieving(0.15),
    ]

    assert [count.members for count in named if count] == [4, 6, 6]


def test_without_inflow_no_number_is_better_than_another(group: Make) -> None:
    assert counts(group({"t": 8 * [{"end": 100, "lag": 0}]}, FOUR).look()).of(8) is None


@pytest.mark.parametrize(("protocol", "members"), [("range", 3), ("roundrobin", 6)])
def test_under_range_more_members_than_the_largest_topic_has_partitions_are_never_named(
    group: Make, protocol: str, members: int
) -> None:
    two = {"t": 3 * [FINE], "u": 3 * [FINE]}
    pair = {"a": {"t": [0, 1], "u": [0, 1]}, "b": {"t": [2], "u": [2]}}
    found = counts(group(two, pair, protocol=protocol).look())

    assert max(found.of(3).fitting) == members  # type: ignore[union-attr]
    assert counts(group(two, {**pair, "c": {}}, protocol="range").look()).relieving(0.15) is None
