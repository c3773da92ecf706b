"""The fewest moves that bring every member under its room: a beam search over partial plans.

Whoever is fullest has to give one of the units it still holds from before, wherever that goes, and no unit moves
twice: branching on that is exhaustive. A state is judged by the moves made so far and the fewest still needed
(``bounds.removals``), so that a search in which no state was cut proves its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.planner.canonical_problem import CLOSE
from kagent.planner.problem import Codes, Flags, Numbers, summed

# More moves than any case small enough for a beam has units, and small enough to be added without overflow.
FAR = 1 << 20
WIDTHS = ((30, 1.0), (30, -1.0), (250, 1.0))
"""Beam widths, and whether even or uneven slack is preferred."""


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What to reach: sizes, rooms, who may hold what and where everything is now (-1: to be placed)."""

    size: Numbers
    room: Numbers
    home: Codes
    eligible: Flags

    @property
    def members(self) -> int:
        return len(self.room)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best plan found and what is proven of it. Moves count only units that left a home."""

    at: Codes | None
    moves: int
    bound: int

    @property
    def proven(self) -> bool:
        """Whether no plan with fewer moves exists."""
        return self.at is not None and self.moves <= self.bound


@dataclass(slots=True, eq=False)
class _States:
    """A level of the beam: as many moves each. Rows are states."""

    at: Codes
    load: Numbers
    need: Codes
    """[state, member]: fewest units that must still leave it."""
    key: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class _Children:
    """Steps from states: a unit of a state goes to a member. ``left``: what its source needs then."""

    states: _States
    parent: Codes
    unit: Codes
    to: Codes
    left: Codes | None


class Search:
    """Beam searches for one goal; tables that they share are made once."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self.order = np.lexsort((-goal.size, goal.home))
        self.slots = _slots(goal, self.order)
        self.slot_size = np.where(self.slots >= 0, goal.size[self.slots], 0.0)
        self.limit = goal.room * (1 + CLOSE)
        self.keys = _keys(goal)
        self.placing = [
            unit for unit in np.argsort(-goal.size, kind="stable").tolist() if goal.home[unit] < 0
        ]
        self.root = self._root()
        self.root_bound = int(self.root.need.sum())

    def _root(self) -> _States:
        goal = self.goal
        load = summed(goal.home, goal.size, goal.members)[None, :]
        at = goal.home[None, :].copy()
        members = np.arange(goal.members)
        before, held = self._before(at, np.zeros_like(members), members)
        need = self._needs(before, held, members, load[0])[None, :]
        return _States(at, load, need, np.zeros(1, np.uint64))

    def _before(self, at: Codes, state: Codes, member: Codes) -> tuple[Numbers, Numbers]:
        """Per (state, member) what units larger than each that it still holds sum up to (inf: gone), and what all do."""
        slots = self.slots[member]
        here = (slots >= 0) & (at[state[:, None], slots] == member[:, None])
        sizes = np.where(here, self.slot_size[member], 0.0)
        up_to = np.cumsum(sizes, axis=1)
        return np.where(here, up_to - sizes, np.inf), up_to[:, -1]

    def _needs(self, before: Numbers, held: Numbers, member: Codes, load: Numbers) -> Codes:
        """Fewest units, largest first, that must leave each member of that load; FAR where all are too few."""
        excess = load - self.limit[member]
        needed = (before < excess[:, None]).sum(axis=1)
        return np.where(held >= excess - CLOSE * self.goal.room[member], needed, FAR)

    def beam(self, most: int, width: int, sign: float) -> tuple[Codes | None, int, bool]:
        """One search with a limit on moves: the plan or None, its moves, and whether any state was cut."""
        states, cut = self.root, False
        # Units without a home have to be placed anyway: first, so that the moves after it know the true loads.
        for unit in self.placing:
            states, lost = self._kept(self._placed(states, unit), most, width, sign)
            cut |= lost
        for moves in range(most + 1):
            if not len(states.at):
                return None, FAR, cut
            done = np.flatnonzero(~states.need.any(axis=1))
            if len(done):
                # Of plans with as few moves, the one that leaves the fullest member most room.
                full = (states.load[done] / self.goal.room).max(axis=1)
                return states.at[done[int(full.argmin())]], moves, cut
            if moves == most:
                break
            states, lost = self._kept(self._moved(states, most - moves - 1), most - moves - 1, width, sign)
            cut |= lost
        return None, FAR, cut

    def _placed(self, states: _States, unit: int) -> _Children:
        """Children of placing a unit without an owner: one for each member that may hold it."""
        members = np.flatnonzero(self.goal.eligible[unit])
        parent = np.repeat(np.arange(len(states.at)), len(members))
        to = np.tile(members, len(states.at))
        return _Children(states, parent, np.full(len(parent), unit), to, None)

    def _moved(self, states: _States, most: int) -> _Children:
        """Children of one move away from each state's fullest member, of each unit it still has, to anybody.

        Only units that leave a need which ``most`` further moves can meet. Without a unit the need is one less if the
        unit is among the largest that have to go, or as good as the last of those.
        """
        goal, rows = self.goal, np.arange(len(states.at))
        # The member of greatest excess: some unit that it still holds must leave in every completion, so no other needs branching.
        source = np.where(states.need > 0, states.load - goal.room, -np.inf).argmax(axis=1)
        slots, need = self.slots[source], states.need[rows, source]
        here = (slots >= 0) & (states.at[rows[:, None], slots] == source[:, None])
        sizes, rank = self.slot_size[source], np.cumsum(here, axis=1)
        without_last = np.where(here & (rank < need[:, None]), sizes, 0.0).sum(axis=1)
        excess = states.load[rows, source] - self.limit[source]
        # Taking a unit smaller than those that must go anyway saves nothing, unless it frees as much as the last of them.
        one_less = (rank <= need[:, None]) | (without_last[:, None] + sizes >= excess[:, None])
        left = need[:, None] - one_less
        others = states.need.sum(axis=1) - need
        state, column = np.nonzero(here & (left + others[:, None] <= most))
        unit = slots[state, column]
        to_ok = goal.eligible[unit].copy()
        to_ok[np.arange(len(unit)), source[state]] = False
        row, to = np.nonzero(to_ok)
        return _Children(states, state[row], unit[row], to, left[state, column][row])

    def _kept(self, children: _Children, most: int, width: int, sign: float) -> tuple[_States, bool]:
        """The best children, each once: those that can still end within ``most`` moves, ``width`` of them."""
        goal, states = self.goal, children.states
        # Zobrist hashing: the sum is the same whatever the order of the moves, so a state reached twice is kept once:
        # https://en.wikipedia.org/wiki/Zobrist_hashing
        key = states.key[children.parent] + self.keys[children.unit, children.to]
        key, first = np.unique(key, return_index=True)
        parent, unit, to = children.parent[first], children.unit[first], children.to[first]
        load, need = self._after(states, parent, unit, to)
        if children.left is not None:
            need[np.arange(len(first)), goal.home[unit]] = children.left[first]
        ahead = need.sum(axis=1)
        alive = np.flatnonzero(ahead <= most)
        # Only a search that never cut a state proves that fewer moves do not do.
        cut = len(alive) > width
        over = np.maximum(load[alive] - goal.room, 0.0).sum(axis=1) / max(float(goal.room.mean()), 1e-300)
        if cut:
            slack = np.square((goal.room - load[alive]) / goal.room.mean()).sum(axis=1)
            # Fewest moves still needed first; then the excess, as a fraction below 1; then even or uneven slack, as the pass
            # wants; the key last, so that every run orders equal states alike.
            rank = np.lexsort((key[alive], sign * slack, np.round(ahead[alive] + over / (1.0 + over), 9)))
            alive = alive[rank[:width]]
        at = states.at[parent[alive]]
        at[np.arange(len(alive)), unit[alive]] = to[alive]
        return _States(at, load[alive], need[alive], key[alive]), cut

    def _after(self, states: _States, parent: Codes, unit: Codes, to: Codes) -> tuple[Numbers, Codes]:
        """Loads of the children, and needs but for those of the members that gave."""
        goal, rows = self.goal, np.arange(len(parent))
        load, need = states.load[parent], states.need[parent]
        size, source = goal.size[unit], goal.home[unit]
        load[rows, to] += size
        need[rows, to] = 0
        over = np.flatnonzero(load[rows, to] > self.limit[to])
        if len(over):
            # Many children give different units to one member of one state: what it needs is computed once for each.
            one, inverse = _once(parent[over] * goal.members + to[over])
            one = over[one]
            before, held = self._before(states.at, parent[one], to[one])
            need[over, to[over]] = self._needs(before[inverse], held[inverse], to[over], load[over, to[over]])
        left = np.flatnonzero(source >= 0)
        load[left, source[left]] -= size[left]
        return load, need


