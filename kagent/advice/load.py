"""How the work lies on the members: per member work, time behind, and the skew that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kagent.advice.lag import Flags, Floats, Lags, Longs
from kagent.advice.rates import Rates

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

    @cached_property
    def skew(self) -> float:
        """Greatest over mean work, never overstated: the greatest counts at its least, the others at their most."""
        at = self.greatest
        if at == NONE or int(self.known.sum()) < 2:
            return 1.0
        work = np.where(self.known, self.high, 0.0)
        work[at] = self.low[at]
        return max(1.0, float(self.low[at] * self.known.sum() / work.sum()))


def weigh(lags: Lags, names: Sequence[str], rates: Rates, age: Floats, without: Flags | None = None) -> Load:
    """The load of the members. ``age``: time lag per partition in s. ``without``: partitions left out (pinned)."""
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
    oldest = np.zeros(count)
    np.maximum.at(oldest, lags.owner[lagging], age[lagging])
    with np.errstate(divide="ignore", invalid="ignore"):
        behind = np.where(inflow > 0, lag / inflow, oldest)
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


def _with_size(load: Load, size: Floats) -> Load:
    return replace(load, size=size)


def _per_record(lags: Lags, topics: Sequence[str], costs: Floats | None) -> Floats:
    if costs is None:
        return np.ones(len(lags))
    by_name = dict(zip(topics, costs.tolist(), strict=True))
    table = np.array([by_name.get(t, 0.0) for t in lags.topics] or [0.0])
    return table[lags.topic]
