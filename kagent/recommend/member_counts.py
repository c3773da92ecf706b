"""What the most loaded member would get with more members, and counts that relieve it however partitions are dealt out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kagent.detect.dealing import dealt, fullest, greatest, piles_of
from kagent.detect.forecast import longest_s
from kagent.detect.group_model import GroupModel
from kagent.lag.bound import Bound
from kagent.lag.measure import Floats, Longs

FITTING: Bound = 5
"""How many numbers of members the action lists at most, the least first."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of members, further numbers that fit, and the greatest share of the inflow that one member gets now and then."""

    members: int
    fitting: tuple[int, ...]
    share_now: float
    share_then: float


@dataclass(frozen=True, slots=True)
class Counts:
    """What each member would get with more of them: ``flow``: of each partition, work/s, the most first; ``load``: what it takes to catch
    up in the longest time that counts as help, work/s; ``pile``: what of it is dealt out for itself (``kagent.detect.dealing``);
    ``most``: what a member can process, infinite where no member's speed is known; ``useful``: the number for autoscalers, None where none is
    known."""

    have: int
    share_now: float
    flow: Floats
    load: Floats
    pile: Longs
    most: float = float("inf")
    useful: int | None = None

    def of(self, members: int) -> Count | None:
        """The count with this many members; None where they would be no more than now, or nothing flows in."""
        if members <= self.have or not len(self.flow):
            return None
        further = tuple(n for n in self._dividing if n > members)
        return Count(members, (members, *further)[:FITTING], self.share_now, self._share(members))

    def relieving(self, gain: float) -> Count | None:
        """The least count, up to twice the present or useful one, that relieves the most loaded member by ``gain`` and with which it catches up
        in time, for every way to assign them; never less than the number for autoscalers."""
        # Against the worst dealing: which member gets which partition is up to the assignor, and must not decide whether it helps.
        limit = (1 - gain) * self.share_now * self._total
        least = max(self.have, self.useful or 0)
        counts = [n for n in self._dividing if n > self.have and least <= n <= 2 * least]
        fitting = [
            n for n in counts if self._worst(self.flow, n) <= limit and self._worst(self.load, n) <= self.most
        ]
        if not fitting:
            return None
        return Count(fitting[0], tuple(fitting[:FITTING]), self.share_now, self._share(fitting[0]))

    @property
    def together(self) -> Counts:
        """The same if a strategy dealt all topics out together."""
        return replace(self, pile=np.zeros_like(self.pile))

    @property
    def _dividing(self) -> list[int]:
        """Divisors only: every member then holds the same number of partitions, whichever strategy deals them out. Of a topic that is
        dealt out for itself at most one, where it has fewer partitions than members."""
        sizes = np.unique(np.bincount(self.pile))
        counts = range(1, greatest(self.pile) + 1)
        return [n for n in counts if all(size % n == 0 for size in sizes[sizes > n].tolist())]

    @property
    def _total(self) -> float:
        return float(self.flow.sum())

    def _share(self, members: int) -> float:
        """The greatest share of the inflow that one of this many members gets."""
        takers = dealt(self.flow, self.pile, members)
        return float(np.bincount(takers, self.flow, members).max()) / self._total

    def _worst(self, work: Floats, members: int) -> float:
        """What one member gets of this at most, whichever gets which partition: the greatest of each pile."""
        return float(work[fullest(work, self.pile, members)].sum())


def counts(model: GroupModel, optimist: bool = False) -> Counts:
    """The counts for a group as it stands; without any where nothing flows in. ``optimist``: whether what helps only by the ends of the estimates that
    favour it counts as help, as it does where the finding says so of another assignment."""
    held = np.flatnonzero(model.lags.owner >= 0)
    flow = (model.columns.usual_rates * model.cost)[held]
    total, have = float(flow.sum()), len(model.names)
    if total <= 0 or not have:
        return Counts(have, 0.0, np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    now = float(np.bincount(model.lags.owner[held], flow, have).max()) / total
    useful = model.state.useful.members if model.state.useful is not None else None
    order = np.argsort(-flow, kind="stable")
    return Counts(
        have,
        now,
        flow[order],
        _load(model, held, optimist)[order],
        piles_of(model, held)[order],
        _most(model, optimist),
        useful,
    )


def _load(model: GroupModel, rows: Longs, optimist: bool) -> Floats:
    # By the forecast that says whether an assignment helps. By a limit of its own, a plan would help, and as many members as partitions not.
    longest = longest_s(float(model.lateness.max(initial=0.0)))
    rates = model.columns.least_rates if optimist else model.columns.usual_rates
    return np.asarray((rates + model.columns.backlog / longest)[rows] * model.cost[rows])


def _most(model: GroupModel, optimist: bool) -> float:
    """What a usual member can process, work/s; infinite where none was ever busy."""
    rate, measured = model.capacity.rate, model.capacity.measured
    return (
        float(np.median((rate.high if optimist else rate.mid)[measured])) if measured.any() else float("inf")
    )
