"""Which lateness a swing of the inflow explains by chance."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.inflow_swings import DRAWS, deviation, rare_after_s
from kagent.lag.measure import Floats
from kagent.policy import Policy
from tests.fixtures.timeline import Rate, Timeline, judged

HELD = {"a": (0,), "b": (1,)}
BURST = 2400
"""Second from which more arrives than member a can process."""


def swinging(spread: float, then: float = 130.0) -> Callable[[int], float]:
    """An inflow of 70 records/s that swings by this share from minute to minute, and is ``then`` for good from BURST on."""
    random = Random(5)
    minutes = [70.0 * max(0.0, 1 + random.gauss(0, spread)) for _ in range(BURST // 60 + 1)]
    return lambda second: minutes[second // 60] if second < BURST else then


def reported_after_s(inflow: Rate, policy: Policy | None = None, speed: Rate = 100.0) -> float:
    """Seconds from BURST until the group is to be confirmed."""
    world = Timeline([inflow, 20.0], HELD, {"a": speed, "b": 100.0})
    looks = judged(world, BURST + 1500, policy=policy)
    return next(j.state.last_tick for j in looks if j.candidate) / 1000 - 1_700_000_000 - BURST


@pytest.mark.slow
def test_a_burst_that_the_inflow_never_showed_is_reported_at_once_and_one_like_its_swings_later() -> None:
    steady, restless = reported_after_s(swinging(0.02)), reported_after_s(swinging(0.3))

    assert steady < 400
    assert steady + 60 < restless < 1000


@pytest.mark.slow
def test_what_arrived_while_a_member_was_falling_behind_is_no_swing_of_the_usual() -> None:
    # At 115 % of its speed it is on time for minutes, and these are no part of what usually arrives.
    assert reported_after_s(swinging(0.1, then=115.0)) < 800


@pytest.mark.slow
def test_a_policy_that_asks_for_twice_the_evidence_excuses_swings_twice_as_long() -> None:
    usual, sure = (reported_after_s(swinging(0.3), Policy(evidence=e)) for e in (1.0, 2.0))

    assert sure > usual + 300


@pytest.mark.slow
def test_with_twice_the_evidence_the_same_swing_is_waited_for_twice_as_long() -> None:
    def waited_for_s(evidence: float) -> float:
        world = Timeline([swinging(0.3), 20.0], HELD, {"a": 100.0, "b": 100.0})
        looks = judged(world, BURST + 900, policy=Policy(evidence=evidence))
        return next(
            j.findings[0].needed_s for j in looks if j.suppressed_by == "swing" and j.state.last_tick >= at
        )

    at = 1_700_000_000_000 + (BURST + 600) * 1000

    assert waited_for_s(2.0) == pytest.approx(2 * waited_for_s(1.0), rel=0.001)


@pytest.mark.slow
def test_a_machine_that_slows_down_is_not_excused_by_the_swings_of_its_inflow() -> None:
    def speed(second: int) -> float:
        return 100.0 if second < BURST else 40.0

    steady, restless = (reported_after_s(swinging(spread, then=70.0), speed=speed) for spread in (0.0, 0.3))

    assert restless < steady + 120


@pytest.mark.slow
def test_what_is_waited_for_is_said() -> None:
    world = Timeline([swinging(0.3), 20.0], HELD, {"a": 100.0, "b": 100.0})
    waiting = [j for j in judged(world, BURST + 900) if j.suppressed_by == "swing"]

    (lead, *_) = waiting[0].findings
    assert 0 < lead.evidence_s < lead.needed_s < 900


@given(st.floats(-5, 8), st.floats(-5, 8))
def test_the_stranger_an_inflow_the_sooner_it_is_no_swing(one: float, other: float) -> None:
    less, more = sorted((one, other))

    assert rare_after_s(more, DRAWS) <= rare_after_s(less, DRAWS)
    assert rare_after_s(5.5, DRAWS) == 0


def lasting(minutes: int, random: np.random.Generator) -> Floats:
    """The mean of each of these minutes of an inflow of standard deviation 1 that lasts on for a minute with probability 1/e."""
    changes = random.exponential(60.0, 4 * minutes + 20).cumsum()
    level = random.standard_normal(len(changes))
    seconds = np.arange(60 * minutes)
    levels = level[np.searchsorted(changes, seconds, side="right")]
    return np.asarray(levels.reshape(minutes, 60).mean(axis=1), np.float64)


@pytest.mark.parametrize("partitions", [1, 3, 12])
def test_the_deviation_is_that_of_the_inflow_and_not_of_its_smoother_minutes(partitions: int) -> None:
    random = np.random.default_rng(11)
    draws = [sum(lasting(30, random) for _ in range(partitions)) / partitions**0.5 for _ in range(200)]
    found = [deviation(np.asarray(minutes)) for minutes in draws]

    assert 1 < np.median(found) < 1.3
    assert np.median([np.std(minutes) for minutes in draws]) < 0.85


@pytest.mark.parametrize("burst", [0.0, 300.0, 1e9])
def test_a_burst_of_three_minutes_does_not_pass_for_the_usual_swing(burst: float) -> None:
    rates = np.random.default_rng(3).normal(100, 10, 30)
    rates[:3] += burst

    assert 10 < deviation(rates) < 20


@pytest.mark.slow
def test_an_inflow_that_rises_for_half_an_hour_is_no_swing() -> None:
    """Records/s rise from 70 to 140 in 40 minutes, and pass what the member can process on the way."""
    noise = swinging(0.02, then=0.0)

    def rising(second: int) -> float:
        return noise(second % BURST) + max(0, second - BURST // 2) * 70 / 2400

    world = Timeline([rising, 20.0], HELD, {"a": 100.0, "b": 100.0})
    looks = judged(world, BURST + 1500)
    late = next(j.state.last_tick for j in looks if j.model and j.model.lateness.max() >= 60)
    told = next(j.state.last_tick for j in looks if j.candidate)

    assert (told - late) / 1000 < 180


@given(st.floats(-20, 20), st.integers(0, 99))
def test_a_steady_rise_changes_no_deviation(per_minute: float, seed: int) -> None:
    rates = np.random.default_rng(seed).normal(100, 10, 30)

    assert deviation(rates + per_minute * np.arange(30)) == pytest.approx(deviation(rates))
