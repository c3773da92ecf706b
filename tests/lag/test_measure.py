"""What lag is, case by case, as docs/judgement.md states it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.detect.decision import decide
from kagent.lag.observation import TopicInfo
from kagent.policy import Policy

Make = Callable[..., Any]
ONE = {"m0": {"t": [0]}}


def row(group: Make, part: dict[str, Any], policy: Policy | None = None, **more: Any) -> dict[str, Any]:
    lags = group({"t": [part]}, more.pop("members", ONE), **more).look(policy).lags
    return {name: getattr(lags, name).tolist()[0] for name in ("shown", "low", "lost", "owner")}


def test_shown_lag_is_end_minus_committed_and_judged_lag_does_not_grow_with_the_commits_age(
    group: Make,
) -> None:
    found = row(group, {"end": 1_000_000, "rate": 1000, "lag": 0, "age": 5})

    assert found["shown"] == 5000
    assert found["low"] == 0


def test_a_real_backlog_is_judged_to_be_hardly_less_than_it_is(group: Make) -> None:
    found = row(group, {"end": 1_000_000, "rate": 1000, "lag": 60_000, "age": 5})

    assert 50_000 < found["low"] <= 60_000


def test_lag_is_never_below_zero(group: Make) -> None:
    assert row(group, {"end": 100, "committed": 103})["shown"] == 0


@pytest.mark.parametrize(("policy", "lag"), [(None, -1), ("latest", 0), ("earliest", 70), ("none", 70)])
def test_without_a_commit_lag_is_unknown_unless_the_reset_policy_is_named(
    group: Make, policy: str | None, lag: int
) -> None:
    assert row(group, {"end": 100, "start": 30}, Policy(reset_policy=policy))["shown"] == lag


def test_a_commit_below_the_log_start_counts_from_there_and_the_rest_is_lost(group: Make) -> None:
    found = row(group, {"end": 1000, "start": 400, "committed": 100})

    assert (found["shown"], found["lost"]) == (600, 300)


def test_a_commit_of_a_deleted_topic_is_void(group: Make) -> None:
    assert row(group, {"end": 1000, "committed": 900}, ids={"t": ("old", "new")})["shown"] == -1
    assert row(group, {"end": 1000, "committed": 900}, ids={"t": ("same", "same")})["shown"] == 100


def test_a_commit_for_a_topic_that_no_member_reads_is_orphaned_and_never_summed(group: Make) -> None:
    topics = {"t": [{"end": 100, "lag": 0}], "left": [{"end": 100, "committed": 1}]}
    look = group(topics, ONE, subscriptions=["t"]).look()

    assert look.lags.orphaned.tolist() == [True, False]
    assert look.work.tolist() == [0.0]
    assert decide(look).findings == ()


def test_a_partition_that_nobody_holds_is_the_groups_and_no_members(group: Make) -> None:
    look = group({"t": [{"end": 100, "lag": 0}, {"end": 100, "committed": 1}]}, ONE).look()

    assert look.lags.owner.tolist() == [0, -1]
    assert look.lags.shown.tolist() == [0, 99]
    assert look.work.tolist() == [0.0]


def test_a_commit_at_the_last_stable_offset_is_blocked_and_never_stalled(group: Make) -> None:
    held = {"end": 100_000, "rate": 100, "committed": 40_000, "stable": 40_000, "age": 2, "moved": 600}
    moving = {"end": 100_000, "rate": 100, "lag": 0}
    members = {"m0": {"t": [0, 1]}, "m1": {"t": [2]}}
    waits = group({"t": [held, moving, moving]}, members)
    stands = group({"t": [{**held, "stable": 100_000}, moving, moving]}, members)
    blocked, stalled = (made.look(standing=made.stood()) for made in (waits, stands))

    assert [str(f.verdict) for f in decide(blocked).findings if f.ripe] == ["blocked_by_transaction"]
    assert [str(f.verdict) for f in decide(stalled).findings if f.ripe] == ["stalled"]


def test_markers_at_the_end_count_as_caught_up(group: Make) -> None:
    found = row(group, {"end": 100, "committed": 98, "age": 1800})

    assert (found["shown"], found["low"]) == (2, 0)


def test_on_a_compacted_topic_lag_is_at_most_and_confidence_low(group: Make) -> None:
    look = group({"t": [{"end": 100, "lag": 50}]}, ONE, infos={"t": TopicInfo(1, compacted=True)}).look()

    assert look.lags.at_most.tolist() == [True]


def test_time_lag_comes_from_the_history_and_is_at_least_beyond_it(group: Make) -> None:
    young = group({"t": [{"end": 100_000, "rate": 10, "lag": 6000}]}, ONE).look()
    old = group({"t": [{"end": 100_000, "rate": 10, "committed": 1}]}, ONE).look()

    (age, beyond), (old_age, old_beyond) = young.age, old.age
    assert 570 <= age[0] <= 640
    assert not beyond[0]
    assert old_beyond[0]
    assert old_age[0] >= 3500
