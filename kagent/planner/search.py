"""Small groups: the best value, the fewest moves to come near it, and what each number of moves can reach."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kagent.planner import fewest, spread
from kagent.planner.canonical_problem import CLOSE, NEVER, Case, score, value
from kagent.planner.problem import Codes, summed

Widths = tuple[tuple[int, float], ...]
# (width, sign): the sign prefers even (1) or uneven (-1) slack. Neither finds all that the other does.
NARROW: Widths = ((30, 1.0), (30, -1.0))
WIDE: Widths = ((250, 1.0),)
STEPS = 9
"""Bisection steps per point of the frontier."""
SETTLED = 1e-3
"""How near its bound a point of the frontier is left alone."""


ORDINARY = 600
"""Units × members up to which the frontier is looked for in full width; beams are narrower in larger groups."""
SHALLOW = 12
"""Moves up to which it is; deeper beams are narrower."""
MIDDLE = 40_000
"""Units × members up to which a repaired pass is shortened."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is searched, in rounds and widths, never in time: the same input gives the same plan."""

    effort: spread.Effort = field(default_factory=spread.Effort)
    widths: tuple[tuple[int, float], ...] = fewest.WIDTHS
    frontier: int = 12
    """Up to how many moves the frontier is looked for; 0: only where it stands and where the plan ends."""
    settle: bool = False
    """Whether to stop where the present is within the tolerance of the bound; ``best`` is then the present greatest."""
    cells: int = 6000
    """Units × members up to which a group is searched; larger ones are levelled in one pass."""


QUICK = Budget(spread.Effort(1500, 8), fewest.WIDTHS[:2], frontier=3, settle=True)
"""For those who plan for many groups at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachedAssignment:
    """An assignment with the moves it takes and the greatest value it has."""

    at: Codes
    moves: int
    greatest: float


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The plan, the best value known, the moves no plan can do without, and the frontier."""

    plan: ReachedAssignment
    best: float
    bound: float
    move_bound: int
    frontier: tuple[ReachedAssignment, ...]


def moves_of(case: Case, at: Codes) -> int:
    """Units that left a home."""
    return int(((case.home >= 0) & (at != case.home)).sum())


def solve(case: Case, bound: float, tolerance: float, max_moves: int | None, budget: Budget) -> SearchResult:
    """The fewest moves to within the tolerance of the best value found, for a case small enough to search."""
    # Starts from home where everyone has one: from there few moves are likely.
    rested = case.home if bool((case.home >= 0).all()) else spread.greedy(case, case.home)
    ideal = spread.spread(case, bound, budget.effort, rested)
    best = case.greatest(ideal)
    # Nothing drains whatever is moved; the caller plans by work instead.
    if best == float("inf"):
        nowhere = ReachedAssignment(ideal, moves_of(case, ideal), best)
        return SearchResult(nowhere, best, bound, 0, (nowhere,))
    # A bound by floats may exceed the best by a rounding error.
    bound = min(bound, best)
    # Against the best found, not the bound: where that is weak, no plan may come within 5 % of it.
    target = (1 + tolerance) * best
    start = _homeward(case, ideal, target)
    goal = _goal(case, target)
    # Narrow beams first: the wide ones below are for what these do not prove.
    found = fewest.fewest(goal, _incumbent(case, rested, start, target, budget), budget.widths[:2])
    at, bound_moves = start if found.at is None else found.at, found.bound
    if not found.proven:
        splits = budget.effort.splits // 4
        # Exchanges from both the beam's plan and the greedy one: they end in different places.
        shorter = [shortened(case, one, target, found.bound, splits) for one in (at, start)]
        at = min(shorter, key=lambda one: moves_of(case, one))
        found = fewest.fewest(goal, at, budget.widths[2:])
        at, bound_moves = at if found.at is None else found.at, max(bound_moves, found.bound)
    plan = ReachedAssignment(at, moves_of(case, at), case.greatest(at))
    most = plan.moves if max_moves is None else min(max_moves, plan.moves)
    line = _frontier(case, bound, best, max(budget.frontier, 0), rested, plan)
    known = [one for one in line if one.moves <= most]
    if most < plan.moves or (known and known[-1].greatest < plan.greatest):
        plan = (
            known[-1] if known else ReachedAssignment(rested, moves_of(case, rested), case.greatest(rested))
        )
    return SearchResult(
        plan, min(best, *(one.greatest for one in (*line, plan))), bound, bound_moves, tuple(line)
    )


def _goal(case: Case, target: float) -> fewest.Goal:
    size, room = case.sizes(target)
    return fewest.Goal(size, room, case.home, case.eligible)


def _incumbent(case: Case, rested: Codes, ideal: Codes, target: float, budget: Budget) -> Codes:
    """The better of two plans that reach the target: from the ideal homeward, and from here downward."""
    descent = spread.Descent(
        case, case.eligible, rested, budget.effort.splits // 10, np.random.default_rng(5)
    )
    if descent.run(target) > target * (1 + CLOSE):
        return ideal
    other = _homeward(case, descent.at, target)
    return other if moves_of(case, other) < moves_of(case, ideal) else ideal


