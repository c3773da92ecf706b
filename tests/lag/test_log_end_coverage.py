"""A lag is only told where the log ends were read when the group committed."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_end_coverage import unread, unseen, unwatched
from kagent.lag.log_ends import EndHistory

NOW = 1_700_000_000_000
S = 1000


def committed(*ages: float, first: float = 3600, offset: int = 5) -> dict[str, TopicCommits]:
    """Commits on the partitions 0, 1, … so many seconds before NOW."""
    count = len(ages)
    times = [NOW - round(age * S) for age in ages]
    row = TopicCommits("orders", None, range(count), [offset] * count, times, range(count), times)
    return {"orders": TopicCommits(**{**row.to_row(), "first": NOW - round(first * S)})}


def sampled(*ages: float) -> dict[str, EndHistory]:
    history = EndHistory(2)
    for age in sorted(ages, reverse=True):
        at = NOW - round(age * S)
        history.add(at, at, [0, 0], [100, 100])
    return {"orders": history}


def test_a_group_that_commits_while_nobody_reads_the_log_ends_is_not_seen() -> None:
    assert unread(committed(0, 5), sampled(61, 100), 60 * S, NOW) == (
        "the log ends of orders were last read 61 s before the group's newest commit"
    )
    assert unread(committed(0, 5), sampled(59, 100), 60 * S, NOW) is None


def test_a_group_that_commits_no_more_is_told_of_by_what_was_read_last() -> None:
    assert unread(committed(400), sampled(300), 60 * S, NOW) is None
    assert not unwatched(committed(400), sampled(300, 405), 10 * S)


def test_a_topic_that_can_never_be_read_is_told_and_a_deleted_one_is_no_matter() -> None:
    assert unread(committed(0, first=10), {}, 60 * S, NOW) is None
    assert unread(committed(0, first=70), {}, 60 * S, NOW) == (
        "the log ends of orders have never been read, though the group commits to it"
    )
    assert unread(committed(0, first=70), {"orders": EndHistory(2)}, 60 * S, NOW) is not None
    assert unread(committed(900, first=8000), {}, 60 * S, NOW) is None


@pytest.mark.parametrize(
    ("commit", "dark"),
    [
        (60.0, False),  # soon after a sample
        (45.0, True),  # nobody had looked for 25 s, and what was then is not known
        (30.5, True),  # the next sample was asked later
        (29.5, False),
        (1.0, False),
    ],
)
def test_what_was_committed_in_a_gap_between_samples_waits_for_the_next_commit(
    commit: float, dark: bool
) -> None:
    samples = sampled(80, 75, 70, 30, 25, 20, 15, 10, 5, 0)

    assert unwatched(committed(commit), samples, 10 * S) is dark
    assert unwatched(committed(1.0, commit), samples, 10 * S) is dark
    assert not unwatched(committed(commit, offset=GONE), samples, 10 * S)


def test_what_a_coordinator_was_asked_for_in_a_gap_waits_for_no_next_commit() -> None:
    row = committed(31)["orders"]
    asked = {"orders": TopicCommits(**{**row.to_row(), "source_offset": [-1]})}

    assert unwatched({"orders": row}, sampled(80, 75, 30, 0), 10 * S)
    assert not unwatched(asked, sampled(80, 75, 30, 0), 10 * S)


def test_what_was_committed_after_the_last_sample_waits_for_the_next_sample() -> None:
    assert unwatched(committed(0), sampled(11, 16), 10 * S)
    assert not unwatched(committed(0), sampled(9, 14), 10 * S)


def test_samples_that_were_thinned_out_are_no_gap() -> None:
    history = sampled(*range(0, 1200, 5))["orders"]
    history = EndHistory.from_row(history.to_row())

    assert not any(unwatched(committed(age), {"orders": history}, 10 * S) for age in range(0, 1200, 7))


@given(
    st.lists(st.integers(0, 170), min_size=1, max_size=40),
    st.integers(0, 170),
    st.integers(0, 170),
)
def test_a_commit_is_watched_just_where_a_sample_was_taken_shortly_before_it(
    samples: list[int], newest: int, commit: int
) -> None:
    """Or where it is older than all samples."""
    ages = sorted({*samples, newest}, reverse=True)
    before = [age for age in ages if age >= commit]

    dark = unwatched(committed(commit), sampled(*ages), 10 * S)

    assert dark is bool(before and min(before) - commit > 10)


def test_nobody_saw_the_cluster_while_no_topic_was_sampled() -> None:
    one, other = sampled(0, 300, 301)["orders"], sampled(0, 100, 400, 401)["orders"]

    assert unseen([one], 60 * S, NOW) == ((NOW - 300 * S, NOW),)
    assert unseen([one, other], 60 * S, NOW) == ((NOW - 300 * S, NOW - 100 * S), (NOW - 100 * S, NOW))
    assert unseen([one, sampled(*range(0, 400, 5))["orders"]], 60 * S, NOW) == ()
    assert unseen([], 60 * S, NOW) == ()


def test_what_was_not_seen_until_now_counts_before_a_sample_ends_it() -> None:
    history = sampled(90, 95, 100)["orders"]

    assert unseen([history], 60 * S, NOW) == ((NOW - 90 * S, NOW),)
    assert unseen([history], 100 * S, NOW) == ()


@pytest.mark.parametrize(("ended", "away"), [(3300, True), (3700, False)])
def test_a_long_gap_is_remembered_for_an_hour_however_many_short_ones_follow(ended: int, away: bool) -> None:
    # Further apart than PAUSE: each of them is a gap, too.
    history = sampled(ended + 400, *range(0, ended + 1, 20))["orders"]

    expected = ((NOW - (ended + 400) * S, NOW - ended * S),) if away else ()
    assert unseen([history], 60 * S, NOW) == expected
    assert len(history.gaps(10 * S, within=2 * 3600 * S)) < 20


def test_gaps_outlast_a_restart() -> None:
    # Away for 10 of the last 20 minutes.
    row = sampled(*range(1200, 900, -5), *range(300, 0, -5))["orders"].to_row()
    assert unseen([EndHistory.from_row(orjson.loads(orjson.dumps(row)))], 60 * S, NOW) == (
        (NOW - 905 * S, NOW - 300 * S),
    )


def test_a_row_without_gaps_is_read() -> None:
    row = sampled(*range(1200, 900, -5), *range(300, 0, -5))["orders"].to_row()
    del row["gaps"]
    assert unseen([EndHistory.from_row(row)], 60 * S, NOW) == ()
