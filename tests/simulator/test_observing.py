"""What kagent gets to see of a simulated world, and when: each field of `world:` has the effect that docs/judgement.md states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.simulator import observing
from kagent.simulator.observing import ObservedTables, ms
from kagent.simulator.passing_time import begin, step
from kagent.simulator.run import _ask, _observe, _watcher
from kagent.simulator.scenario_file import SimulatorScenario, parse
from kagent.simulator.world import World

SEEDS = (1, 2, 3)
CALM = {
    "samples_every_s": [5, 5],
    "samples_missing": 0,
    "sample_hole_every_s": 0,
    "clock_offset_s": 0,
    "gc_pause_every_s": 0,
}


def scenario(**world: Any) -> SimulatorScenario:
    """Two members at half of what they can do, in a world that is harsh in these ways alone."""
    topics = {"t": {"partitions": 4, "inflow": 40, "cost": 0.025}}
    return parse({"topics": topics, "members": 2, "clients": {"family": "aiokafka"}, "world": CALM | world})


def watched(made: SimulatorScenario, seconds: int = 600) -> tuple[World, ObservedTables]:
    """The world after so long, and what kagent has seen of it."""
    world = begin(made, SEEDS)
    observed = observing.begin(world, SEEDS)
    for _ in range(seconds):
        step(world, 1.0)
        observing.look(world, observed)
    return world, observed


def test_the_brokers_clock_differs_from_kagents_by_another_amount_for_each_seed() -> None:
    world, one_clock = watched(scenario())
    same, two_clocks = watched(scenario(clock_offset_s=2))
    ahead = two_clocks.table.time - one_clock.table.time

    assert (np.ptp(ahead, axis=1) == 0).all()
    assert len(set(ahead[:, 0].tolist())) == len(SEEDS)
    assert (np.abs(ahead) <= 2000).all()
    # Clocks change what is seen, not what happens.
    assert (same.committed == world.committed).all()
    assert (two_clocks.table.committed == one_clock.table.committed).all()


def test_that_share_of_the_samples_is_missing() -> None:
    # Older samples are thinned out.
    tables = [watched(scenario(samples_missing=share), 250)[1] for share in (0, 0.5)]
    all_, half = (observed.ends["t"].samples for observed in tables)

    assert all_ == 51
    assert half == pytest.approx(all_ / 2, rel=0.25)


def test_a_hole_is_a_longer_time_without_samples() -> None:
    _, whole = watched(scenario())
    _, observed = watched(scenario(sample_hole_every_s=200, sample_hole_s=40))
    holes = observed.ends["t"].gaps(30_000)

    assert whole.ends["t"].gaps(30_000) == []
    assert 1 <= len(holes) <= 6
    assert all(42_000 <= until - since <= 47_000 for since, until in holes)


def test_commits_are_seen_so_much_later() -> None:
    world, observed = watched(scenario(commits_seen_after_s=[20, 20]))

    assert observed.as_of == world.time - 20
    assert (observed.table.time <= ms(world.time - 20)).all()
    assert (observed.table.committed < world.committed).all()


def test_while_the_pipeline_pauses_nothing_is_delivered_and_kagent_is_blind_soon() -> None:
    made = scenario(commits_seen_after_s=[0, 0], pipeline_pause_every_s=200, pipeline_pause_s=30, fresh_s=10)
    world = begin(made, SEEDS)
    observed, blind = observing.begin(world, SEEDS), 0
    for _ in range(600):
        step(world, 1.0)
        observing.look(world, observed)
        blind += observed.blind(world.time, made.world.fresh_s) is not None

    assert 2 * 18 <= blind <= 3 * 20


def asked(made: SimulatorScenario) -> tuple[World, Observation, Observation]:
    """A world whose commits are seen twenty seconds later: what kagent has of one group, and what its coordinator answers."""
    world = begin(made, SEEDS)
    watcher = _watcher(world, SEEDS, Policy())
    for _ in range(60):
        step(world, 1.0)
        observing.look(world, watcher.observed)
    now = ms(world.time)
    seen = _observe(world, watcher, 1, now)
    return world, seen, _ask(world, seen, 1, now)


@pytest.mark.parametrize("newer", [True, False])
def test_the_coordinator_has_commits_that_the_tables_do_not_have_yet(newer: bool) -> None:
    made = scenario(commits_seen_after_s=[20, 20], newer_commits_at_confirmation=newer)
    world, seen, answer = asked(made)
    known, told = seen.commits["t"], answer.commits["t"]

    assert list(told.committed) == (world.committed[1].tolist() if newer else list(known.committed))
    assert list(known.committed) != world.committed[1].tolist()
    # The answer has no times of its own.
    assert set(told.time) == ({seen.now} if newer else set(known.time))
