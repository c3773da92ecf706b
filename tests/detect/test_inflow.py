"""The inflow of five minutes: a burst that is over pulls it down at once, one that has just begun does not pull it up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kagent.detect import inflow
from kagent.detect.observed_columns import ObservedColumns, columns_of
from kagent.detect.start_position import located
from kagent.detect.state import JudgeState
from kagent.policy import Policy
from tests.fixtures.timeline import Timeline, judged


def seen_in(world: Timeline) -> ObservedColumns:
    seen, policy = world.observe(), Policy()
    lags, state = located(seen, JudgeState(first_seen=0), policy)
    return columns_of(lags, seen, state, policy)


def rates(rate: Callable[[int], float]) -> inflow.Interval:
    world = Timeline([rate, 10.0], {"m0": (0, 1)}, {"m0": 1000.0})
    world.run(900)
    columns = seen_in(world)
    summed = inflow.summed(columns.rates, columns.owner, 1, np.ones(2))
    return inflow.estimate(summed)


def test_the_inflow_of_a_member_is_that_of_its_partitions_together() -> None:
    found = rates(lambda second: 100.0)

    assert [float(c[0]) for c in (found.low, found.mid, found.high)] == pytest.approx(
        [110, 110, 110], rel=0.02
    )


def test_a_burst_that_ended_a_minute_ago_pulls_the_low_end_down() -> None:
    found = rates(lambda second: 500.0 if 500 < second <= 830 else 50.0)

    assert found.low[0] == pytest.approx(60, rel=0.15)
    assert found.mid[0] == pytest.approx(510, rel=0.15)


def test_a_burst_that_has_just_begun_does_not_raise_the_likeliest_value() -> None:
    found = rates(lambda second: 500.0 if second > 840 else 50.0)

    assert found.mid[0] == pytest.approx(60, rel=0.15)
    assert found.high[0] > 300


def test_a_short_history_gives_no_rate() -> None:
    world = Timeline([100.0], {"m0": (0,)}, {"m0": 1000.0})
    world.run(5)
    assert seen_in(world).rates.max() == 0


@pytest.mark.slow
def test_a_load_that_is_over_is_expected_no_more_however_long_it_made_late() -> None:
    def over(second: int) -> float:
        return 10.0 if second < 600 else 65.0 if second < 2700 else 25.0

    held = {"m0": (0, 1), "m1": (2, 3)}
    looks = judged(Timeline([over] * 4, held, dict.fromkeys(held, 100.0), order="even"), 3600)
    (before, after) = (looks[second // 10 - 1].model for second in (2700, 3060))

    assert before is not None
    assert after is not None
    assert before.inflow.mid == pytest.approx([130, 130], rel=0.02)
    # Six minutes later, and still late by all that came in 35.
    assert after.lateness.min() > 300
    assert after.inflow.mid == pytest.approx([50, 50], rel=0.02)
