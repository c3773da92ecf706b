"""What arrives at members by topic, over the last five minutes and over longer ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kagent.detect.group_model import observe
from kagent.detect.peers import SPANS_MS
from kagent.detect.state import JudgeState
from kagent.lag.observation import Observation
from kagent.policy import Policy
from tests.fixtures.findings import CALM, FINE
from tests.fixtures.timeline import Timeline

Make = Callable[..., Any]


def test_each_members_inflow_is_told_by_topic_over_every_span(group: Make) -> None:
    made = group({"t": [FINE, FINE, CALM], "u": [CALM]}, {"m0": {"t": [0, 1]}, "m1": {"t": [2], "u": [0]}})
    found = made.look().inflow_by_topic

    assert found.shape == (len(SPANS_MS), 2, 2)
    assert found[0] == pytest.approx(np.array([[200.0, 0.0], [50.0, 50.0]]), rel=0.05)
    assert (found >= 0).all()


def test_five_minutes_that_ended_earlier_count_as_well() -> None:
    """What a peer that is on time got until three minutes ago, it has done."""
    world = Timeline([lambda second: 100.0 if second < 1020 else 50.0], {"m0": (0,)}, {"m0": 300.0})
    model = observe(judged_until(world, 1200), JudgeState(first_seen=0), Policy())

    assert model.inflow_by_topic[0, 0, 0] == pytest.approx(50, abs=5)
    assert model.inflow_by_topic[:, 0, 0].max() == pytest.approx(100, abs=1)
    assert model.inflow_by_topic[1:, 0, 0].min() > 60


def judged_until(world: Timeline, second: int) -> Observation:
    world.run(second)
    return world.observe()


def test_a_late_member_of_a_large_group_is_compared_with_all_its_peers_at_once(group: Make) -> None:
    """A group of hundreds of members has some late ones at each tick: each asks about all the others."""
    count = 300
    late = {"end": 10_000_000, "rate": 100, "lag": 100_000}
    held = {f"m{at}": {"t": [at]} for at in range(count)}
    made = group({"t": [late, *(count - 1) * [FINE]]}, held)
    model, found = made.looked(members=made.at_work({"m0": 60}, ["m0"], "slow_member"))

    assert found[0].evidence["peers"] == count - 1
    assert model.inflow_by_topic is model.inflow_by_topic
