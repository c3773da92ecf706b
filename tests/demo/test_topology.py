"""The demo's load is steady and sized so that only the spread decides who drains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kagent.demo.topology import GROUPS, LOADS, PIPELINE, POLICY, WORKER, Group
from kagent.policy import make_policy
from kagent.settings import PipelineSettings, WorkerSettings

BY_NAME = {group.name: group for group in GROUPS}
RATES = {load.topic: load.rates for load in LOADS}
SKEWED = [group for group in GROUPS if group.start]


def inflow(group: Group) -> float:
    return sum(sum(RATES[topic]) for topic in group.topics)


def capacity(group: Group) -> float:
    """Records/s one member can do."""
    return 1 / group.cost


@pytest.mark.parametrize("group", SKEWED, ids=lambda g: g.name)
def test_an_even_spread_leaves_room_to_drain(group: Group) -> None:
    assert inflow(group) < 0.75 * group.members * capacity(group)


@pytest.mark.parametrize("group", SKEWED, ids=lambda g: g.name)
def test_the_member_that_begins_with_most_never_catches_up(group: Group) -> None:
    assert group.start is not None
    loads = [sum(RATES[topic][p] for topic, p in held) for held in group.start]

    assert max(loads) > 1.1 * capacity(group)
    assert sorted(loads)[-2] < capacity(group), "the others keep up"


@pytest.mark.parametrize("group", SKEWED, ids=lambda g: g.name)
def test_the_start_gives_every_partition_to_one_member(group: Group) -> None:
    held = [tp for member in group.start or () for tp in member]

    assert sorted(held) == sorted((t, p) for t in group.topics for p in range(len(RATES[t])))
    assert len(group.start or ()) == group.members


def test_the_twins_differ_in_nothing_but_that_one_follows() -> None:
    a, b = BY_NAME["orders-a"], BY_NAME["orders-b"]

    assert (a.follows, b.follows) == (True, False)
    assert replace(a, name=b.name, role=b.role, follows=b.follows) == b


def test_no_move_can_help_the_hot_group_though_it_has_room_in_all() -> None:
    hot = BY_NAME["hot"]

    assert max(RATES[hot.topics[0]]) > capacity(hot), "one partition is more than a member can do"
    assert inflow(hot) < hot.members * capacity(hot)


@pytest.mark.parametrize("name", ["healthy", "quiet-848"])
def test_the_quiet_groups_keep_up_although_their_inflow_is_unequal(name: str) -> None:
    group = BY_NAME[name]
    rates = RATES[group.topics[0]]

    assert sum(rates) < 0.5 * capacity(group), "a single member could do it all"
    assert max(rates) >= 8 * min(rates)


def test_the_shortened_waiting_times_are_settings() -> None:
    make_policy(POLICY)
    WorkerSettings(**WORKER)
    PipelineSettings(**PIPELINE)
