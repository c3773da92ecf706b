"""How simulated clients read and subscribe: fields of `clients:` have the effect that docs/judgement.md states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kagent.simulator.passing_time import begin, step
from kagent.simulator.scenario_file import parse
from kagent.simulator.world import World

SEEDS = (1, 2, 3)


def lived(seconds: int, **clients: Any) -> Iterator[World]:
    """Three members that get a fifth more than they can do of two topics: the world after every second."""
    topics = {name: {"partitions": 6, "inflow": 60, "cost": 0.03, "noise": 0.1} for name in ("a", "b")}
    scenario = parse({"topics": topics, "members": 3, "clients": {"family": "java", **clients}, "world": {}})
    world = begin(scenario, SEEDS)
    for _ in range(seconds):
        step(world, 1.0)
        yield world


def unread(world: World, topic: str) -> Any:
    """Records that wait in a topic, by seed."""
    here = slice(*world.span(topic))
    return np.floor(world.end - world.position)[:, here].sum(axis=1)


@pytest.mark.parametrize(("priority", "first"), [(["b"], "b"), (["a"], "a"), (["b", "a"], "b")])
def test_topics_of_priority_are_emptied_before_others_are_read(priority: list[str], first: str) -> None:
    *_, world = lived(300, priority=priority)
    other = "a" if first == "b" else "b"

    # 24 records a second are too much, for five minutes.
    assert (unread(world, first) < 300).all()
    assert (unread(world, other) > 5000).all()


def test_without_priority_topics_share_what_is_done() -> None:
    *_, world = lived(300)

    assert unread(world, "a") == pytest.approx(unread(world, "b"), rel=0.5)


def test_members_hold_partitions_of_the_topics_alone_that_they_subscribe_to() -> None:
    *_, world = lived(60, subscriptions={"m0": ["a"], "m1": ["b"]})
    holders = {
        topic: {world.slots[slot] for slot in world.owner[:, slice(*world.span(topic))].ravel().tolist()}
        for topic in ("a", "b")
    }

    assert holders == {"a": {"m0", "m2"}, "b": {"m1", "m2"}}
    assert (world.owner >= 0).all()
