"""What an onlooker who sees all would say: since when somebody is behind, and whether it has drained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kagent.simulator.world import Flags, World, ended

LATE_S = 60.0
CAUGHT_UP = 30.0


@dataclass(slots=True)
class Truth:
    """One entry a seed, seconds after the onset. ``behind``: when a member was LATE_S behind for the first time;
    ``drained``: since when nobody has been CAUGHT_UP behind."""

    behind: list[float | None]
    drained: list[float | None]

    @classmethod
    def begin(cls, seeds: int) -> Truth:
        return cls([None] * seeds, [None] * seeds)

    def look(self, world: World) -> None:
        """Note what is true now; only of sick groups, after the onset."""
        scenario = world.scenario
        if scenario.healthy or world.time < scenario.onset:
            return
        since = world.time - scenario.onset
        for at in np.flatnonzero(late(world, LATE_S)).tolist():
            self.behind[at] = since if self.behind[at] is None else self.behind[at]
        behind = ((world.end - world.position) / np.maximum(world.usual, 1.0)).max(axis=1)
        for at, is_late in enumerate((behind > CAUGHT_UP).tolist()):
            if is_late:
                self.drained[at] = None
            elif self.drained[at] is None:
                self.drained[at] = since


def late(world: World, seconds: float) -> Flags:
    """Which groups have a member that has not done the work that was in its logs so long ago; or a partition that nobody
    can read and that stands for so long."""
    ends = ended(world, seconds)
    for topic in world.topics:
        if topic.delay:
            here = slice(*world.span(topic.name))
            ends = ends.copy()
            ends[:, here] = ended(world, seconds + topic.delay)[:, here]
    undone = (ends - world.position) * np.where(world.cost > 0, world.cost, 1e-9)
    count = len(world.slots) + 1
    place = np.arange(world.seeds)[:, None] * count + world.owner + 1
    work = np.bincount(place.ravel(), undone.ravel(), world.seeds * count).reshape(world.seeds, count)
    stands = (ends > world.position + 1) & (world.held | np.isfinite(world.lso))
    return np.asarray((work > 1e-6).any(axis=1) | stands.any(axis=1))
