"""The demo's load is steady and sized so that only the spread decides who drains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kagent.demo.topology import FOLLOWERS, GROUPS, LOADS, PARCELS, PIPELINE, POLICY, WORKER, DemoGroup
from kagent.policy import make_policy
from kagent.settings import PipelineSettings, WorkerSettings

BY_NAME = {group.name: group for group in GROUPS}
RATES = {load.topic: load.rates for load in LOADS}
SKEWED = [group for group in GROUPS if group.start]


def inflow(group: DemoGroup) -> float:
    return sum(sum(RATES[topic]) for topic in group.topics)


def capacity(group: DemoGroup) -> float:
    """Records/s one member can do."""
    return 1 / group.cost


@pytest.mark.parametrize("group", SKEWED, ids=lambda g: g.name)
def test_an_even_spread_leaves_room_to_drain(group: DemoGroup) -> None:
    assert inflow(group) < 0.75 * group.members * capacity(group)


@pytest.mark.parametrize("group", SKEWED, ids=lambda g: g.name)
def test_the_member_that_begins_with_most_never_catches_up(group: DemoGroup) -> None:
    assert group.start is not None
    loads = [sum(RATES[topic][p] for topic, p in held) for held in group.start]

    assert max(loads) > 1.1 * capacity(group)
    assert sorted(loads)[-2] < capacity(group), "the others keep up"


@pytest.mark.parametrize("group", SKEWED, ids=lambda g: g.name)
def test_the_start_gives_every_partition_to_one_member(group: DemoGroup) -> None:
    held = [tp for member in group.start or () for tp in member]

    assert sorted(held) == sorted((t, p) for t in group.topics for p in range(len(RATES[t])))
    assert len(group.start or ()) == group.members


@pytest.mark.parametrize("a", FOLLOWERS, ids=lambda g: g.name)
def test_the_twins_differ_in_nothing_but_that_one_follows(a: DemoGroup) -> None:
    b = BY_NAME[a.twin]

    assert a.follows
    assert replace(a, name=b.name, role=b.role, follows="", twin="") == b


def test_of_the_kip_848_twins_who_holds_the_busy_partition_is_overloaded_and_a_plan_helps() -> None:
    group = BY_NAME["parcels-a"]
    busy, others = PARCELS[0], PARCELS[1:]

    assert group.members == 2, "uniform gives each member four of the eight, whichever"
    assert busy + sum(others[:3]) > 1.05 * capacity(group)
    assert busy < 0.8 * capacity(group)
    assert sum(others) < 0.8 * capacity(group)


def test_no_move_can_help_the_hot_group_though_it_has_room_in_all() -> None:
    hot = BY_NAME["hot"]

    assert max(RATES[hot.topics[0]]) > capacity(hot), "one partition is more than a member can do"
    assert inflow(hot) < hot.members * capacity(hot)


def test_the_quiet_group_keeps_up_although_its_inflow_is_unequal() -> None:
    group = BY_NAME["healthy"]
    rates = RATES[group.topics[0]]

    assert sum(rates) < 0.5 * capacity(group), "a single member could do it all"
    assert max(rates) >= 8 * min(rates)


def test_the_shortened_waiting_times_are_settings() -> None:
    make_policy(POLICY)
    WorkerSettings(**WORKER)
    PipelineSettings(**PIPELINE)
