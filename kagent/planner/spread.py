"""The smallest greatest value that any assignment has, moves left aside: greedy, then exact re-splits of pairs.

Greedy places the largest first on the member that is then least loaded (Graham's LPT, with eligibility). The descent takes
the fullest member and shares its units anew with one other member, or two, in the best of all ways; where that no
longer helps, a few members are emptied and refilled. Everything is counted in rounds and drawn from a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

import numpy as np

from kagent.planner.canonical_problem import CLOSE, NEVER, Case, score
from kagent.planner.problem import Codes, Flags, Numbers

PAIR = 12
"""Units shared anew between two members: 2^12 ways in one matrix product."""
TRIPLE = 8
"""Units shared anew between three members: 3^8 ways."""
TRIPLES = 21
"""Triples tried before the descent is at its end."""
ENOUGH = 2e-5
"""How near the bound the search stops."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to search, in rounds."""

    splits: int = 6000
    """Re-splits in all."""
    kicks: int = 30
    """How often some members are emptied and refilled."""


@cache
def ways(units: int, members: int) -> Numbers:
    """[way, member, unit] → 1.0 where the unit goes to the member: every way to share units among members."""
    # All numbers of `units` digits in base `members`: each is one way to share out.
    digits = np.indices((members,) * units).reshape(units, -1).T
    return np.stack([(digits == member).astype(np.float64) for member in range(members)], axis=1)


def greedy(case: Case, at: Codes, noise: Numbers | None = None) -> Codes:
    """Places the units that are at -1, largest first, each where the result is least."""
    at = at.copy()
    work, inflow = case.sums(at)
    size = (
        case.work
        if not case.draining
        else case.work / max(case.work.sum(), 1e-300) + case.inflow / max(case.inflow.sum(), 1e-300)
    )
    keys = size if noise is None else size * noise
    # https://en.wikipedia.org/wiki/Longest-processing-time-first_scheduling
    loose = np.flatnonzero(at < 0)
    for unit in loose[np.argsort(-keys[loose], kind="stable")].tolist():
        # By the value after placing, not by load: with inflow the emptiest member may be one that then never drains.
        then = score(work + case.work[unit], inflow + case.inflow[unit], case.speed)
        then[~case.may[case.kind[unit]]] = np.inf
        member = int(then.argmin())
        at[unit] = member
        work[member] += case.work[unit]
        inflow[member] += case.inflow[unit]
    return at


