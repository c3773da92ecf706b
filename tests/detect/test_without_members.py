"""Records that wait in a group without members are named from the first minute on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kagent.detect.state import JudgeState
from kagent.detect.without_members import has_no_reader, unread_records
from kagent.policy import Policy
from tests.fixtures.findings import FINE

Make = Any
MINUTE = 60_000


def left(group: Make, minutes: int = 15, **of_partition: Any) -> tuple[Any, JudgeState]:
    """A group whose members left, and what is remembered of it."""
    gone = group({"t": [{**FINE, "rate": 36, "lag": 0, "age": minutes * 60, **of_partition}]}, {})
    seen = gone.observe()
    at = seen.now - minutes * MINUTE
    return seen, JudgeState(first_seen=at - 1, members_at=at, empty_since=at)


def test_what_waits_is_counted_with_its_age_and_when_it_is_reported(group: Make) -> None:
    unread = unread_records(*left(group), Policy())

    assert unread is not None
    assert unread.records > 30_000
    assert unread.oldest_s == pytest.approx(900, rel=0.1)
    assert str(unread).startswith("no members for 15 min; ")
    assert unread.sentence.startswith("No members for 15 min; ")
    assert str(unread).endswith(" min; reported after 60 min without members, if records still arrive")


def test_an_absence_as_long_as_usual_is_reported_later(group: Make) -> None:
    seen, state = left(group)
    unread = unread_records(seen, replace(state, longest_absence=4 * 60 * MINUTE), Policy())

    assert unread is not None
    assert unread.reported_after_s == 8 * 3600


def test_a_job_that_ended_a_day_ago_is_named_and_not_announced(group: Make) -> None:
    seen, state = left(group)
    at = seen.now - 25 * 60 * MINUTE
    unread = unread_records(seen, replace(state, members_at=at, empty_since=at), Policy())

    assert unread is not None
    assert str(unread).endswith("not reported, as it has had no members for a day")


def test_a_group_in_which_nothing_waits_is_not_named(group: Make) -> None:
    assert unread_records(*left(group, lag=0, age=0, rate=0), Policy()) is None


def test_a_group_with_members_is_not_named(group: Make) -> None:
    held = group({"t": [{**FINE, "rate": 36, "lag": 32_400, "age": 900}]}, {"m0": {"t": [0]}})

    assert unread_records(held.observe(), JudgeState(first_seen=1), Policy()) is None


def test_who_commits_without_being_a_member_reads(group: Make) -> None:
    seen, state = left(group, age=5)

    assert not has_no_reader(seen, state)
    assert has_no_reader(replace(seen, as_of=seen.now + 10 * MINUTE), state)


def committed_by_hand(group: Make, age_s: int, rate: float = 36) -> Any:
    """A group that only commits, and last did so a while ago: assign(), Flink, Spark."""
    found = group({"t": [{**FINE, "rate": rate, "lag": 0, "age": age_s}]}, {}, type="simple")
    return found.observe()


def test_a_group_that_only_commits_has_no_reader_once_its_commits_stay_away(group: Make) -> None:
    seen = committed_by_hand(group, 180)
    unread = unread_records(seen, JudgeState(first_seen=1), Policy())

    assert unread is not None
    assert unread.oldest_s == pytest.approx(180, rel=0.1)
    assert str(unread).startswith("no members and no commits for 3 min; ")
    assert str(unread).endswith("reported once that is longer than its usual pauses")


def test_a_group_that_only_commits_is_read_while_its_commits_come_as_often_as_usual(group: Make) -> None:
    assert not has_no_reader(committed_by_hand(group, 5), JudgeState(first_seen=1))
    seen = committed_by_hand(group, 180)
    every_two_minutes = {"t": replace(seen.commits["t"], gaps=(120_000, 120_000, 120_000))}

    assert not has_no_reader(replace(seen, commits=every_two_minutes), JudgeState(first_seen=1))


def test_a_group_that_only_commits_is_read_while_nothing_waits(group: Make) -> None:
    seen = committed_by_hand(group, 600, rate=0)

    assert not has_no_reader(seen, JudgeState(first_seen=1))


def test_where_nobody_says_since_when_the_absence_is_a_lower_bound(group: Make) -> None:
    seen, state = left(group)
    asked = replace(seen, roster=replace(seen.roster, last_change=0))

    assert str(unread_records(asked, state, Policy())).startswith("no members for at least 15 min; ")
