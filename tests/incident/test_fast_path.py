"""Which groups a cheap look lets go, and what asks for a closer one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kagent.detect.state import JudgeState
from kagent.incident.evaluate import judge
from kagent.incident.fast_path import QUESTIONS, fast_path_healthy, has_open_questions
from kagent.lag.observation import Observation
from kagent.policy import Policy
from tests.fixtures.group_builder import NOW
from tests.fixtures.seen_members import T, after, seen
from tests.fixtures.timeline import Timeline, judged

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


def test_a_detector_is_asked_about_a_group_that_shows_its_sign_alone(monkeypatch: Any) -> None:
    world = Timeline([50.0] * 6, HELD, dict.fromkeys(HELD, 220.0))
    found = judged(world, 900)[-1]
    later = replace(world.observe(), now=world.now + 1)
    assert judge(later, found.state, Policy()).model is None

    def quiet_for_an_hour(seen: Observation, state: JudgeState, policy: Policy) -> int:
        return seen.now

    monkeypatch.setattr("kagent.incident.fast_path.QUESTIONS", (*QUESTIONS, quiet_for_an_hour))
    assert judge(later, found.state, Policy()).model is not None


def test_a_storm_of_which_few_changes_were_seen_is_no_healthy_group() -> None:
    few = after(("a",), ("a", "b"), ("a",), generations=(1, 2, 9))
    calm = after(("a",), ("a", "b"), ("a",), generations=(1, 2, 3))

    now = seen(T + 120_000, 9, "a")
    assert has_open_questions(now, few, Policy())
    assert not has_open_questions(now, calm, Policy())


def test_a_partition_without_a_commit_that_receives_records_is_looked_at(group: Callable[..., Any]) -> None:
    served = {"end": 50_000, "rate": 10, "lag": 0}
    grows, rests = (
        group({"t": [partition, served]}, {"m0": {"t": [0, 1]}}).observe()
        for partition in ({"end": 100_000, "rate": 10}, {"end": 100_000})
    )
    known = JudgeState(first_seen=NOW - 864_000_000, members_at=NOW, generation_at=NOW - 36_000_000)

    assert not fast_path_healthy(grows, known, Policy())
    assert fast_path_healthy(rests, known, Policy())