@dataclass(slots=True, eq=False)
class Descent:
    """One descent's state: an assignment and what each member carries."""

    case: Case
    eligible: Flags
    at: Codes
    left: int
    rng: np.random.Generator
    stay: bool = False
    """Whether no step may leave more units away from home than before."""
    work: Numbers = field(init=False)
    inflow: Numbers = field(init=False)
    scores: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.restart(self.at)

    def restart(self, at: Codes) -> None:
        """Goes on from another assignment."""
        self.at = at.copy()
        self.work, self.inflow = self.case.sums(self.at)
        self.scores = score(self.work, self.inflow, self.case.speed)

    def run(self, enough: float) -> float:
        """Re-splits until the greatest is enough, nothing helps, or the rounds are used up; the greatest reached."""
        while self.left > 0 and (top := float(self.scores.max())) > enough:
            if not (
                self._pairs(int(self.scores.argmax()), top) or self._triples(int(self.scores.argmax()), top)
            ):
                break
        return float(self.scores.max())

    def _pairs(self, full: int, top: float) -> bool:
        for other in np.argsort(self.scores, kind="stable").tolist():
            if other != full and self.left > 0 and self._split((full, other), PAIR, top):
                return True
        return False

    def _triples(self, full: int, top: float) -> bool:
        others = [member for member in range(len(self.scores)) if member != full]
        # In small groups only: the list of pairs grows with the square of the members, and 21 of them are tried.
        twos = list(combinations(others, 2)) if len(others) < 50 else []
        for at in self.rng.permutation(len(twos))[:TRIPLES].tolist():
            if self.left <= 0:
                return False
            if self._split((full, *twos[at]), TRIPLE, top):
                return True
        return False

    def _split(self, members: tuple[int, ...], most: int, top: float) -> bool:
        """Shares units among the members in the best way; True if the fullest of them got better."""
        self.left -= 1
        case, who = self.case, list(members)
        held = (self.at[:, None] == who).any(axis=1) & (self.eligible[:, who].sum(axis=1) > 1)
        units = np.flatnonzero(held)
        if not len(units):
            return False
        if len(units) > most:
            # Drawn anew each time: another choice of 12 may help where this one does not.
            units = self.rng.choice(units, most, replace=False)
        way = ways(len(units), len(who))
        now = (self.at[units][None, :] == np.array(who)[:, None]).astype(np.float64)
        then = self._then(way, now, units, who)
        barred = ~self.eligible[units][:, who].T
        if barred.any():
            # Ways that give a unit to a member that may not hold it, all in one product, excluded by an infinite value.
            then = np.where(way.reshape(len(way), -1) @ barred.ravel().astype(np.float64) > 0, np.inf, then)
        if self.stay:
            homes = case.home[units]
            away = (homes[None, :] >= 0) & (homes[None, :] != np.array(who)[:, None])
            moves = way.reshape(len(way), -1) @ away.ravel().astype(np.float64)
            then = np.where(moves > float((now * away).sum()), np.inf, then)
        best = int(then.argmin())
        # Strictly better only: equal re-splits would go round in circles.
        if then[best] >= top * (1 - CLOSE):
            return False
        share = way[best]
        self.at[units] = np.array(who)[share.argmax(axis=0)]
        self.work[who] += (share - now) @ case.work[units]
        self.inflow[who] += (share - now) @ case.inflow[units]
        self.scores[who] = score(self.work[who], self.inflow[who], case.speed[who])
        return True

    def _then(self, way: Numbers, now: Numbers, units: Codes, who: list[int]) -> Numbers:
        """Per way: the greatest score among the members."""
        case = self.case
        work = way @ case.work[units] + (self.work[who] - now @ case.work[units])
        scores: Numbers = work / case.speed[who]
        if case.draining:
            inflow = way @ case.inflow[units] + (self.inflow[who] - now @ case.inflow[units])
            scores = score(work, inflow, case.speed[who])
        greatest: Numbers = scores.max(axis=1)
        return greatest


def spread(case: Case, bound: float, effort: Effort, start: Codes | None = None) -> Codes:
    """The assignment with the smallest greatest value found; proven best where it meets the bound."""
    enough = bound * (1 + ENOUGH)
    # The present is a start as good as any, and one that more often needs few moves.
    first = greedy(case, np.full(len(case), -1, np.int64))
    if case.greatest(first) <= enough or not effort.splits or len(case.speed) < 2:
        return first
    if start is not None and case.greatest(start) < case.greatest(first):
        first = start
    descent = Descent(case, case.eligible, first, effort.splits, np.random.default_rng(7))
    best_value, best = descent.run(enough), descent.at.copy()
    for _ in range(effort.kicks):
        if best_value <= enough or descent.left <= 0:
            break
        descent.restart(_kicked(case, best, descent.rng))
        reached = descent.run(enough)
        # Equal is taken too: it moves on over plateaus, from which the next kick may find more.
        if reached <= best_value:
            best_value, best = reached, descent.at.copy()
    return best


def _kicked(case: Case, at: Codes, rng: np.random.Generator) -> Codes:
    """Some members, mostly two to four and the fullest among them, emptied and refilled with blurred sizes."""
    scores = np.minimum(case.scores(at), 2 * NEVER)
    members = len(scores)
    most = members if rng.random() < 0.3 else min(members, 4)
    chosen = set(rng.choice(members, int(rng.integers(2, most + 1)), replace=False).tolist())
    if rng.random() < 0.8:
        chosen.add(int(scores.argmax()))
    loose = np.isin(at, list(chosen))
    blur = 0.3 if rng.random() < 0.5 else 0.7
    # Sizes blurred by 30 or 70 %, or greedy would only rebuild what was taken apart.
    return greedy(case, np.where(loose, -1, at), rng.uniform(1 - blur, 1 + blur, len(at)))
