"""How the work lies on the members: per member work, time behind, and the skew that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kagent.advice.rates import Rates
from kagent.lag.measure import Flags, Floats, Lags, Longs

NONE = -1


@dataclass(frozen=True)
class Load:
    """One entry per member, by its code in the roster.

    ``low``, ``high``: work at least and at most, in ``unit``; ``lag``: records, at least; ``inflow``: records/s;
    ``pressure``: seconds of work that arrive per second, nan where costs are unknown; ``behind``: seconds, at least;
    ``commit``: time of its newest commit on a partition with lag; ``known``: whether its commits tell of now.
    ``size``: work of each partition as it counts for a plan. ``exact``: whether work of different topics adds up.
    """

    names: Sequence[str]
    unit: str
    exact: bool
    partitions: Longs
    lag: Floats
    low: Floats
    high: Floats
    inflow: Floats
    pressure: Floats
    behind: Floats
    commit: Longs
    known: Flags
    size: Floats

    @cached_property
    def greatest(self) -> int:
        """The member with the most work for certain, NONE if nobody has any."""
        if not len(self.low):
            return NONE
        low = np.where(self.known, self.low, -1.0)
        at = int(np.argmax(low))
        return at if low[at] > 0 else NONE

    def share(self, at: int) -> float:
        """A member's work at its least over the mean work with the others at their most."""
        known = int(self.known.sum())
        if at == NONE or known < 2 or not self.known[at] or self.low[at] <= 0:
            return 1.0
        work = np.where(self.known, self.high, 0.0)
        work[at] = self.low[at]
        return max(1.0, float(self.low[at] * known / work.sum()))

    @cached_property
    def skew(self) -> float:
        """Greatest over mean work, never overstated: the greatest counts at its least, the others at their most."""
        return self.share(self.greatest)


def weigh(
    lags: Lags, names: Sequence[str], rates: Rates, ages: tuple[Floats, Flags], without: Flags | None = None
) -> Load:
    """The load of the members. ``ages``: time lag per partition in s, and where it is only ``≥``. ``without``: partitions left out (pinned)."""
    count = len(names)
    use = lags.counted if without is None else lags.counted & ~without
    owner = np.where(use, lags.owner, 0)
    topics = [t for code, t in enumerate(lags.topics) if (use & (lags.topic == code) & (lags.high > 0)).any()]
    costs = rates.costs(topics)
    per_row = _per_record(lags, topics, costs)
    speed = rates.speeds(names)

    def total(column: npt.NDArray[np.generic]) -> Floats:
        return np.bincount(owner, np.where(use, column, 0), count).astype(np.float64)

    lag, inflow = total(lags.low), total(lags.inflow)
    old = total(~lags.fresh & (lags.high > 0)) > 0
    commit = np.zeros(count, np.int64)
    lagging = use & (lags.low > 0)
    np.maximum.at(commit, lags.owner[lagging], lags.time[lagging])
    behind = _behind(lags, ages, lagging, use, count)
    low = total(lags.low * per_row) / speed
    high = total(lags.high * per_row) / speed
    unknown = costs is None
    load = Load(
        names=tuple(names),
        unit="records" if unknown else "seconds",
        exact=not unknown or len(topics) <= 1,
        partitions=np.bincount(lags.owner[lags.owner >= 0], minlength=count),
        lag=lag,
        low=low,
        high=high,
        inflow=inflow,
        pressure=np.full(count, np.nan) if unknown else total(lags.inflow * per_row) / speed,
        behind=np.where(lag > 0, behind, 0.0),
        commit=commit,
        known=~old,
        size=np.zeros(0),
    )
    at_least = np.where(lags.owner == load.greatest, lags.low, lags.high)
    size = np.where(use, at_least, 0) * per_row
    return _with_size(load, size)


def _behind(lags: Lags, ages: tuple[Floats, Flags], lagging: Flags, use: Flags, count: int) -> Floats:
    """Seconds by which each member is behind, at least: in its inflow of the topic that is worst, but never more than
    the age of its oldest unread record where that is known; by that age alone where nothing flows in."""
    age, beyond = ages
    behind = np.zeros(count)
    for code in np.unique(lags.topic[lagging]).tolist():
        here = lagging & (lags.topic == code)
        owner = lags.owner[here]
        lag = np.bincount(owner, lags.low[here], count)
        of = use & (lags.topic == code)
        inflow = np.bincount(lags.owner[of], lags.inflow[of], count)
        oldest = np.zeros(count)
        np.maximum.at(oldest, owner, age[here])
        open_ = np.zeros(count, bool)
        np.logical_or.at(open_, owner, beyond[here])
        with np.errstate(divide="ignore", invalid="ignore"):
            late = np.where(inflow > 0, lag / inflow, oldest)
        behind = np.maximum(behind, np.where(open_, late, np.minimum(late, oldest)))
    return behind


def _with_size(load: Load, size: Floats) -> Load:
    return replace(load, size=size)


def _per_record(lags: Lags, topics: Sequence[str], costs: Floats | None) -> Floats:
    if costs is None:
        return np.ones(len(lags))
    by_name = dict(zip(topics, costs.tolist(), strict=True))
    table = np.array([by_name.get(t, 0.0) for t in lags.topics] or [0.0])
    return table[lags.topic]
