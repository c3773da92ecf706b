"""Partitions without a commit: what waits there for certain, and what the group's own beginnings add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.detect.start_position import begins_at_start, next_offset
from kagent.lag.commits import TopicCommits
from kagent.lag.log_ends import EndHistory
from kagent.lag.observation import Observation
from kagent.policy import Policy
from tests.fixtures.group_builder import NOW

Make = Callable[..., Any]
RATE = 10
UNSERVED = {"end": 100_000, "rate": RATE}
SERVED = {"end": 50_000, "rate": RATE, "lag": 0}
HELD = {"m0": {"t": [0, 1]}}


def history(ends: list[int]) -> EndHistory:
    made = EndHistory(1)
    for at, end in enumerate(ends):
        made.add(NOW + 5000 * at, NOW + 5000 * at + 10, [0], [end])
    return made


def first_commit(offset: int) -> dict[str, TopicCommits]:
    return {"t": TopicCommits("t", None, [0], [offset], [NOW + 5100], [1], [NOW + 5100], first=NOW + 5100)}


def test_what_arrived_since_its_reader_got_it_waits_in_a_partition_without_a_commit(group: Make) -> None:
    model = group({"t": [UNSERVED, SERVED]}, HELD).look(generation_at=NOW - 600_000)

    assert model.relevant.all()
    assert abs(model.columns.backlog[0] - 600 * RATE) <= 20 * RATE


def test_a_group_that_begins_at_the_start_has_all_of_it_before_it(group: Make) -> None:
    made = group({"t": [UNSERVED, SERVED]}, HELD)

    for model in (
        made.look(from_start=True),
        made.looked(Policy(reset_policy="earliest"))[0],
    ):
        assert model.columns.backlog[0] > 99_000


def test_a_topic_that_is_never_committed_has_its_positions_elsewhere(group: Make) -> None:
    held = {"m0": {"t": [0], "u": [0]}}
    model = group({"t": [SERVED], "u": [UNSERVED]}, held).look(from_start=True)

    assert model.relevant.tolist() == [True, False]


def test_a_partition_that_nobody_holds_has_no_reader(group: Make) -> None:
    model = group({"t": [UNSERVED, SERVED]}, {"m0": {"t": [1]}}).look(from_start=True)

    assert not model.relevant[0]


def test_first_commits_nearer_to_the_log_start_are_of_a_group_that_begins_there() -> None:
    ends = {"t": history([10_000, 10_010, 10_020])}

    assert begins_at_start(first_commit(200), ends)
    assert not begins_at_start(first_commit(9_990), ends)


def test_a_group_that_was_there_before_the_watch_does_not_tell_where_it_began() -> None:
    ends = {"t": history([10_000, 10_010, 10_020])}
    older = {"t": TopicCommits("t", None, [0], [200], [NOW + 5100], [1], [NOW + 5100], first=NOW - 60_000)}

    assert not begins_at_start(older, ends)


@pytest.mark.parametrize(
    ("recent", "committed", "read_next"),
    [
        ((719, 720, 719), 719, 719),
        ((720, 719, 720), 720, 719),
        ((811, 804, 811, 711), 711, 711),
        ((900, 50, 80), 80, 80),
        ((650, 700, 719), 719, 719),
        ((), 719, 719),
    ],
)
def test_where_commits_go_back_and_forth_the_lesser_one_is_the_record_that_is_retried(
    recent: tuple[int, ...], committed: int, read_next: int
) -> None:
    row = TopicCommits("t", partition=(3,), committed=(committed,), recent=(recent,) if recent else ())
    seen = Observation("main", "g", 1_700_000_000_000, None, {"t": row}, {})

    assert next_offset(seen, "t", 3) == read_next
    assert next_offset(seen, "t", 4) is None
