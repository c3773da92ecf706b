"""Captures of real groups, replayed: decoded as the coordinator had them, judged as the worker would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kagent.capture.folder import read_folder
from kagent.contract.recommendation import Status, to_bytes
from kagent.incident.session import EvaluationSession
from kagent.policy import Policies
from kagent.replay.captured_events import Recording, recording
from kagent.replay.driver import BLIND_AFTER_MS, TICK_MS, RecordedCluster, replay
from tests.fixtures.captures import DATA, WEEK_MS

SCENARIOS = ("skew", "steady", "hang")


def test_the_captures_hold_seven_groups_of_six_client_libraries(
    truth: Callable[[str], list[dict[str, Any]]],
) -> None:
    groups = [group for scenario in SCENARIOS for group in truth(scenario)]
    assert len(groups) == 7
    assert len({group["library"] for group in groups}) >= 5


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.slow
def test_replayed_commits_and_log_ends_are_those_of_the_admin_api(
    scenario: str, truth: Callable[[str], list[dict[str, Any]]]
) -> None:
    whole = recording(replace(read_folder(DATA / scenario), ended_ms=None))
    cluster = RecordedCluster(whole)
    cluster.advance(whole.end_ms + 2 * TICK_MS)
    for group in truth(scenario):
        commits = cluster.groups[group["group"]].commits[group["topic"]]
        committed = dict(zip(map(str, commits.partition), commits.committed, strict=True))
        assert committed == {p: o for p, o in group["final_committed_by_admin"].items() if o is not None}
        ends = dict(enumerate(cluster.ends[group["topic"]].end.tolist()))
        assert ends == {int(p): o for p, o in group["final_log_end_by_admin"].items()}


@pytest.mark.parametrize("scenario", ["skew", "steady"])
@pytest.mark.slow
def test_replayed_members_hold_what_the_clients_held(
    scenario: str, captured: Callable[[str], Recording], truth: Callable[[str], list[dict[str, Any]]]
) -> None:
    record = captured(scenario)
    cluster = RecordedCluster(record)
    cluster.advance(record.end_ms)
    for group in truth(scenario):
        roster = cluster.groups[group["group"]].roster(cluster.topic_names)
        held = {
            member.client_id: sorted(member.assigned.get(group["topic"], ())) for member in roster.members
        }
        assert roster.state == "Stable"
        assert held == group["held_at_end"]


@pytest.mark.slow
def test_two_hot_partitions_of_one_librdkafka_member_are_reported_as_rebalance(
    captured: Callable[[str], Recording],
) -> None:
    session = EvaluationSession(Policies())
    replayed = replay(captured("skew"), session, lambda group: group == "skew-rc", known_for_ms=WEEK_MS)
    assert [str(m.verdict) for m in replayed.messages if m.status is Status.OPEN] == ["rebalance"]
    assert replayed.suppressed_by == {"skew-rc": None}


def test_steady_groups_are_silent(captured: Callable[[str], Recording]) -> None:
    replayed = replay(captured("steady"), EvaluationSession(Policies()), known_for_ms=WEEK_MS)
    assert replayed.messages == ()
    assert replayed.suppressed_by == {"steady-jr": None, "steady-js": None}
    assert replayed.ticks == 72


@pytest.mark.slow
def test_the_same_capture_gives_the_same_messages(captured: Callable[[str], Recording]) -> None:
    first, second = (
        replay(captured("skew"), EvaluationSession(Policies()), known_for_ms=WEEK_MS) for _ in range(2)
    )
    assert first.messages
    assert list(map(to_bytes, first.messages)) == list(map(to_bytes, second.messages))
    assert len(first.published_ms) == len(first.messages)
    assert all(at >= message.as_of for at, message in zip(first.published_ms, first.messages, strict=True))


def test_nothing_is_evaluated_after_the_end_of_the_experiment() -> None:
    folder = read_folder(DATA / "steady")
    cut = folder.start_ms + 200_000
    record = recording(replace(folder, ended_ms=cut))
    assert folder.records[-1].read_ms > cut
    assert max(trigger.at_ms for trigger in record.triggers) <= cut
    assert replay(record, EvaluationSession(Policies())).ticks == 200_000 // TICK_MS


def test_what_was_read_later_is_not_known_earlier(captured: Callable[[str], Recording]) -> None:
    record = captured("skew")
    cluster = RecordedCluster(record)
    cluster.advance(record.start_ms + 300_000)
    observation = cluster.observe("skew-rc")
    assert observation.now == record.start_ms + 300_000
    newest = max(commits.last for commits in observation.commits.values())
    assert observation.now - 10_000 < newest <= observation.now
    assert observation.now - 10_000 < observation.ends["skew-rc-in"].last <= observation.now


def test_without_samples_of_the_log_ends_a_group_is_blind_after_a_minute(
    captured: Callable[[str], Recording],
) -> None:
    record = captured("skew")
    cut = record.start_ms + 300_000
    dark = replace(record, samples=tuple(s for s in record.samples if s.answered_ms <= cut))
    cluster = RecordedCluster(dark)
    cluster.advance(cut + BLIND_AFTER_MS - 10_000)
    assert cluster.observe("skew-rc").blind is None
    cluster.advance(cut + BLIND_AFTER_MS + 10_000)
    assert "log ends" in str(cluster.observe("skew-rc").blind)


@pytest.mark.slow
def test_a_record_that_cannot_be_decoded_is_counted_and_the_rest_is_replayed() -> None:
    folder = read_folder(DATA / "steady")
    broken = replace(folder.records[10], key=b"\x00\x01\x00\x09short")
    record = recording(replace(folder, records=[*folder.records[:10], broken, *folder.records[10:]]))
    assert record.unreadable == 1
    assert record.groups == ["steady-jr", "steady-js"]
