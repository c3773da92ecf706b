"""Members are the coordinator's; where it knows none, whoever commits together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.contract.recommendation import GroupKind
from kagent.detect.committers import co_partitioned, learned, units_of
from kagent.detect.state import JudgeState
from kagent.lag.measure import measure
from kagent.lag.observation import Observation
from kagent.policy import Policy
from tests.fixtures.findings import FINE, FOUR
from tests.fixtures.group_builder import Group

Make = Callable[..., Any]


def test_the_coordinators_members_are_the_members(group: Make) -> None:
    units = group({"t": 8 * [FINE]}, FOUR).look().columns.units

    assert units.known
    assert len(units.names) == 4
    assert units.owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


class Process:
    """What kagent has learned of a group without members from the times (s) at which each partition was committed."""

    def __init__(self, group: Make, partitions: int) -> None:
        self.seen: Observation = group({"t": partitions * [FINE]}, {}, type="simple").observe()
        self.state = JudgeState(first_seen=1)

    def commits(self, *times: float) -> None:
        row = replace(self.seen.commits["t"], time=[round(1000 * time) for time in times])
        self.seen = replace(self.seen, commits={"t": row})
        self.state = learned(self.state, self.seen)

    @property
    def readers(self) -> tuple[str, ...]:
        lags = measure(self.seen, Policy())
        units = units_of(self.seen.roster, lags, GroupKind.SIMPLE, self.state.committed_together)
        return tuple(units.names[code] for code in units.owner.tolist())


def test_partitions_that_are_committed_together_twice_have_one_reader(group: Make) -> None:
    process = Process(group, 4)
    process.commits(10, 10, 11, 11)
    once = process.readers
    process.commits(15, 15, 16, 16)

    assert len(set(once)) == 4
    assert process.readers == ("the reader of t-0",) * 2 + ("the reader of t-2",) * 2


def test_one_common_commit_does_not_make_one_process_of_those_that_commit_by_themselves(group: Make) -> None:
    """As after a reset of all offsets: each process comes back alone, and would confirm a label that all have in common."""
    process = Process(group, 4)
    process.commits(10, 10, 10, 10)
    for look in range(1, 6):
        process.commits(120 * look, 120 * look, *2 * [120 * look - 60 if look > 1 else 10])
        process.commits(120 * look, 120 * look, 120 * look + 60, 120 * look + 60)

    assert process.readers == ("the reader of t-0",) * 2 + ("the reader of t-2",) * 2


def test_a_process_that_commits_everything_is_the_reader_of_everything(group: Make) -> None:
    process = Process(group, 4)
    for time in (10, 15):
        process.commits(time, time, time, time)

    assert process.readers == 4 * ("the reader of t-0",)


def test_a_commit_that_is_looked_at_again_counts_once(group: Make) -> None:
    process = Process(group, 2)
    for _ in range(5):
        process.commits(10, 10)

    assert len(set(process.readers)) == 2


def test_processes_that_meet_by_chance_once_a_minute_stay_two(group: Make) -> None:
    process = Process(group, 2)
    for look in range(1, 500):
        time = 5.0 * look
        process.commits(time, time if look % 12 == 0 else time + 0.9)

        assert len(set(process.readers)) == 2


def test_a_partition_that_moves_in_every_third_commit_keeps_its_reader(group: Make) -> None:
    process = Process(group, 2)
    for look in range(1, 500):
        # Two commits a look, and a client that names only what moved: in two looks of three it moved in the first one alone.
        slow = 10.0 * look if look % 3 == 0 else 10.0 * look - 5
        process.commits(10.0 * look, slow)

        assert look < 10 or len(set(process.readers)) == 1


def test_a_look_at_which_nothing_is_learned_leaves_the_state_as_it_is(group: Make) -> None:
    """Or every group without members would be written at every tick."""
    together, apart = Process(group, 2), Process(group, 2)
    for look in range(1, 9):
        before = together.state, apart.state
        together.commits(5 * look, 5 * look)
        apart.commits(5 * look, 5 * look + 1)

    assert before == (together.state, apart.state)
    assert before[0] is together.state
    assert before[1] is apart.state


def test_a_partition_that_waits_for_its_turn_keeps_its_reader(group: Make) -> None:
    process = Process(group, 2)
    process.commits(5, 5)
    process.commits(10, 10)
    for look in range(3, 500):
        process.commits(5 * look, 10)

    assert process.readers == 2 * ("the reader of t-0",)


def test_a_partition_that_another_process_takes_over_changes_its_reader(group: Make) -> None:
    process = Process(group, 4)
    for look in range(1, 10):
        process.commits(5 * look, 5 * look, 5 * look + 1, 5 * look + 1)
    for look in range(10, 60):
        process.commits(5 * look + 1, 5 * look, 5 * look + 1, 5 * look + 1)

    assert process.readers == (
        "the reader of t-0",
        "the reader of t-1",
        "the reader of t-0",
        "the reader of t-0",
    )


def test_two_processes_that_were_taken_for_one_are_told_apart(group: Make) -> None:
    process = Process(group, 4)
    for time in (5, 10, 15, 20):
        process.commits(time, time, time, time)
    before = process.readers
    for look in range(5, 60):
        process.commits(5 * look, 5 * look, 5 * look + 1, 5 * look + 1)

    assert len(set(before)) == 1
    assert process.readers == 2 * ("the reader of t-0",) + 2 * ("the reader of t-2",)


def test_what_an_older_release_took_for_one_process_is_learned_anew(group: Make) -> None:
    process = Process(group, 2)
    process.state = JudgeState.from_row(
        {"first_seen": 1, "committers": {"t/0": ["t/0", 2], "t/1": ["t/0", 2]}}
    )

    assert len(set(process.readers)) == 2


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=60))
def test_partitions_that_are_always_committed_together_end_with_one_reader(looks: list[list[int]]) -> None:
    """Whatever the other three do, and whenever they meet these two."""
    process = Process(Group, 5)
    for at, others in enumerate(looks, 1):
        process.commits(10 * at, 10 * at, *(10 * at + other for other in others[2:]))
    for at in range(len(looks) + 1, len(looks) + 4):
        process.commits(10 * at, 10 * at, *(10 * at + 1 + other / 10 for other in range(3)))

    assert process.readers[0] == process.readers[1]


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