def shortened(case: Case, at: Codes, target: float, bound: int, splits: int) -> Codes:
    """Plans with a move less, as long as there are any: one unit goes home, and exchanges that move no more make room.

    Finds what a beam does not, whose every step has to relieve somebody.
    """
    rng, left = np.random.default_rng(17), splits
    while moves_of(case, at) > bound and left > 0:
        away = np.flatnonzero((case.home >= 0) & (at != case.home))
        for unit in away[np.argsort(case.work[away] + case.inflow[away], kind="stable")].tolist():
            start = at.copy()
            start[unit] = case.home[unit]
            allot = min(left, splits // 10)
            descent = spread.Descent(case, case.eligible, start, allot, rng, stay=True)
            reached = descent.run(target)
            left -= allot - descent.left
            if reached <= target * (1 + CLOSE):
                at = descent.at
                break
            if left <= 0:
                return at
        else:
            return at
    return at


def repaired(case: Case, at: Codes, ideal: Codes, target: float) -> ReachedAssignment:
    """From an assignment that misses the target to one that meets it, as the ideal one does at the worst."""
    descent = spread.Descent(case, case.eligible, at, 3000, np.random.default_rng(5))
    met = descent.run(target) <= target * (1 + CLOSE)
    found = [_homeward(case, descent.at, target)] if met else []
    found.append(_homeward(case, ideal, target))
    best = min(found, key=lambda one: moves_of(case, one))
    if len(case) * len(case.speed) <= MIDDLE:
        search = fewest.Search(_goal(case, target))
        narrow, _, _ = search.beam(moves_of(case, best) - 1, 30, 1.0)
        best = shortened(case, best if narrow is None else narrow, target, search.root_bound, 3000)
    return ReachedAssignment(best, moves_of(case, best), case.greatest(best))


def _homeward(case: Case, at: Codes, target: float) -> Codes:
    """Sends home, largest first, whatever fits there under the target."""
    at = at.copy()
    size, room = case.sizes(target)
    load = summed(at, size, len(room))
    away = np.flatnonzero((case.home >= 0) & (at != case.home))
    changed = True
    # Again until nothing changes: a unit that went home leaves room for another where it was.
    while changed:
        changed = False
        for unit in away[np.argsort(-size[away], kind="stable")].tolist():
            home = case.home[unit]
            if at[unit] != home and load[home] + size[unit] <= room[home] * (1 + CLOSE):
                load[at[unit]] -= size[unit]
                load[home] += size[unit]
                at[unit] = home
                changed = True
    return at


def _frontier(
    case: Case, bound: float, best: float, last: int, rested: Codes, plan: ReachedAssignment
) -> list[ReachedAssignment]:
    """The smallest greatest for 0, 1, 2, … moves, and for the plan's own number of them; never rising."""
    floors = _floors(case, max(last, plan.moves))
    line: list[ReachedAssignment] = []
    known = ReachedAssignment(rested, 0, case.greatest(rested))
    # Rising numbers of moves, so that each point begins with what the one before reached.
    for moves in [*range(last + 1), *([plan.moves] if plan.moves > last else [])]:
        if moves == plan.moves and plan.greatest < known.greatest:
            known = plan
        known = _point(case, moves, max(bound, floors[moves]), known)
        line.append(ReachedAssignment(known.at, moves, known.greatest))
        if known.greatest <= best * (1 + CLOSE) and moves >= plan.moves:
            break
    return line


def _point(case: Case, moves: int, floor: float, known: ReachedAssignment) -> ReachedAssignment:
    """The least greatest work with this number of moves, between its bound and what fewer moves reached."""
    known = _bisected(case, moves, floor, known, _affordable(case, moves, NARROW))
    if known.greatest <= floor * (1 + SETTLED) or known.greatest == float("inf"):
        return known
    wide = _affordable(case, moves, WIDE)
    if wide[0][0] <= NARROW[0][0]:
        return known
    at = _reach(case, moves, known.greatest * (1 - 2 * SETTLED), wide)
    if at is None:
        return known
    return _bisected(case, moves, floor, ReachedAssignment(at, moves, case.greatest(at)), wide)


def _affordable(case: Case, moves: int, widths: Widths) -> Widths:
    """The widths, or less where a level has many children a state (units × members) or the levels (moves) are many."""
    over = max(1.0, case.eligible.size / ORDINARY) ** 1.5 * max(1.0, moves / SHALLOW)
    return tuple((max(1, int(width / over)), sign) for width, sign in widths)


def _bisected(
    case: Case, moves: int, floor: float, known: ReachedAssignment, widths: Widths
) -> ReachedAssignment:
    """Bisection with beams of some widths; the bound itself is tried first."""
    low, aim = floor, floor
    for _ in range(STEPS):
        if known.greatest <= low * (1 + SETTLED) or low == float("inf"):
            break
        at = _reach(case, moves, aim, widths)
        if at is not None and (reached := case.greatest(at)) < known.greatest:
            known = ReachedAssignment(at, moves, reached)
        else:
            low = max(low, aim)
        aim = (low + known.greatest) / 2 if known.greatest < float("inf") else low * 2
    return known


def _reach(case: Case, moves: int, target: float, widths: Widths) -> Codes | None:
    search = fewest.Search(_goal(case, target))
    if search.root_bound > moves:
        return None
    for width, sign in widths:
        at, _, cut = search.beam(moves, width, sign)
        if at is not None or not cut:
            return at
    return None


def _floors(case: Case, last: int) -> list[float]:
    """For k = 0, 1, …: the greatest left when k units, always the largest of the fullest member, just vanish.

    What comes in only adds, so no plan with k moves gets below it.
    """
    work, _ = case.sums(case.home)
    # With inflow, removing a unit changes two sums; no removal order is proven best, so no bound is claimed.
    if case.draining:
        return [0.0] * (last + 1)
    # Units that only one member may hold cannot vanish from it.
    free = case.eligible.sum(axis=1) > 1
    floors = []
    held = [sorted(case.work[(case.home == member) & free].tolist()) for member in range(len(case.speed))]
    for _ in range(last + 1):
        scores = score(work, np.zeros_like(work), case.speed)
        full = int(scores.argmax())
        floors.append(value(float(min(scores[full], 2 * NEVER))))
        if held[full]:
            work[full] -= held[full].pop()
    return floors
