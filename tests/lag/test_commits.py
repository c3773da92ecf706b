"""The lag row of a group and topic keeps order per partition, whatever comes twice or late."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.contract.events import TopicOffsets, TopicTombstones
from kagent.lag import commits
from kagent.lag.commits import GAPS, GONE, LATEST, TopicCommits, apply


def commit(
    partition: int, committed: int, time: int, source: int, topic_id: str | None = "A"
) -> TopicOffsets:
    return TopicOffsets("t", topic_id, [partition], [committed], [time], [source])


def test_an_older_source_offset_never_wins() -> None:
    row = apply(apply(None, commit(0, 100, 5000, 8)), commit(0, 50, 1000, 3))

    assert (row.committed, row.time) == ([100], [5000])


def test_a_replay_gives_the_same_object() -> None:
    row = apply(None, commit(0, 100, 5000, 8))

    assert apply(row, commit(0, 100, 5000, 8)) is row


def test_a_tombstone_removes_and_a_replay_does_not_bring_it_back() -> None:
    row = apply(apply(None, commit(0, 100, 5000, 8)), TopicTombstones("t", [0], [9]))

    assert row.committed == [GONE]
    assert apply(row, commit(0, 100, 5000, 8)) is row


def test_any_order_of_the_same_updates_ends_the_same() -> None:
    updates: list[TopicOffsets | TopicTombstones] = [
        commit(p, 10 * n, 1000 * n, 3 * n + p) for p in range(3) for n in range(1, 6)
    ]
    updates.append(TopicTombstones("t", [1], [99]))
    ends = set()
    for seed in range(20):
        random.Random(seed).shuffle(updates)
        row = None
        for update in updates:
            row = apply(row, update)
        assert row is not None
        ends.add((tuple(row.partition), tuple(row.committed), tuple(row.source_offset)))

    assert ends == {((0, 1, 2), (50, GONE, 50), (15, 99, 17))}


def test_commits_of_a_deleted_topic_are_void_under_the_new_id() -> None:
    row = apply(apply(None, commit(0, 100, 5000, 8)), commit(1, 3, 9000, 12, "B"))

    assert (row.topic_id, row.committed) == ("B", [GONE, 3])
    assert apply(row, commit(2, 70, 4000, 7, "A")) is row


def test_cadence_is_the_usual_gap_and_moving_is_told_from_committing() -> None:
    row = None
    for turn in range(5):
        row = apply(row, commit(0, 100 if turn > 1 else turn, turn * 60_000, turn))

    assert row is not None
    assert (row.cadence, row.moved, row.time) == (60_000, [120_000], [240_000])


def test_a_commit_that_goes_back_is_remembered_as_a_rewind() -> None:
    row = apply(apply(None, commit(0, 100, 5000, 8)), commit(0, 10, 6000, 9))

    assert (row.rewound, row.committed) == (6000, [10])


def test_the_row_is_plain_json() -> None:
    row = apply(None, commit(0, 100, 5000, 8))

    assert TopicCommits.from_row(orjson.loads(orjson.dumps(row.to_row()))) == TopicCommits.from_row(
        row.to_row()
    )


columns = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.tuples(
            st.lists(st.integers(-1, 50), min_size=n, max_size=n),
            st.lists(st.integers(0, 90), min_size=n, max_size=n),
        ),
        min_size=1,
        max_size=8,
    )
)


def folded(rounds: Any) -> TopicCommits | None:
    row: TopicCommits | None = None
    for source, (offsets, times) in enumerate(rounds):
        count = len(offsets)
        row = apply(row, TopicOffsets("t", None, list(range(count)), offsets, times, [source] * count))
    return row


@given(columns)
def test_newer_commits_of_all_partitions_fold_to_the_same_row_either_way(rounds: Any) -> None:
    short = folded(rounds)
    with patch.object(commits, "_replaced", lambda row, *new: _long(row, *new)):
        long = folded(rounds)

    assert short is not None
    assert long is not None
    assert short.to_row() == long.to_row()


def _long(row: TopicCommits, committed: Any, times: Any, source: Any) -> TopicCommits:
    merge = commits._Merge(row, {partition: at for at, partition in enumerate(row.partition)})
    for partition, *one in zip(row.partition, committed, times, source, strict=True):
        merge.take(partition, *one)
    return merge.row(row)


def test_a_record_that_is_retried_makes_no_progress_however_far_ahead_its_client_commits() -> None:
    """What aiokafka committed each 5 s in the background while the record at 10711 was retried with ``seek()``."""
    ahead = (10811, 10804, 10807, 10811, 10711, 10811, 10807, 10804, 10711, 10811)
    row = None
    for turn, offset in enumerate((10511, 10611, 10711, *6 * ahead)):
        row = apply(row, commit(0, offset, turn * 5000, turn))

    assert row is not None
    # The last of before is forgotten after a minute; since then the least is the record.
    assert row.moved[0] <= 75_000
    assert min(row.recent[0]) == 10711


# What Java's KIP-848 consumer committed in the background while the record at 3317 was retried with seek(), the same offset again and again
# in between, and once it could be processed.
RETRIED = (
    3273,
    3285,
    3299,
    3309,
    3316,
    3330,
    3317,
    3647,
    3317,
    3728,
    3317,
    3817,
    3317,
    3817,
    3317,
    3815,
    3317,
    3815,
    3317,
)
RETRIED_THEN = (3814, 4314, 4814, 5418)


def test_what_was_passed_before_a_record_that_is_retried_makes_no_progress_once_it_is_forgotten() -> None:
    row = None
    for turn, offset in enumerate(RETRIED):
        row = apply(row, commit(0, offset, turn * 5000, turn))

    assert row is not None
    assert row.moved[0] == 5000 * RETRIED.index(3330)
    assert min(row.recent[0]) == 3317


def test_three_offsets_beyond_all_others_are_progress_however_seldom_they_change() -> None:
    row = None
    for turn, offset in enumerate((*RETRIED, *RETRIED_THEN)):
        row = apply(row, commit(0, offset, turn * 5000, turn))

    assert row is not None
    assert row.moved == row.time
    assert row.recent == [[4314, 4814, 5418]]


@pytest.mark.parametrize("gap_s", [1, 5, 60, 300])
def test_after_a_rewind_a_group_makes_progress_again_within_a_minute_or_three_commits(gap_s: int) -> None:
    row = None
    for turn, offset in enumerate((1000, 1100, 1200, *range(50, 1000, 30))):
        row = apply(row, commit(0, offset, turn * gap_s * 1000, turn))
        if turn >= 3 + max(LATEST, min(GAPS, 60 // gap_s)):
            assert row.moved == row.time, turn

    assert row is not None
    assert len(row.recent[0]) == LATEST
