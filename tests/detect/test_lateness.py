"""V: how long ago the log ends of a member's partitions, summed, were where its commits are now."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.detect.group_model import observe
from kagent.detect.observed_columns import gap_s
from kagent.detect.state import JudgeState, MemberState
from kagent.policy import Policy
from tests.fixtures.findings import FINE, FOUR, LATE
from tests.fixtures.timeline import Rate, Timeline

KNOWN = JudgeState(first_seen=0)


def test_a_member_that_reads_five_minutes_behind_is_five_minutes_late() -> None:
    world = Timeline([100.0, 20.0], {"m0": (0, 1)}, {"m0": lambda s: 0.0 if s <= 300 else 120.0})
    world.run(1200)

    assert observe(world.observe(), KNOWN, Policy()).lateness[0] == pytest.approx(300, abs=8)


@pytest.mark.parametrize("seconds", range(1200, 1230, 3))
def test_a_burst_of_now_makes_nobody_less_late_that_reads_minutes_behind(seconds: int) -> None:
    """What came between the last sample and the commit is not taken for read: at ten times the inflow it would be fifty seconds' worth."""
    inflow: list[Rate] = [lambda s: 20.0 if s <= 1190 else 200.0, 20.0]
    world = Timeline(inflow, {"m0": (0, 1)}, {"m0": lambda s: 0.0 if s <= 300 else 40.0}, order="even")
    world.run(seconds)

    assert observe(world.observe(), KNOWN, Policy()).lateness_at_commit[0] == pytest.approx(300, abs=2)


def test_a_burst_is_as_old_as_it_is_not_as_long_as_it_would_take_at_the_usual_rate() -> None:
    """60,000 records came at once a minute ago; at 20 records/s they would be fifty minutes."""
    world = Timeline([lambda s: 60_000.0 if s == 840 else 20.0], {"m0": (0,)}, {"m0": 100.0})
    world.run(900)
    found = observe(world.observe(), KNOWN, Policy())

    assert 50 <= found.lateness[0] <= 75


def test_beyond_the_history_the_rest_counts_at_its_inflow(group: Any) -> None:
    deep = {**LATE, "lag": 720_000}  # two hours at 100 records/s; one hour is known
    model = group({"t": [deep, deep, *6 * [FINE]]}, FOUR).look()

    assert model.lateness[0] == pytest.approx(7200, rel=0.02)


def test_members_that_are_up_to_date_are_on_time_whatever_their_inflow(group: Any) -> None:
    parts = [{**FINE, "rate": rate, "age": age} for rate, age in [(1, 1), (2000, 9)] * 4]
    model = group({"t": parts}, FOUR).look()

    assert model.lateness.max() < 15
    assert model.skew == 1.0


def test_the_gap_is_the_members_own_median_once_three_are_known() -> None:
    assert gap_s(MemberState(gaps=(1000, 9000, 2000)), 5000) == 2
    assert gap_s(MemberState(gaps=(1000, 9000)), 5000) == 5
    assert gap_s(None, 5000) == 5
