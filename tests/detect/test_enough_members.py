"""One number of members: the least that catches up in time with room to spare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.capacity import USABLE
from kagent.detect.dealing import dealt
from kagent.detect.enough_members import GroupLoad, too_much_for_any
from kagent.strategies.ranges import shares
from tests.fixtures.findings import FINE, LATE


def load(inflow: list[float], capacity: float, backlog: float = 0.0) -> GroupLoad:
    column = np.array(inflow)
    pile = np.zeros(len(inflow), np.int64)
    return GroupLoad(np.full(len(inflow), backlog), column, column, pile, capacity, False, 300.0)


@given(
    inflow=st.lists(st.floats(0.1, 90), min_size=1, max_size=60),
    backlog=st.floats(0, 1e4),
)
def test_no_more_members_than_partitions_and_none_that_leaves_the_fullest_as_it_was(
    inflow: list[float], backlog: float
) -> None:
    made = load(inflow, 100.0, backlog)
    count = made.enough()
    assert 1 <= count <= len(inflow)
    fullest = -(-len(inflow) // count)
    assert count == 1 or -(-len(inflow) // (count - 1)) > fullest


@given(inflow=st.lists(st.floats(1, 80), min_size=2, max_size=40))
def test_enough_is_the_least_count_that_catches_up_in_time(inflow: list[float]) -> None:
    made = load(inflow, 100.0, 100.0)

    def does(count: int) -> bool:
        return made.fullness(count, made.inflow) <= USABLE and made.drain_s(count) <= 300

    count = made.enough()
    if any(does(n) for n in made.counts):
        assert does(count)
        assert not any(does(n) for n in made.counts if n < count)


def test_a_partition_that_all_but_fills_a_member_is_no_reason_for_more_than_moving_the_others_off_it() -> (
    None
):
    hot = load([97.0, *11 * [4.0]], 100.0)
    behind = replace(hot, backlog=np.array([700_000.0, *11 * [0.0]]))
    assert np.isinf(behind.drain_s(4))
    assert behind.enough() <= 4
    everyone = load(12 * [97.0], 100.0, 700_000.0)
    assert everyone.enough() == 12


def test_two_partitions_that_are_behind_are_not_dealt_to_one_member_by_chance() -> None:
    burst = replace(load(6 * [20.0], 100.0), backlog=np.array([13_500.0, 0, 0, 13_500.0, 0, 0]))

    assert burst.enough() == 3


@given(inflow=st.lists(st.floats(1, 80), min_size=1, max_size=40), count=st.integers(1, 50))
def test_at_least_so_many_are_never_more_than_partitions(inflow: list[float], count: int) -> None:
    made = load(inflow, 100.0)
    assert min(count, len(inflow)) <= made.at_least(count) <= len(inflow)
    assert made.at_least(count) in made.counts


def by_topic(made: GroupLoad, sizes: list[int]) -> GroupLoad:
    return replace(made, pile=np.repeat(np.arange(len(sizes)), sizes))


def test_where_each_topic_is_dealt_out_for_itself_no_more_members_than_its_partitions_are_named() -> None:
    even = load(16 * [20.0], 30.0, backlog=100.0)

    assert (even.enough(), by_topic(even, [8, 8]).enough()) == (16, 8)
    assert by_topic(even, [8, 8]).at_least(9) == 8


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), count=st.integers(1, 12))
def test_each_topic_gives_every_member_as_many_as_range_does(sizes: list[int], count: int) -> None:
    pile = np.repeat(np.arange(len(sizes)), sizes)
    takers = dealt(np.linspace(1, 2, len(pile)), pile, count)

    for code, size in enumerate(sizes):
        assert np.bincount(takers[pile == code], minlength=count).tolist() == shares(size, count).tolist()


def test_a_partition_whose_holder_is_on_time_with_it_is_not_too_much_for_a_member(
    group: Callable[..., Any],
) -> None:
    late, large = {**LATE, "rate": 110}, {**FINE, "rate": 260}
    made = group({"t": [late, late, large]}, {"m0": {"t": [0, 1]}, "m1": {"t": [2]}})
    behind = group({"t": [late, late, {**large, "lag": 60_000}]}, {"m0": {"t": [0, 1]}, "m1": {"t": [2]}})

    assert too_much_for_any(made.look(members=made.at_work({"m0": 200}, ["m0"]))).tolist() == []
    assert too_much_for_any(behind.look(members=behind.at_work({"m0": 200}, ["m0"]))).tolist() == [2]
