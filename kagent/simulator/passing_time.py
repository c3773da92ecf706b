"""Begins a world and lets time pass in it: calls what happens to it, in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kagent.simulator import committing, rebalancing, service
from kagent.simulator.first_world import without_members
from kagent.simulator.scenario_file import SimulatorScenario
from kagent.simulator.world import World, arrive, disturb, weather


def begin(scenario: SimulatorScenario, seeds: Sequence[int]) -> World:
    """The world at its start: everybody caught up but for the scenario's backlog."""
    world = without_members(scenario, seeds)
    for name in range(scenario.members):
        for seed in range(world.seeds):
            rebalancing.enter(world, seed, f"m{name}")
    rebalancing.begin(world)
    weather(world, scenario.step)
    return world


def step(world: World, dt: float) -> None:
    """Let ``dt`` seconds pass: records arrive, members read what they can, and commit when it is time."""
    world.before = world.position
    disturb(world, dt)
    arrive(world, dt)
    rebalancing.autoscale(world)
    rebalancing.advance(world)
    busy = np.zeros((0, 0), bool)
    if not world.resting and world.slots:
        busy = service.read(world, dt)
    world.time += dt
    if not world.resting and world.slots:
        committing.by_timer(world, dt, busy)
