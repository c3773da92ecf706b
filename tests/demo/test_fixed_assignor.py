"""The demo's assignor deals by its list; nothing is left lying or given twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.demo.fixed_assignor import FixedList
from kagent.demo.topology import Held
from kagent.strategies.plugins.join import Joined

START: tuple[Held, ...] = ((("t", 0), ("t", 1), ("t", 2)), (("t", 3),))


def dealt(*members: str) -> dict[str, list[int]]:
    joined = [Joined(member, ("t",)) for member in members]
    placed = FixedList("g", START).place({"t": 4}, joined)
    return {member: sorted(p for _, p in pairs) for member, pairs in placed.items()}


def test_each_place_gets_what_the_list_says() -> None:
    assert dealt("g-2-b", "g-1-a") == {"g-1-a": [0, 1, 2], "g-2-b": [3]}


@given(places=st.lists(st.integers(1, 5), max_size=5), others=st.integers(0, 2))
def test_every_partition_goes_to_exactly_one_member_whoever_is_there(places: list[int], others: int) -> None:
    members = [f"g-{place}-{n}" for n, place in enumerate(places)] + [f"x-{n}" for n in range(others)]
    found = dealt(*members) if members else None

    assert found is None or sorted(p for held in found.values() for p in held) == [0, 1, 2, 3]
    assert found is None or set(found) == set(members)


@pytest.mark.parametrize("member", ["g-2-x", "somebody-else"])
def test_what_an_absent_place_should_hold_is_held_by_others(member: str) -> None:
    assert dealt(member) == {member: [0, 1, 2, 3]}


def test_a_topic_without_metadata_is_left_alone() -> None:
    assert FixedList("g", START).place({"t": 0}, [Joined("g-1-a", ("t",))]) == {"g-1-a": []}