def _once(codes: Codes) -> tuple[Codes, Codes]:
    """Where each code is first, and which of those each is."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _slots(goal: Goal, order: Codes) -> Codes:
    """[member, slot]: the units it holds that could go elsewhere, largest first; -1 fills up."""
    free = goal.eligible.sum(axis=1) > 1
    rows = [order[(goal.home[order] == member) & free[order]] for member in range(goal.members)]
    slots = np.full((goal.members, max([1, *map(len, rows)])), -1, np.int64)
    for member, units in enumerate(rows):
        slots[member, : len(units)] = units
    return slots


def _keys(goal: Goal) -> npt.NDArray[np.uint64]:
    """[unit, member] random numbers whose sum names a state; units that are alike share theirs."""
    alike = np.column_stack([goal.size, goal.home, goal.eligible])
    # Units that are alike share their numbers: exchanging them gives the same state.
    _, same = np.unique(alike, axis=0, return_inverse=True)
    rng = np.random.default_rng(11)
    drawn = rng.integers(
        1, 2**63, size=(int(same.max()) + 1 if len(same) else 0, goal.members), dtype=np.uint64
    )
    return drawn[same.reshape(-1)]


def fewest(
    goal: Goal,
    incumbent: Codes | None,
    widths: tuple[tuple[int, float], ...] = WIDTHS,
) -> Found:
    """The fewest moves found, with what is proven; the incumbent is a plan known to reach the goal, or None."""
    parts = list(_dominated(goal)) or [goal]
    searches = sorted((_Case(Search(case), _extra(case, goal)) for case in parts), key=lambda one: one.bound)
    best = incumbent
    moves = FAR if best is None else _moves(goal, best)
    for width, sign in widths:
        for one in searches:
            if one.bound >= moves or one.closed:
                continue
            at, _, cut = one.search.beam(min(moves - 1 - one.extra, FAR), width, sign)
            if at is not None and (made := _moves(goal, at)) < moves:
                best, moves = at, made
            elif at is None and not cut:
                one.closed = True
            if at is not None and not cut:
                one.bound = max(one.bound, _moves(goal, at))
        if all(one.closed or one.bound >= moves for one in searches):
            return Found(best, moves, moves)
    return Found(best, moves, min(moves, min(one.bound for one in searches if not one.closed)))


@dataclass(slots=True, eq=False)
class _Case:
    """One search and the moves that its case takes for granted."""

    search: Search
    extra: int
    closed: bool = False
    """No plan better than the best known exists in this case."""
    bound: int = 0

    def __post_init__(self) -> None:
        self.bound = self.search.root_bound + self.extra


def _dominated(goal: Goal) -> Iterator[Goal]:
    """If one unit takes more than half of somebody's room: the cases "it ends at j", which bound the moves far better."""
    unit = int(goal.size.argmax())
    # Without the split, the bound of a group with one dominating unit was 3 where 12 moves are needed.
    if goal.home[unit] < 0 or goal.size[unit] <= goal.room.max() / 2:
        return
    for member in np.flatnonzero(goal.eligible[unit]).tolist():
        eligible = goal.eligible.copy()
        eligible[unit] = False
        eligible[unit, member] = True
        home = goal.home.copy()
        if member != home[unit]:
            home[unit] = -1
        yield Goal(goal.size, goal.room, home, eligible)


def _extra(case: Goal, goal: Goal) -> int:
    return int(((goal.home >= 0) & (case.home < 0)).sum())


def _moves(goal: Goal, at: Codes) -> int:
    return int(((goal.home >= 0) & (at != goal.home)).sum())
