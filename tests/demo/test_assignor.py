"""The demo's assignor gives the start, and once a plan is there, the plan; nothing is left lying or given twice."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.demo.assignor import PlanAssignor
from kagent.demo.topology import Held

START: tuple[Held, ...] = ((("t", 0), ("t", 1), ("t", 2)), (("t", 3),))
CLUSTER = SimpleNamespace(partitions_for_topic=lambda _: set(range(4)))


def given_by(assignor: PlanAssignor, places: list[int]) -> dict[str, list[int]]:
    return given_to(assignor, {f"m{place}": place for place in places})


def given_to(assignor: PlanAssignor, places: dict[str, int]) -> dict[str, list[int]]:
    members = {}
    for name, place in places.items():
        own = PlanAssignor(place, START, None).metadata({"t"})
        members[name] = SimpleNamespace(subscription=["t"], user_data=own.user_data)
    found = assignor.assign(CLUSTER, members)
    return {m: sorted(p for _, parts in a.assignment for p in parts) for m, a in found.items()}


def test_without_a_plan_each_place_gets_its_start(tmp_path: Path) -> None:
    assert given_by(PlanAssignor(0, START, tmp_path / "none"), [0, 1]) == {"m0": [0, 1, 2], "m1": [3]}


def test_with_a_plan_each_place_gets_what_the_plan_says(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text(json.dumps([[["t", 0], ["t", 2]], [["t", 3], ["t", 1]]]))

    assert given_by(PlanAssignor(0, START, plan), [0, 1]) == {"m0": [0, 2], "m1": [1, 3]}


def test_a_group_that_never_follows_keeps_its_start(tmp_path: Path) -> None:
    assert given_by(PlanAssignor(0, START, None), [0, 1]) == {"m0": [0, 1, 2], "m1": [3]}


@given(places=st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
def test_every_partition_goes_to_exactly_one_member_whoever_is_there(places: list[int]) -> None:
    found = given_by(PlanAssignor(0, START, None), places)

    assert sorted(p for held in found.values() for p in held) == [0, 1, 2, 3]
    assert set(found) == {f"m{place}" for place in places}


@pytest.mark.parametrize("places", [[1], [2, 3]])
def test_what_an_absent_place_should_hold_is_held_by_others(places: list[int]) -> None:
    assert sum(len(held) for held in given_by(PlanAssignor(0, START, None), places).values()) == 4


def test_of_two_members_at_one_place_each_is_told_what_it_holds() -> None:
    found = given_to(PlanAssignor(0, START, None), {"leaving": 0, "new": 0, "other": 1})

    assert set(found) == {"leaving", "new", "other"}
    assert sorted(p for held in found.values() for p in held) == [0, 1, 2, 3]
