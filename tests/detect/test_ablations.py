"""Each part of the judgement earns its place: without it, a group is told something that is not true, or nothing.

The study over many worlds is `benchmarks/quiet.py`; here is one world for each part, with it and without it: the lines of the table and
what must be more than a swing. What is measured, what is evidence, and what stands, each has a file of its own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.detect import decision, inflow_swings
from kagent.detect.detectors import hot_partition, skew, slow_member
from kagent.detect.late_member import Line
from tests.fixtures.timeline import Rate, Timeline, judged, told

PROVEN, PAUSE_IS_OVER, _, BARELY, PERHAPS = slow_member.LINES
HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


def world(inflow: list[Rate], speed: dict[str, Rate]) -> Timeline:
    return Timeline(inflow, HELD, speed)


def one_slow() -> Timeline:
    return world([50.0] * 6, {"m0": 80.0, "m1": 200.0, "m2": 200.0})


def one_barely_slow() -> Timeline:
    return world([50.0] * 6, {"m0": 93.0, "m1": 200.0, "m2": 200.0})


def one_hot() -> Timeline:
    return world([260.0, 20, 20, 20, 20, 20], dict.fromkeys(HELD, 200.0))


def one_paused() -> Timeline:
    def pauses(second: int) -> float:
        return 0.0 if 600 < second <= 800 else 115.0

    return world([50.0] * 6, {"m0": pauses, "m1": 115.0, "m2": 115.0})


def two_at_94_percent() -> Timeline:
    return Timeline([94.0, 94, 5, 5], {"m0": (0, 1), "m1": (2, 3)}, {"m0": 100.0, "m1": 100.0})


@pytest.mark.parametrize(
    ("made", "lines", "right", "wrong"),
    [
        (one_slow, (PROVEN, BARELY, PERHAPS), "slow_member", "under_provisioned"),
        (one_barely_slow, (PERHAPS,), None, "under_provisioned"),
        (one_hot, (hot_partition.LINES[0],), "hot_partition", "under_provisioned"),
        (one_paused, (PAUSE_IS_OVER,), None, "rebalance"),
        (two_at_94_percent, (skew.LINES[1],), "rebalance", "under_provisioned"),
    ],
    ids=["peers", "peers perhaps", "a hot partition", "a pause", "the optimist's ends"],
)
def test_without_a_line_of_the_table_a_group_is_told_what_is_not_true(
    made: Callable[[], Timeline], lines: tuple[Line, ...], right: str | None, wrong: str, monkeypatch: Any
) -> None:
    assert told(made())[:1] == ([right] if right else [])

    monkeypatch.setattr(decision, "LINES", tuple(one for one in decision.LINES if one not in lines))
    assert told(made())[:1] == [wrong]


@pytest.mark.slow
def test_without_the_swings_of_the_inflow_minutes_that_end_by_themselves_are_told(monkeypatch: Any) -> None:
    # A member at 75 % whose inflow swings by a third, and six minutes in which three quarters as much again arrives.
    swings = [1.0, 1.5, 0.6, 1.3, 0.8, 0.5, 1.4, 0.7, 1.2, 1.0]

    def restless(second: int) -> float:
        return 130.0 if 2400 <= second < 2760 else 75.0 * swings[second // 120 % len(swings)]

    def made() -> Timeline:
        return Timeline(
            [restless, 10.0, 10.0], {"m0": (0,), "m1": (1, 2)}, dict.fromkeys(("m0", "m1"), 100.0)
        )

    assert told(made(), 3600) == []

    monkeypatch.setattr(inflow_swings, "explanation", lambda member: None)
    assert told(made(), 3600) != []


def for_three_minutes(second: int) -> float:
    return 50.0 if 1500 < second <= 1680 else 200.0


def for_good(second: int) -> float:
    return 50.0 if second > 1500 else 200.0


SLOW_TOGETHER = ("m0", "m1", "m2"), "under_provisioned"
SLOW_ALONE = ("m0",), "slow_member"


@pytest.mark.slow
@pytest.mark.parametrize(("who", "verdict"), [SLOW_TOGETHER, SLOW_ALONE], ids=["all", "one"])
def test_without_what_they_did_before_members_that_are_slow_for_minutes_are_told(
    who: tuple[str, ...], verdict: str, monkeypatch: Any
) -> None:
    def made() -> Timeline:
        return world([70.0] * 6, {**dict.fromkeys(HELD, 200.0), **dict.fromkeys(who, for_three_minutes)})

    assert told(made(), 2400) == []

    monkeypatch.setattr(decision, "_slowed_down", lambda member: False)
    assert told(made(), 2400) == [verdict]


@pytest.mark.slow
@pytest.mark.parametrize(("who", "verdict"), [SLOW_TOGETHER, SLOW_ALONE], ids=["all", "one"])
def test_members_that_stay_slow_are_told_after_three_times_the_evidence(
    who: tuple[str, ...], verdict: str
) -> None:
    speeds: dict[str, Rate] = {**dict.fromkeys(HELD, 200.0), **dict.fromkeys(who, for_good)}
    first = next(one for one in judged(world([70.0] * 6, speeds), 2400) if one.candidate)

    assert first.verdict == verdict
    assert first.findings[0].needed_s == 180
    assert first.findings[0].evidence_s == pytest.approx(180, abs=15)


@pytest.mark.slow
def test_a_backlog_that_came_at_once_is_nothing_that_a_member_did_before() -> None:
    def jumps(second: int) -> float:
        return 12_000.0 if second == 1500 else 6.0

    looks = judged(world([jumps, jumps, 6.0, 6.0, 6.0, 6.0], dict.fromkeys(HELD, 33.0)), 1800)
    first = next(one for one in looks if one.candidate)

    assert first.verdict == "rebalance"
    assert first.findings[0].needed_s == 60
