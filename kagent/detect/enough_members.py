"""How many members are enough: the one number that a message, its actions and autoscalers name.

A member's speed is known once it was certainly busy (``kagent.detect.capacity``). For a count n, partitions are dealt out in turn,
the most work of the next ``hold`` first: where two that are behind would share a member by chance, moving one does as well as one
more member. `range` deals out each topic for itself. Enough is the least n that catches up within the policy's ``hold`` and leaves a member room, among the counts that
change how many partitions the fullest member gets. What no count can change takes no part: partitions that stand, that wait for a
transaction, or that get more than a member can do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from kagent.detect.capacity import OLDEST_MS, RECENT_MS, RESOLVED, USABLE
from kagent.detect.dealing import dealt, greatest, most_of, piles_of
from kagent.detect.evidence import LatenessLimits
from kagent.detect.forecast import drain_s
from kagent.detect.group_model import GroupModel
from kagent.detect.inflow import totals
from kagent.lag.bound import Bound
from kagent.lag.chance import CLEARLY
from kagent.lag.log_ends import LATELY_MS, UNKNOWN
from kagent.lag.measure import Flags, Floats, Longs

SPARE = USABLE / CLEARLY
"""Of a member's speed: above USABLE more members are due, and fewer only if each then stays below this share. A load that swings by
less than 1.5 between them changes nothing."""
RAISED_MS = LATELY_MS
"""For so long after a rise the usual inflow is partly of before it, and the number is corrected upward at once."""
MOST_COUNTS: Bound = 400
"""Numbers of members that are tried, each of which costs a dealing of all partitions: a topic of 40,000 partitions has as many."""


@dataclass(frozen=True)
class GroupLoad:
    """What can be dealt out, one entry a unit (a partition, or partitions that stay together): ``backlog`` in work, ``inflow`` and
    ``peak`` in work/s; ``pile``: what is dealt out for itself (``kagent.detect.dealing``); ``capacity``: of a usual member, work/s; ``hot``: whether some partition gets more than that;
    ``within_s``: in which time members are to catch up."""

    backlog: Floats
    inflow: Floats
    peak: Floats
    pile: Longs
    capacity: float
    hot: bool
    within_s: float

    @property
    def counts(self) -> list[int]:
        """The least count for each number of units that the fullest member gets."""
        n = np.arange(self.usable, 0, -1)
        sizes, times = np.unique(np.bincount(self.pile), return_counts=True)
        fullest = most_of(sizes[:, None], n) * times[:, None]
        # Of counts with the same sum only the least matters: more members leave as many units on the fullest one.
        least = dict(zip(fullest.sum(axis=0).tolist(), n.tolist(), strict=True))
        return sorted(least.values())[-MOST_COUNTS:]

    @property
    def usable(self) -> int:
        """The most members of which each gets something."""
        return greatest(self.pile)

    def drain_s(self, count: int) -> float:
        """T of the group with this many members."""
        each = self._dealt(count)
        backlog, inflow = totals(each, self.backlog, count), totals(each, self.inflow, count)
        return float(drain_s(backlog, inflow, np.full(count, self.capacity)).max(initial=0.0))

    def fullness(self, count: int, column: Floats) -> float:
        """What the fullest of this many members gets, as a share of its speed."""
        return float(totals(self._dealt(count), column, count).max(initial=0.0)) / self.capacity

    def _dealt(self, count: int) -> Longs:
        return dealt(self.backlog + self.inflow * self.within_s, self.pile, count)

    def enough(self) -> int:
        """The least count that catches up in time with room to spare; else the least that is as good as any."""
        counts = self.counts or [1]
        for count in counts:
            if self.fullness(count, self.inflow) <= USABLE and self.drain_s(count) <= self.within_s:
                return count
        # Where no count catches up in time: the least that takes about as long as the best one.
        times = [self.drain_s(count) for count in counts]
        if np.isfinite(min(times)):
            longest_s = RESOLVED * min(times)
            apart = self._with_slowest_apart(longest_s)
            return next(c for c, t in zip(counts, times, strict=True) if t <= longest_s or c >= apart)
        values = [self.fullness(c, self.inflow) for c in counts]
        return next(c for c, v in zip(counts, values, strict=True) if v <= RESOLVED * min(values))

    def at_least(self, count: int) -> int:
        """The least count from this one on that changes what the fullest member gets; at most the usable ones."""
        return next((c for c in self.counts if c >= count), self.usable)

    def grown(self, factor: float) -> GroupLoad:
        """With ``factor`` (at least 1) times the inflow, and without the units that then get more than a member can do."""
        inflow = self.inflow * factor
        # A unit that alone is too much for a member would make every count equally bad.
        fits = inflow < self.capacity
        hot = self.hot or not bool(fits.all())
        return replace(self._only(fits), inflow=inflow[fits], hot=hot)

    def _only(self, chosen: Flags) -> GroupLoad:
        """With these units alone."""
        column = {name: getattr(self, name)[chosen] for name in ("backlog", "inflow", "peak", "pile")}
        return replace(self, **column)

    def _with_slowest_apart(self, within_s: float) -> int:
        """The least count that is in time if units that alone take about as long each have a member of their own: what moving
        partitions does as well as more members is no reason for more members."""
        alone = drain_s(self.backlog, self.inflow, np.full(len(self.inflow), self.capacity))
        # Within 10 % on either side: a unit that alone needs nearly all the time gains nothing from sharing a member with less.
        slow = alone * RESOLVED >= within_s / RESOLVED
        rest = self._only(~slow)
        fitting = (c for c in rest.counts if rest.drain_s(c) <= within_s)
        return int(slow.sum()) + next(fitting, rest.usable)

    def fewest(self) -> int:
        """The least count that would do with the greatest inflow of late."""
        return self.least_within(self.peak, SPARE)

    def least_within(self, column: Floats, share: float) -> int:
        """The least count of which the fullest member gets at most this share of its speed, else the greatest."""
        counts = self.counts or [1]
        return next((c for c in counts if self.fullness(c, column) <= share), counts[-1])


@dataclass(frozen=True)
class Enough:
    """How many members are enough for a load: for the ``usual`` inflow, for what arrives ``now`` (0: no late member gets more than
    it can do) and, the ``fewest``, for the greatest inflow of late; ``usable`` and ``hot``: see GroupLoad."""

    usual: int
    now: int
    fewest: int
    usable: int
    hot: bool

    @classmethod
    def of(cls, model: GroupModel, capacity: float) -> Enough:
        """By the group's load, with usual members of this capacity (work/s)."""
        load = load_of(model, capacity)
        return cls(load.enough(), enough_now(model, load), load.fewest(), load.usable, load.hot)


