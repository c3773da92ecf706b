"""A topic that no member reads while the group goes on with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kagent.contract.recommendation import Action, ActionType
from kagent.detect.detectors import stalled_partition
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Habit
from kagent.recommend.actions import actions
from kagent.recommend.advice import Advice
from kagent.recommend.alternatives import alternatives_of
from kagent.recommend.member_counts import counts
from kagent.recommend.reassignment import reassign
from kagent.simulator import load, run
from tests.fixtures.findings import FINE, STANDS, leading
from tests.fixtures.group_builder import NOW

Make = Callable[..., Any]
SCENARIOS = Path(__file__).parents[2] / "benchmarks/scenarios"
TOPICS = {"t": 4 * [STANDS], "u": [FINE, FINE]}
MEMBERS = {"m0": {"t": [0, 1], "u": [0]}, "m1": {"t": [2, 3], "u": [1]}}


def rested(
    group: Make, rest_s: float, going_s: float, habit_s: float = 0.0
) -> tuple[GroupModel, tuple[Finding, ...]]:
    """A topic that has rested for so long, of a group that went on for ``going_s`` before."""
    made = group(TOPICS, MEMBERS)
    clocks = {key: replace(c, topic_rest_s=rest_s) for key, c in made.look().state.standing.items()}
    going = NOW - round(1000 * (rest_s + going_s))
    habits = {"topic_rest": Habit(habit_s, NOW - 3_600_000)}
    model, found = made.looked(standing=clocks, going_since=going, habits=habits)
    return model, found


@pytest.mark.parametrize(
    ("rest_s", "going_s", "habit_s", "verdict"),
    [
        (5350, 3_600, 0, "balanced"),
        (5450, 3_600, 0, "stalled"),
        (880, 20_000, 0, "balanced"),
        (950, 20_000, 0, "stalled"),
        (1700, 20_000, 1_200, "balanced"),
        (1900, 20_000, 1_200, "stalled"),
    ],
)
def test_a_topic_may_rest_for_longer_the_less_is_known_of_its_rests(
    group: Make, rest_s: float, going_s: float, habit_s: float, verdict: str
) -> None:
    assert leading(rested(group, rest_s, going_s, habit_s)[1]) == verdict


def test_no_record_is_blamed_for_it_and_all_its_partitions_are_named(group: Make) -> None:
    model, found = rested(group, 6000, 3600)
    planned = reassign(model)
    done: list[Action] = actions(
        Advice(model, found[0], planned, alternatives_of(model, planned), counts(model))
    )

    assert found[0].evidence["partitions"] == [["t", n] for n in range(4)]
    assert "No partition of t has moved for 100 min" in stalled_partition.reason(model, found[0])
    assert done[0].type is ActionType.RESTART_MEMBER
    assert ActionType.SKIP_OR_FIX_RECORD not in {a.type for a in done}


@pytest.mark.slow
def test_a_topic_that_nobody_reads_any_more_is_reported() -> None:
    report = run(load(SCENARIOS / "sick/topic-no-member-reads.yaml", True), 7)

    assert [opening.verdicts for opening in report.openings] == [("stalled",)]
