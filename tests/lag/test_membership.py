"""Who holds what, at the size of what the records say and not of the numbers in them."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.groups import GroupView, MemberView, apply, view
from kagent.kafka.group_answers import _assigned, _assignment
from kagent.lag.membership import NOBODY, Holders, Roster
from kagent.offsets import Record

HIGHEST = 2**31 - 1
"""Kafka's protocol has 32 bits for a partition; a group's leader may write any of them into an assignment."""


def roster(*held: Mapping[str, Sequence[int]]) -> Roster:
    members = tuple(
        MemberView(
            f"m{n}", None, f"c{n}", "/h", None, (), assigned={t: tuple(ps) for t, ps in topics.items()}
        )
        for n, topics in enumerate(held)
    )
    return Roster.of(GroupView("g", "classic", "Stable", "consumer", "range", 1, None, members, 0))


def holders_of(made: Roster, topic: str, *partitions: int) -> list[int]:
    return list(made.holder(topic, np.array(partitions, np.int64)))


def test_the_highest_partition_there_can_be_takes_no_more_memory_than_the_lowest() -> None:
    tracemalloc.start()
    try:
        made = roster(*({f"t{n}": [0, HIGHEST] for n in range(20)} for _ in range(3)))
        digests = made.digest, made.holdings
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 1_000_000
    assert len(set(digests)) == 2
    assert holders_of(made, "t7", 0, 1, HIGHEST) == [2, NOBODY, 2]


@pytest.mark.slow
@given(st.lists(st.tuples(st.lists(st.integers(0, 12), min_size=1), st.integers(0, 5)), min_size=1))
def test_a_partition_has_the_last_holder_that_was_named_or_nobody(
    held: list[tuple[list[int], int]],
) -> None:
    expected = {partition: code for partitions, code in held for partition in partitions}

    found = Holders.of(held).of_partitions(np.arange(20))

    assert found.tolist() == [expected.get(partition, NOBODY) for partition in range(20)]


def test_assignments_that_differ_by_a_partition_have_different_hashes() -> None:
    made = [
        roster({"t": partitions})
        for partitions in ([0], [1], [0, 1], [0, 2], [1, 2], [0, 1, 2], [0, HIGHEST])
    ]

    assert len({one.assignment for one in made}) == len({one.holdings for one in made}) == len(made)


def test_the_hash_of_a_whole_assignment_is_the_one_that_is_in_rows_already() -> None:
    made = roster({"t": [0, 2]}, {"t": [1]})

    assert made.assignment == "edccb731f5d94f5b"  # as every release has it


def test_numbers_that_are_no_partitions_are_held_by_nobody() -> None:
    """In a record, and in the coordinator's answer: both pass on unread what the group's leader wrote."""
    numbers = [-(2**31), -1, 0, 2]
    given = {"version": 0, "assignedPartitions": [{"topic": "t", "partitions": numbers}]}
    member = {
        "memberId": "m",
        "clientId": "c",
        "clientHost": "/h",
        "sessionTimeout": 1,
        "assignment_decoded": given,
    }
    value = {"protocolType": "consumer", "generation": 1, "protocol": "range", "members": [member]}
    made = Roster.of(view(apply(None, Record("GroupMetadata", 2, 3, {"group": "g"}, value), 1, 1), {}))
    answer = struct.pack(">hih1si4ii", 0, 1, 1, b"t", 4, *numbers, -1)

    assert made.owners["t"].partitions.tolist() == [0, 2]
    assert _assigned(_assignment(answer)) == {("t", 0), ("t", 2)}