@dataclass(frozen=True, slots=True)
class Needed:
    """How many ``members`` a group needs, how many of them ``keep_up`` with what usually arrives, however long what waits takes them, and when that
    many members have likely caught up, s; None where they do not."""

    members: int
    keep_up: int
    caught_up_s: int | None


def needed(model: GroupModel) -> Needed:
    """How many members a group needs that catches up under no assignment: more than it has, or as many as its partitions can use.

    Never less than the number that was decided before (``kagent.detect.useful_members``), which falls only after long.
    """
    known, load = model.state.useful, load_of(model, capacity_of(model) or 1.0)
    before = known.members if known is not None else 0
    least = max(load.enough(), len(model.names) + 1)
    rose = known is not None and known.raised_at > 0 and model.now - known.raised_at <= RAISED_MS
    # The last minute alone is mostly noise: it counts where the number rises anyway, or has just risen.
    if least > before or rose:
        least = max(least, enough_now(model, load))
    members = max(before, load.at_least(least))
    drain = load.drain_s(members)
    keep_up = min(members, load.least_within(load.inflow, USABLE))
    return Needed(members, keep_up, round(drain) if np.isfinite(drain) else None)


def too_much_for_any(model: GroupModel) -> Longs:
    """The partitions that get more than a usual member can do, which no number of members changes. Never one whose holder is on time with it."""
    capacity = capacity_of(model)
    if capacity is None:
        return np.zeros(0, np.int64)
    late = model.lateness >= LatenessLimits.of(model.policy).on_time
    rows = np.flatnonzero(model.counted & (model.columns.usual_rates * model.cost >= capacity))
    return rows[late[model.owner[rows]]]


