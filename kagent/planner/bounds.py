"""Lower bounds, each with its proof in a line. No assignment whatever gets below them.

* largest unit: somebody has to hold it.
* member set: units that only members of a set may hold are the set's to carry, all of them. Over all sets this is
  the optimum if units could be cut (min cut = max flow).
* pigeonhole: at a target T a member holds at most as many of the k largest units as fit of the smallest of them;
  where that is fewer than k in all, T is too low.
"""

from __future__ import annotations

import numpy as np

from kagent.planner.canonical_problem import CLOSE, Case
from kagent.planner.problem import Codes, Flags, Numbers, summed

ROUNDS = 40
"""Rounds of levelling before a set bound is taken as it is; ten are usually enough."""


def lower_bound(case: Case, rounds: int = ROUNDS) -> float:
    """No assignment has a smaller greatest value; inf where no assignment ever drains."""
    if not len(case) or not len(case.speed):
        return 0.0
    bound = max(largest(case), member_sets(case, rounds))
    if bound < float("inf") and not case.draining:
        bound = max(bound, pigeonhole(case))
        # Whole records on members of speed 1 sum up to whole numbers, so a fractional bound may be rounded up; the slack keeps
        # 3.0000000001 from becoming 4.
        if np.array_equal(case.work, np.rint(case.work)) and bool((case.speed == 1.0).all()):
            bound = float(np.ceil(bound * (1 - CLOSE) ** 2))
    return bound


def largest(case: Case) -> float:
    """The largest unit on the best member that may hold it."""
    alone = np.full(len(case), np.inf)
    for kind in np.unique(case.kind):
        units = case.kind == kind
        best = float(case.speed[case.may[kind]].max())
        left = best - case.inflow[units]
        alone[units] = np.where(left > CLOSE * best, case.work[units] / np.where(left > 0, left, 1.0), np.inf)
    return float(alone.max())


def member_sets(case: Case, rounds: int = ROUNDS) -> float:
    """The greatest bound over sets of members, found by levelling the work as if it could be cut."""
    kinds = len(case.may)
    work = summed(case.kind, case.work, kinds)
    inflow = summed(case.kind, case.inflow, kinds)
    used = np.bincount(case.kind, minlength=kinds) > 0
    may, work, inflow = case.may[used], work[used], inflow[used]
    reach = may.any(axis=0)
    bound = _ratio(work.sum(), case.speed[reach].sum() - inflow.sum(), case.speed.sum())
    # Everybody may hold everything: then the only set that bounds is all of them.
    if bool((may == reach).all()):
        return bound
    # With inflow, sizes depend on the target, which is the bound itself: a few rounds bring them close, each bound being valid.
    for _ in range(3 if case.draining else 1):
        if bound == float("inf"):
            break
        sizes = work + (bound * inflow if case.draining else 0.0)
        bound, settled = _levelled(may, sizes, work, inflow, case.speed, bound, rounds)
        if settled:
            break
    return bound


def _levelled(
    may: Flags, sizes: Numbers, work: Numbers, inflow: Numbers, speed: Numbers, bound: float, rounds: int
) -> tuple[float, bool]:
    """Pours each kind over its members up to one level, in turn; after each round the fullest members are a set."""
    poured = np.zeros(may.shape)
    load = np.zeros(len(speed))
    for _ in range(rounds):
        for kind in range(len(may)):
            # Coordinate descent on the fractional problem. It need not converge: each set that it proposes gives a valid bound.
            load -= poured[kind]
            poured[kind] = _pour(load, speed, may[kind], float(sizes[kind]))
            load += poured[kind]
        bound = max(bound, _fullest_sets(may, work, inflow, speed, load / speed))
        if float((load / speed).max()) <= bound * (1 + 1e-6):
            return bound, True
    return bound, False


