"""Large groups: one pass over sorted columns instead of a search.

Every overloaded member releases as few units as any plan must take from it, of those the window of consecutive sizes
that frees least more than needed; all of them go, largest first, to the member with the most room left. Where no member
ends above the target the moves are proven fewest for it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from kagent.planner import bounds
from kagent.planner.canonical_problem import CLOSE, Case
from kagent.planner.problem import Codes, Flags, Numbers, summed

STEP = 0.01
"""How much lower each further pass aims when one missed its target."""
RETRIES = 3
NEAR = (0.002, 0.005, 0.01, 0.03)
"""How far above the bound the finest plan is looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """What one pass reached."""

    at: Codes
    moves: int
    bound: int
    """No plan under the same target has fewer moves."""
    greatest: float


def level(case: Case, target: float) -> Pass:
    """Brings the greatest down to the target, or as near above it as a few passes that aim lower come."""
    best = _pass(case, target)
    for at in range(1, RETRIES + 1):
        if best.greatest <= target * (1 + CLOSE):
            break
        other = _pass(case, target * (1 - STEP * at))  # aiming lower leaves room for what did not fit
        if other.greatest < best.greatest:
            best = Pass(other.at, other.moves, best.bound, other.greatest)
    return best


def finest(case: Case, bound: float) -> Pass:
    """As near the bound as a few passes come."""
    best = _pass(case, bound * (1 + NEAR[0]))
    for above in NEAR[1:]:
        if best.greatest <= bound * (1 + above):
            break
        other = _pass(case, bound * (1 + above))
        best = other if other.greatest < best.greatest else best
    return best


def _pass(case: Case, target: float) -> Pass:
    size, room = case.sizes(target)
    movable = (case.may.sum(axis=1) > 1)[case.kind]
    fewest = bounds.removals(size, room, case.home, movable)
    at = case.home.copy()
    at[_released(size, room, case.home, movable, fewest)] = -1
    # All that was released goes together, largest first: small units then fill what large ones left.
    placed = _placed(case, at, size, room)
    moves = int(((case.home >= 0) & (placed != case.home)).sum())
    return Pass(placed, moves, int(fewest.sum()), case.greatest(placed))


def _released(size: Numbers, room: Numbers, home: Codes, movable: Flags, fewest: Codes) -> Codes:
    """Per overloaded member the window of ``fewest`` consecutive sizes with the smallest sum that is enough."""
    units = np.flatnonzero((home >= 0) & movable & (size > 0))
    units = units[np.lexsort((-size[units], home[units]))]
    load = summed(home, size, len(room))
    start = np.searchsorted(home[units], np.arange(len(room) + 1))
    up_to = np.concatenate(([0.0], np.cumsum(size[units])))
    released = []
    for member in np.flatnonzero(fewest).tolist():
        first, end, count = int(start[member]), int(start[member + 1]), int(fewest[member])
        windows = up_to[first + count : end + 1] - up_to[first : end + 1 - count]
        # Windows grow lighter along the sizes, so the last that is enough frees least beyond what is needed.
        enough = np.flatnonzero(windows >= (load[member] - room[member]) * (1 - CLOSE))
        at = first + (int(enough[-1]) if len(enough) else 0)
        released.append(units[at : at + count])
    return np.concatenate(released) if released else np.zeros(0, np.int64)


def _placed(case: Case, at: Codes, size: Numbers, room: Numbers) -> Codes:
    """Places what is at -1, largest first, each with the eligible member that has most room left in proportion."""
    loads = summed(at, size, len(room)) / room
    loose = np.flatnonzero(at < 0)
    loose = loose[np.argsort(-size[loose], kind="stable")]
    kinds, kind = np.unique(case.kind[loose], return_inverse=True)
    if bool(case.may[kinds].all()):
        at[loose] = _heaped(loads, size[loose], room)
        return at
    filled = np.where(case.may[kinds], loads, np.inf)  # [kind, member]; inf stays inf whatever is added
    for unit, row, weight in zip(
        loose.tolist(), kind.reshape(-1).tolist(), size[loose].tolist(), strict=True
    ):
        member = filled[row].argmin()
        at[unit] = member
        filled[:, member] += weight / room[member]
    return at


def _heaped(load: Numbers, sizes: Numbers, room: Numbers) -> Codes:
    """The same where everybody may hold everything: a heap instead of a scan."""
    heap = [(filled, member) for member, filled in enumerate(load.tolist())]
    heapq.heapify(heap)
    rooms = room.tolist()
    to = []
    for size in sizes.tolist():
        filled, member = heap[0]
        heapq.heapreplace(heap, (filled + size / rooms[member], member))
        to.append(member)
    return np.array(to, np.int64)


def frontier(case: Case, now: float, lowest: float, points: int = 6) -> list[Pass]:
    """Passes at targets spaced geometrically from the present greatest down to the lowest asked for."""
    if not 0 < lowest < now < float("inf"):
        return []
    # Geometric: the first moves gain most, and even steps would bunch at the end where little changes.
    targets = now * (lowest / now) ** (np.arange(1, points + 1) / points)
    return [_pass(case, float(target)) for target in targets]
