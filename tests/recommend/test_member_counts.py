"""How many members: as many as divide the partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kagent.recommend.member_counts import counts
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


def test_without_inflow_no_number_is_better_than_another(group: Make) -> None:
    assert counts(group({"t": 8 * [{"end": 100, "lag": 0}]}, FOUR).look()).shares == ()