def _pour(load: Numbers, speed: Numbers, may: Flags, amount: float) -> Numbers:
    """The amount over the members that may hold it, so that the lowest rise to one common level."""
    members = np.flatnonzero(may)
    levels = load[members] / speed[members]
    order = np.argsort(levels, kind="stable")
    wide = np.cumsum(speed[members][order])
    # Level if the first k are filled up; the right k is the last whose own load lies below it (water-filling).
    level = (np.cumsum(load[members][order]) + amount) / wide
    last = int(np.flatnonzero(level >= levels[order])[-1])
    poured = np.zeros(len(load))
    rise = np.maximum(level[last] * speed[members] - load[members], 0.0)
    poured[members] = rise * (amount / total if (total := float(rise.sum())) > 0 else 0.0)
    return poured


def _fullest_sets(may: Flags, work: Numbers, inflow: Numbers, speed: Numbers, level: Numbers) -> float:
    """The best bound over the sets "the k fullest members"."""
    order = np.argsort(-level, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    closes = np.where(may, rank, -1).max(axis=1)  # a kind is the set's own once its last member is in
    inside = np.bincount(closes, work, len(order)).cumsum()
    coming = np.bincount(closes, inflow, len(order)).cumsum()
    wide = speed[order].cumsum()
    left = wide - coming
    # More comes in for such a set than it can do.
    if bool(((left <= CLOSE * wide) & (inside > 0)).any()):
        return float("inf")
    return float((inside / np.where(left > 0, left, 1.0)).max())


def _ratio(work: float, left: float, speed: float) -> float:
    if left > CLOSE * speed:
        return float(work / left)
    return float("inf") if work > 0 else 0.0


MOST_PIGEONS = 4096


def pigeonhole(case: Case) -> float:
    """Over the largest units: how many of them must share a member. Work only; eligibility is left aside."""
    large = np.sort(case.work)[::-1][:MOST_PIGEONS]
    large = large[large > 0]
    members = len(case.speed)
    if len(large) <= members and bool((case.speed == case.speed[0]).all()):
        return 0.0
    if bool((case.speed == case.speed[0]).all()):
        return _alike(large, members) / float(case.speed[0])
    return _unlike(large[:512], case.speed)


def _alike(large: Numbers, members: int) -> float:
    """Of the j·m + 1 largest somebody has j + 1: at least the j + 1 smallest of them."""
    summed = np.concatenate(([0.0], np.cumsum(large)))
    j = np.arange(1, (len(large) - 1) // members + 1)
    last = j * members + 1
    return float((summed[last] - summed[last - j - 1]).max()) if len(j) else 0.0


def _unlike(large: Numbers, speed: Numbers) -> float:
    """For every k the smallest target at which the members have room for k of the k largest, by bisection."""
    count = np.arange(1, len(large) + 1)
    low, high = 0.0, float(large.sum() / speed.max())
    summed = np.concatenate(([0.0], np.cumsum(large)))
    # 40 halvings leave 12 digits. `low` is returned: for it, unlike `high`, the target is proven too low.
    for _ in range(40):
        middle = (low + high) / 2
        # k - searchsorted = how many of the smallest among the k largest sum up to no more than the room
        room = summed[count][None, :] - (middle * speed)[:, None] * (1 + CLOSE)
        held = count[None, :] - np.searchsorted(summed, room, side="left").clip(0)
        if bool((np.minimum(held, count).sum(axis=0) >= count).all()):
            high = middle
        else:
            low = middle
    return low


def removals(sizes: Numbers, room: Numbers, home: Codes, movable: Flags) -> Codes:
    """Per member: the fewest of its units, largest first, that must leave it to bring it under its room.

    What stays must fit, and what comes only adds: their sum is a lower bound on the moves.
    """
    members = len(room)
    load = summed(home, sizes, members)
    excess = load - room * (1 + CLOSE)
    units = np.flatnonzero((home >= 0) & movable)
    units = units[excess[home[units]] > 0]
    # lexsort's last key leads: by member, then largest first.
    order = units[np.lexsort((-sizes[units], home[units]))]
    owner = home[order]
    before = np.cumsum(sizes[order]) - sizes[order]
    start = np.searchsorted(owner, np.arange(members))
    base = before[np.minimum(start, max(len(before) - 1, 0))] if len(before) else np.zeros(members)
    # A unit must go as long as the larger ones before it do not free enough; no smaller choice frees more with as few.
    needed = before - base[owner] < excess[owner]
    return np.bincount(owner[needed], minlength=members)
