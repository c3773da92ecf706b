"""The evaluation session, on observations of real groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kagent.contract.recommendation import Recommendation, Status, to_bytes
from kagent.group_key import group_key
from kagent.incident.correlation import Population
from kagent.incident.session import EvaluationSession
from kagent.lag.observation import Observation
from kagent.policy import Policies, make_policy
from kagent.replay.captured_events import Recording
from kagent.replay.driver import TICK_MS, RecordedCluster
from kagent.simulator import run
from kagent.simulator.commit_table import EPOCH
from kagent.simulator.scenario_file import parse
from kagent.text import span

WEEK_MS = 7 * 86_400_000
GROUP = "skew-rc"
KEY = group_key("main", GROUP)
Observed = Iterator[Observation]


@pytest.fixture
def ticks(captured: Callable[[str], Recording]) -> Callable[[], Observed]:
    """One real group with two hot partitions on one member, at every tick."""

    def observations() -> Observed:
        record = captured("skew")
        cluster = RecordedCluster(record, lambda group: group == GROUP)
        for now_ms in range(record.start_ms + TICK_MS, record.end_ms, TICK_MS):
            cluster.advance(now_ms)
            if GROUP in cluster.groups:
                yield cluster.observe(GROUP)

    return observations


def known_session() -> EvaluationSession:
    session = EvaluationSession(Policies())
    session.assume_known("main", GROUP, 0, WEEK_MS)
    return session


def statuses(messages: list[Recommendation]) -> list[Status]:
    return [message.status for message in messages]


@pytest.mark.slow
def test_an_overloaded_member_is_published_once_and_stays_open(ticks: Callable[[], Observed]) -> None:
    session, messages = known_session(), list[Recommendation]()
    for observation in ticks():
        messages += session.evaluate(observation, lambda seen: seen)
    assert statuses(messages)[0] is Status.OPEN
    assert statuses(messages).count(Status.OPEN) == 1
    assert session.published[KEY] == messages[-1]
    assert session.suppressed_by[KEY] is None


@pytest.mark.slow
def test_step_by_step_gives_the_same_messages_as_all_at_once(ticks: Callable[[], Observed]) -> None:
    whole, stepwise = known_session(), known_session()
    at_once, by_steps = list[Recommendation](), list[Recommendation]()
    for observation in ticks():
        at_once += whole.evaluate_all([observation], lambda seen: seen)
        judgement = stepwise.judge(observation)
        by_steps += judgement.messages
        candidates = [judgement.candidate] if judgement.candidate else []
        stepwise.correlate("main", candidates, Population(1), observation.now)
        for candidate in candidates:
            by_steps += stepwise.confirm(candidate, observation).messages
    assert by_steps
    assert list(map(to_bytes, at_once)) == list(map(to_bytes, by_steps))


def test_a_candidate_is_dropped_for_the_reason_that_the_coordinator_gave(
    ticks: Callable[[], Observed],
) -> None:
    session = known_session()
    asked = 0

    def refuse(seen: Observation) -> str:
        nonlocal asked
        asked += 1
        return "assignment_changed"

    messages = [m for observation in ticks() for m in session.evaluate(observation, refuse)]
    assert messages == []
    assert asked > 0
    assert session.dropped == {"assignment_changed": asked}


def test_a_tick_that_comes_twice_changes_nothing(ticks: Callable[[], Observed]) -> None:
    session = known_session()
    for observation in ticks():
        first = session.evaluate(observation, lambda seen: seen)
        state = session.states[KEY]
        if first:
            break
    assert session.evaluate(observation, lambda seen: seen) == ()
    assert session.states[KEY] == state


@pytest.mark.slow
def test_a_session_made_from_the_states_of_another_carries_on(ticks: Callable[[], Observed]) -> None:
    session, messages = known_session(), list[Recommendation]()
    for observation in ticks():
        messages += session.evaluate(observation, lambda seen: seen)
        session = EvaluationSession(Policies(), dict(session.states))
    assert statuses(messages).count(Status.OPEN) == 1


def test_each_group_is_judged_by_its_own_policy(ticks: Callable[[], Observed]) -> None:
    patient = make_policy({"min_behind": 1e6})
    session = EvaluationSession(lambda group: patient if group == GROUP else make_policy({}))
    session.assume_known("main", GROUP, 0, WEEK_MS)
    assert [m for observation in ticks() for m in session.evaluate(observation, lambda seen: seen)] == []


@pytest.mark.parametrize(("groups", "common"), [(None, []), (60, ["topic"])])
@pytest.mark.slow
def test_groups_that_fall_behind_together_each_open_their_own_incident_under_a_common_one(
    captured: Callable[[str], Recording], groups: int | None, common: list[str]
) -> None:
    """Six readers of one topic; that all six are late is no evidence where there are no others."""
    record = captured("skew")
    cluster = RecordedCluster(record, lambda group: group == GROUP)
    session = EvaluationSession(Policies())
    names = {f"copy-{n}" for n in range(6)}
    for name in names:
        session.assume_known("main", name, 0, WEEK_MS)
    messages: list[Recommendation] = []
    for now_ms in range(record.start_ms + TICK_MS, record.end_ms, TICK_MS):
        cluster.advance(now_ms)
        if GROUP in cluster.groups:
            copies = [replace(cluster.observe(GROUP), group=name) for name in names]
            messages += session.evaluate_all(copies, lambda seen: seen, groups)
    opened = [m.group for m in messages if m.status is Status.OPEN and m.group in names]
    assert sorted(opened) == sorted(names)
    assert [m.scope for m in messages if m.group not in names] == common


@pytest.mark.slow
def test_a_group_first_seen_late_is_told_to_be_as_far_behind_as_its_log_ends_are_known_at_most() -> None:
    """It is late by 13 minutes, of which kagent saw four; by the inflow of now it would seem to be later than it is."""
    topic = {"partitions": 6, "inflow": 60, "spread": [8, 8, 1, 1, 1, 1], "cost": 0.03, "backlog": 27000}
    clients = {"family": "librdkafka"}
    made = parse(
        {"topics": {"t": topic}, "members": 3, "known_before": False, "hours": 0.2, "clients": clients}
    )
    (first, *_) = run(made, seed=1).messages

    told_s = max(member.seconds_behind or 0.0 for member in first.members)
    seen_s = (first.as_of - EPOCH) / 1000
    assert 200 < told_s < seen_s + 10
    assert f"is at least {span(told_s)} behind" in first.reason
