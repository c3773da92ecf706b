"""Members are the coordinator's; where it knows none, whoever commits together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.contract.recommendation import GroupKind
from kagent.detect.committers import co_partitioned, units_of
from kagent.policy import Policy
from tests.fixtures.findings import FINE, FOUR

Make = Callable[..., Any]


def test_the_coordinators_members_are_the_members(group: Make) -> None:
    units = group({"t": 8 * [FINE]}, FOUR).look().columns.units

    assert units.known
    assert len(units.names) == 4
    assert units.owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_partitions_that_bear_the_same_commit_time_twice_belong_together(group: Make) -> None:
    parts = [{**FINE, "age": age} for age in (1, 1, 2, 2)]
    lags = group({"t": parts}, {}, type="simple").look().lags
    once = units_of(None, lags, GroupKind.SIMPLE, {})
    twice = units_of(None, lags, GroupKind.SIMPLE, once.committers)

    assert once.owner.tolist() == [0, 1, 2, 3]
    assert twice.owner.tolist() == [0, 0, 1, 1]
    assert twice.names == ("the reader of t-0", "the reader of t-2")


def test_one_committer_of_everything_says_nothing_about_who_reads_what(group: Make) -> None:
    lags = group({"t": 4 * [FINE]}, {}, type="simple").look().lags
    once = units_of(None, lags, GroupKind.SIMPLE, {})

    assert units_of(None, lags, GroupKind.SIMPLE, once.committers).owner.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "setting", "expected"),
    [
        (GroupKind.CLASSIC_JAVA, None, False),
        (GroupKind.STREAMS, None, True),
        (GroupKind.FAUST, None, True),
        (GroupKind.CLASSIC_JAVA, True, True),
        (GroupKind.FAUST, False, False),
    ],
)
def test_equal_partition_counts_prove_no_co_partitioning(
    kind: GroupKind, setting: bool | None, expected: bool
) -> None:
    assert co_partitioned(Policy(co_partitioned=setting), kind) is expected
