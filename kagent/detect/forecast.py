"""One forecast for today's assignment, every option and every plan: how long until the last member has caught up.

    T = backlog ÷ (capacity − inflow), per member; infinite where more arrives than it can do

The best assignment is found by the reduction of the planner: for a target T, a partition has the size backlog + T·inflow
and a member room for T·capacity.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from kagent.detect.commit_gaps import LONGEST_GAP_S
from kagent.detect.evidence import LatenessLimits
from kagent.lag.measure import Flags, Floats
from kagent.policy import Policy

Codes = npt.NDArray[np.int32]
LONGEST_S = LONGEST_GAP_S
"""The longest time to catch up that counts as help, whatever the policy: an hour."""
LONGEST_PER_LATE = LONGEST_S / LatenessLimits.of(Policy()).draining_need
"""The same in times of the lateness (20): an hour for a member that is three minutes late, when such a verdict usually opens. With a fixed
one, the verdict of a group that is left alone would change as its backlog grows, although the same action would still help."""


def drain_s(backlog: Floats, inflow: Floats, capacity: Floats) -> Floats:
    """Seconds until caught up per member; inf where it never is, 0 where nothing waits."""
    left = capacity - inflow
    with np.errstate(divide="ignore", invalid="ignore"):
        # np.where computes both branches: the inner one keeps a divisor of zero out of the outer one's.
        drains = np.where(left > 1e-9, backlog / np.where(left > 1e-9, left, 1.0), np.inf)
    return np.where(backlog <= 0, 0.0, drains)


@dataclass(frozen=True, slots=True)
class Placement:
    """What can be moved: sizes and homes of units, and who may hold them ([unit, member]; None: anybody)."""

    backlog: Floats
    inflow: Floats
    home: Codes
    eligible: Flags | None = None


def longest_s(lateness: float) -> float:
    """The longest remedy that counts as one, for a member that is so late (V, s)."""
    return max(LONGEST_S, LONGEST_PER_LATE * lateness)


def best_drain_s(units: Placement, capacity: Floats, longest: float = LONGEST_S) -> float:
    """The least T that "largest first into the emptiest, ties stay at home" finds; inf above ``longest``, s."""
    if not len(capacity) or not len(units.home):
        return 0.0
    # A group that is too small ends here, after one filling instead of a bisection.
    if not _fits(units, capacity, longest):
        return float("inf")
    # "Largest first" is a heuristic: that it fits at T proves T possible, that it does not fit proves nothing. So the answer is
    # an assignment that exists, and may be a little later than the best one.
    low, high = 0, ceil(longest)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(units, capacity, middle) else (middle, high)
    return float(high)


def _fits(units: Placement, capacity: Floats, target: float) -> bool:
    size = units.backlog + target * units.inflow
    room = (target * capacity).tolist()
    order = np.argsort(-size, kind="stable").tolist()
    if units.eligible is None:
        return _fill(size.tolist(), order, units.home.tolist(), room)
    return _fill_eligible(size.tolist(), order, units.home.tolist(), room, units.eligible)


def _fill(size: Sequence[float], order: Sequence[int], home: Sequence[int], room: list[float]) -> bool:
    heap = [(-left, at) for at, left in enumerate(room)]
    heapq.heapify(heap)
    for unit in order:
        # `order` is by falling size, so all that follow are empty too.
        if size[unit] <= 0:
            break
        # heapq cannot change an entry in place: https://docs.python.org/3/library/heapq.html#priority-queue-implementation-notes
        while -heap[0][0] != room[heap[0][1]]:  # an entry from before its member got more
            heapq.heappop(heap)
        at = heap[0][1]
        # Ties stay at home: no partition moves for nothing.
        if home[unit] >= 0 and room[home[unit]] >= room[at]:
            at = home[unit]
        # A sum of floats may exceed what it fills exactly by a rounding error.
        if room[at] < size[unit] - 1e-6:
            return False
        room[at] -= size[unit]
        heapq.heappush(heap, (-room[at], at))
    return True


def _fill_eligible(
    size: Sequence[float], order: Sequence[int], home: Sequence[int], room: list[float], eligible: Flags
) -> bool:
    left = np.array(room)
    for unit in order:
        if size[unit] <= 0:
            break
        may = eligible[unit]
        # No heap here: which member is the emptiest depends on who subscribes to the unit's topics.
        at = int(np.argmax(np.where(may, left, -np.inf)))
        if home[unit] >= 0 and may[home[unit]] and left[home[unit]] >= left[at]:
            at = home[unit]
        if not may[at] or left[at] < size[unit] - 1e-6:
            return False
        left[at] -= size[unit]
    return True