def enough_now(model: GroupModel, load: GroupLoad) -> int:
    """How many members are enough for the inflow of the last minute; 0 where no late member gets more than it can do now. The usual
    inflow is the median of five minutes: for half of them after a rise it is what arrived before."""
    late = model.lateness >= LatenessLimits.of(model.policy).on_time
    later = late & (model.inflow.high > model.capacity.rate.mid)
    return load.grown(_grown(model)).enough() if later.any() else 0


def _grown(model: GroupModel) -> float:
    """The inflow of the last minute over the usual one, at least 1. Of the whole group: a minute of one partition is mostly noise."""
    by_minute = (model.columns.rates * model.cost)[:, model.counted].sum(axis=1)
    usual = max(
        median(by_minute.tolist()), float((model.columns.usual_rates * model.cost)[model.counted].sum())
    )
    return max(1.0, float(by_minute[0]) / usual) if usual > 0 else 1.0


def capacity_of(model: GroupModel) -> float | None:
    """Of a usual member, work/s: measured now, else what was measured last."""
    found = model.capacity.usual
    # After the members were on time for hours no busy window is left: the number must not vanish from the autoscaler.
    if found <= 0 and model.state.useful is not None:
        found = model.state.useful.capacity
    return round(found, 3) if found > 0 else None


def load_of(model: GroupModel, capacity: float) -> GroupLoad:
    """The group's load as units that any member may get."""
    rows = np.flatnonzero(model.counted & ~_waits_for_transaction(model) & ~_held_by_silent(model))
    units = model.columns.moved_together(rows)
    backlog = units.sums((model.columns.backlog * model.cost)[rows])
    inflow = units.sums((model.columns.usual_rates * model.cost)[rows])
    # The peak of the group by today's shares: the partitions' own peaks need not fall together, and would add up to too much.
    peak = inflow * _peak_ratio(model, rows)
    pile = piles_of(model, units.first)
    return GroupLoad(backlog, inflow, peak, pile, capacity, False, model.policy.hold).grown(1.0)


def _waits_for_transaction(model: GroupModel) -> Flags:
    lags = model.lags
    return np.asarray((lags.stable != UNKNOWN) & (lags.stable < lags.end) & (lags.committed >= lags.stable))


def _held_by_silent(model: GroupModel) -> Flags:
    """Partitions of members that have not moved while others did: perhaps they hang."""
    silent = np.array([model.member_state(at).silent_s > 0 for at in range(len(model.names))], bool)
    return np.asarray((model.owner >= 0) & silent[np.maximum(model.owner, 0)])


def _peak_ratio(model: GroupModel, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> float:
    """The greatest ten minutes of inflow of the last two hours over the inflow now, at least 1."""
    grown = np.zeros(OLDEST_MS // RECENT_MS)
    for code in np.unique(model.lags.topic[rows]).tolist():
        history = model.seen.ends[model.lags.topics[code]]
        mine = model.lags.partition[rows[model.lags.topic[rows] == code]]
        times = history.last - RECENT_MS * np.arange(len(grown), -1, -1, dtype=np.float64)
        times = np.maximum(times, history.first)
        grown += np.diff(history.interpolated(mine, times), axis=0).sum(axis=1)
    now = float(model.columns.usual_rates[rows].sum())
    return max(1.0, float(grown.max()) * 1000 / RECENT_MS / now) if now > 0 else 1.0
