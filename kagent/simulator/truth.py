"""What an onlooker who sees all would say: since when somebody is behind, and whether it has drained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kagent.simulator.world import Flags, World, ended

LATE_S = 60.0
CAUGHT_UP = 30.0
CALM_S = 120.0
"""An action has drained the group once no member was late for this time, after which an incident also resolves."""


@dataclass(slots=True)
class Truth:
    """One entry a seed, seconds after the onset. ``behind``: when a member was LATE_S behind for the first time;
    ``drained``: since when no member has been CAUGHT_UP behind."""

    behind: list[float | None]
    drained: list[float | None]
    acted: list[float | None]
    """When the first action was carried out, s, ``predicted``: what was promised, and ``calm``: since when no member is late."""
    predicted: list[float | None]
    calm: list[float | None]
    worst: list[float]
    late_at: list[list[float]]
    """The ticks at which a member was LATE_S behind, s."""

    @classmethod
    def begin(cls, seeds: int) -> Truth:
        """Of groups that nothing is known of."""

        def nothing() -> list[float | None]:
            return [None] * seeds

        return cls(
            nothing(), nothing(), nothing(), nothing(), nothing(), [0.0] * seeds, [[] for _ in range(seeds)]
        )

    def took(self, at: int) -> float | None:
        """Seconds from the action until no member was late, and none was for CALM_S afterwards."""
        acted, calm = self.acted[at], self.calm[at]
        return max(0.0, calm - acted) if acted is not None and calm is not None else None

    def was_late(self, at: int, time: float, tick_s: float) -> bool:
        """Whether a member was LATE_S behind at a time (s) and has been since the tick before."""
        return any(time - tick_s <= late <= time + tick_s for late in self.late_at[at])

    def look(self, world: World) -> None:
        """Note what is true now; only of sick groups, after the onset."""
        scenario = world.scenario
        if scenario.healthy or world.time < scenario.onset:
            return
        since = world.time - scenario.onset
        for at in np.flatnonzero(late(world, LATE_S)).tolist():
            self.behind[at] = since if self.behind[at] is None else self.behind[at]
            self.late_at[at].append(world.time)
        if any(acted is not None for acted in self.acted):
            self.note_calm(world.time, late(world, CAUGHT_UP).tolist())
        behind = ((world.end - world.position) / np.maximum(world.usual, 1.0)).max(axis=1)
        for at, is_late in enumerate((behind > CAUGHT_UP).tolist()):
            if is_late:
                self.drained[at] = None
            elif self.drained[at] is None:
                self.drained[at] = since

    def note_calm(self, now: float, late_now: list[bool]) -> None:
        """Note since when no member is late, in groups that acted."""
        for at, is_late in enumerate(late_now):
            calm = self.calm[at]
            # Once it has lasted, what the action was for is over: a burst an hour later is none of it.
            if self.acted[at] is None or (calm is not None and now - calm >= CALM_S):
                continue
            self.calm[at] = None if is_late else now if calm is None else calm


def late(world: World, seconds: float) -> Flags:
    """Which groups have a member that has not done the work that was in its logs this long ago; or a partition that no member
    can read and that stands for so long."""
    ends = ended(world, seconds)
    for topic in world.topics:
        if topic.delay:
            here = slice(*world.span(topic.name))
            ends = ends.copy()
            ends[:, here] = ended(world, seconds + topic.delay)[:, here]
    # In seconds of work, so that members are compared by what they have to do; records that cost nothing count a little.
    undone = (ends - world.position) * np.where(world.cost > 0, world.cost, 1e-9)
    count = len(world.slots) + 1
    place = np.arange(world.seeds)[:, None] * count + world.owner + 1
    work = np.bincount(place.ravel(), undone.ravel(), world.seeds * count).reshape(world.seeds, count)
    stands = (ends > world.position + 1) & (world.held | np.isfinite(world.lso))
    return np.asarray((work > 1e-6).any(axis=1) | stands.any(axis=1))


def lateness(world: World) -> list[float]:
    """How late the latest member of each group is, in seconds; as far back as the world remembers."""
    low, high = np.zeros(world.seeds), np.full(world.seeds, world.memory_s)
    # Bisection: 14 halvings find the lateness of a day to 5 s.
    for _ in range(14):
        middle = (low + high) / 2
        is_late = np.array([late(world, float(m))[at] for at, m in enumerate(middle)])
        low, high = np.where(is_late, middle, low), np.where(is_late, high, middle)
    return [float(v) for v in low]
