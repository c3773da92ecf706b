"""How many members: as many as divide the partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kagent.recommend.member_counts import Count, Counts, counts
from tests.fixtures.findings import FINE, FOUR

Make = Callable[..., Any]


def test_the_next_number_that_divides_the_partitions_is_named(group: Make) -> None:
    found = counts(group({"t": 8 * [FINE]}, FOUR).look())

    enough = found.enough(5)
    assert enough is not None
    assert (enough.members, enough.share_now, enough.share_then) == (8, 0.25, 0.125)
    assert found.enough(9) is None


def test_where_one_partition_is_the_bound_more_members_relieve_nothing(group: Make) -> None:
    heavy = {"end": 10_000_000, "rate": 5000, "lag": 0}

    assert counts(group({"t": [heavy, *7 * [FINE]]}, FOUR).look()).relieving(0.15) is None


def test_a_count_that_relieves_a_member_and_leaves_it_too_much_is_no_remedy() -> None:
    # Three members of 1,000/s; four of twelve partitions get 400/s. With four members one may hold three of those.
    found = Counts(
        3, 0.8, ((3, 0.8), (4, 0.4), (6, 0.4), (12, 0.2)), {3: 0.8, 4: 0.6, 6: 0.4, 12: 0.2}, 0.425
    )

    relieved = found.relieving(0.15)
    assert relieved is not None
    assert relieved.members == 6
    assert replace(found, most=float("inf")).relieving(0.15).members == 4  # type: ignore[union-attr]


def test_enough_members_leave_each_of_them_room_where_a_number_does() -> None:
    found = Counts(4, 0.25, ((4, 0.25), (6, 0.17), (12, 0.09)), {4: 0.25, 6: 0.17, 12: 0.09}, 0.14)

    assert found.enough(5) == Count(12, (12,), 0.25, 0.09)
    assert replace(found, most=0.05).enough(5) == Count(6, (6, 12), 0.25, 0.17)


def test_without_inflow_no_number_is_better_than_another(group: Make) -> None:
    assert counts(group({"t": 8 * [{"end": 100, "lag": 0}]}, FOUR).look()).shares == ()
