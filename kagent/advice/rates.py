"""How fast a group works: cost of a record per topic, speed per member, learned only while a backlog kept them busy.

What a caught-up member consumes is its inflow and says nothing of what it could do. So an interval between two commits
counts only if the member had a backlog at both ends. In it the member was busy all the time:

    seconds × speed(member) = Σ over topics of records × cost(topic)

From the intervals of all members the costs are fitted by least absolute deviations (speed 1 is the usual one), then each
member's speed follows, shrunk towards 1 while few intervals stand behind it. Unknown until known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAST = 3
"""Intervals that must stand behind a cost or a speed."""
WINDOW = 12
"""Older intervals fade once there are so many."""
SHRINK = 2.0
MIN_INTERVAL = 10.0
SETTLED = 1e-4
CONDITION = 50.0
"""Members whose mixes of topics differ less than this cannot tell the topics' costs apart."""


@dataclass(frozen=True, slots=True)
class Busy:
    """What one member did while it was busy: seconds, number of intervals, records by topic."""

    seconds: float = 0.0
    intervals: float = 0.0
    records: Mapping[str, float] = field(default_factory=dict)

    def add(self, seconds: float, records: Mapping[str, float]) -> Busy:
        """With one more interval; older ones fade."""
        fade = 1.0 if self.intervals < WINDOW else 1.0 - 1.0 / WINDOW
        topics = {*self.records, *records}
        return Busy(
            self.seconds * fade + seconds,
            self.intervals * fade + 1,
            {t: round(self.records.get(t, 0.0) * fade + records.get(t, 0.0), 3) for t in sorted(topics)},
        )

    def to_row(self) -> list[Any]:
        return [round(self.seconds, 3), round(self.intervals, 3), dict(self.records)]


@dataclass(frozen=True, slots=True)
class Known:
    """A learned value and the number of intervals behind it."""

    value: float
    intervals: int


@dataclass(frozen=True, slots=True)
class Rates:
    """``cost``: seconds a record by topic; ``speed``: by member name, 1 is usual, less is slower."""

    cost: Mapping[str, Known] = field(default_factory=dict)
    speed: Mapping[str, Known] = field(default_factory=dict)

    def costs(self, topics: Sequence[str]) -> Floats | None:
        """Seconds a record of each of these topics, or None if one of them is unknown."""
        if any(t not in self.cost for t in topics):
            return None
        return np.array([self.cost[t].value for t in topics])

    def speeds(self, names: Sequence[str]) -> Floats:
        """Speed of each of these members, shrunk towards 1; 1 where nothing is known."""
        return np.array([self._shrunk(self.speed.get(name)) for name in names])

    @staticmethod
    def _shrunk(known: Known | None) -> float:
        if known is None:
            return 1.0
        return (known.value * known.intervals + SHRINK) / (known.intervals + SHRINK)


def fit(busy: Mapping[str, Busy]) -> Rates:
    """Costs and speeds from what the members did while busy."""
    if not busy:
        return Rates()
    key = [(n, b.seconds, b.intervals, tuple(sorted(b.records.items()))) for n, b in sorted(busy.items())]
    return _fit(tuple(key))


@lru_cache(maxsize=4096)
def _fit(known: tuple[tuple[str, float, float, tuple[tuple[str, float], ...]], ...]) -> Rates:
    """A group learns once in several looks, and asks at every one."""
    busy = {name: Busy(seconds, intervals, dict(records)) for name, seconds, intervals, records in known}
    members = [name for name in sorted(busy) if busy[name].seconds > 0 and any(busy[name].records.values())]
    topics = sorted({t for name in members for t, n in busy[name].records.items() if n > 0})
    if not members:
        return Rates()
    per_second = np.array([[busy[n].records.get(t, 0.0) / busy[n].seconds for t in topics] for n in members])
    costs = _least_absolute(per_second)
    cost = {
        t: Known(float(costs[i]), _behind(busy, t))
        for i, t in enumerate(topics)
        if costs is not None and costs[i] > 0 and _behind(busy, t) >= LEAST
    }
    speed = {}
    if costs is not None and len(members) > 1:
        speeds = per_second @ costs
        speed = {
            name: Known(float(speeds[at]), int(busy[name].intervals))
            for at, name in enumerate(members)
            if busy[name].intervals >= LEAST
        }
    return Rates(cost, speed)


def _behind(busy: Mapping[str, Busy], topic: str) -> int:
    return int(sum(b.intervals for b in busy.values() if b.records.get(topic, 0.0) > 0))


def _least_absolute(rows: Floats) -> Floats | None:
    """Costs c ≥ 0 with rows · c ≈ 1, few large misses rather than many small; None if the rows cannot tell them apart."""
    if rows.shape[1] == 1:
        return np.array([1.0 / float(np.median(rows[:, 0]))])
    scale = rows.max(axis=0)
    if len(rows) < rows.shape[1] or np.linalg.cond(rows / scale) > CONDITION:
        return None
    weight, rows = np.ones(len(rows)), rows / scale
    costs = np.zeros(rows.shape[1])
    for _ in range(20):
        before, costs = costs, _nonnegative(rows * weight[:, None], weight)
        if np.abs(costs - before).max() <= SETTLED * costs.max():
            break
        weight = 1.0 / np.sqrt(np.maximum(np.abs(rows @ costs - 1.0), 0.02))
    return np.asarray(costs / scale)


def _nonnegative(a: Floats, b: Floats) -> Floats:
    """Least squares with no negative part: negative ones are set to 0 and the rest is solved again."""
    free = np.ones(a.shape[1], bool)
    out = np.zeros(a.shape[1])
    while free.any():
        part = a[:, free]
        try:
            solved = np.linalg.solve(part.T @ part, part.T @ b)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(part, b, rcond=None)[0]
        if (solved >= 0).all():
            out[free] = solved
            return out
        places = np.flatnonzero(free)
        free[places[solved < 0]] = False
    return out
