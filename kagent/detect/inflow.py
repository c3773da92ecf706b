"""How much arrives: records per second of every partition in the last five minutes, minute by minute.

Medians do not add up, so a caller that asks for the inflow of a set of partitions (a member, a plan's new owner) gets the sums
first and the estimate then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.lag.log_ends import LATELY_MS, PAUSE, EndHistory
from kagent.lag.measure import Floats, Lags
from kagent.lag.time_units import MINUTE_MS

MINUTES = LATELY_MS // MINUTE_MS


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimates of one quantity per member: at least, likeliest, at most."""

    low: Floats
    mid: Floats
    high: Floats


def minutes(lags: Lags, ends: Mapping[str, EndHistory]) -> Floats:
    """Records/s of every partition in each of the last minutes, the newest first: an array [minute, partition]. Fewer rows
    while the history is short; a single row over what there is below a minute; zeros without any."""
    spans = [e.last - e.first for name in lags.topics if (e := ends[name]).samples > 1]
    # The shortest history decides, so that all topics have the same minutes and their rows can be summed.
    span = min(spans, default=0)
    count = min(MINUTES, span // MINUTE_MS)
    length = MINUTE_MS if count else span
    out = np.zeros((max(1, count), len(lags)))
    # Less than two intervals between samples give no rate.
    if length < PAUSE:
        return out
    for code, name in enumerate(lags.topics):
        here = lags.topic == code
        history = ends[name]
        # Back from the newest sample, not from now: time that no sample covers would lower the rate.
        times = history.last - length * np.arange(max(1, count), -1, -1, dtype=np.float64)
        # Log ends at the minutes' bounds; their differences are records per minute, and [::-1] puts the newest minute first.
        grown = np.diff(history.interpolated(lags.partition[here], times), axis=0)[::-1]
        out[:, here] = grown * (1000.0 / length)
    return out


def totals(codes: npt.NDArray[Any], weights: Floats, count: int) -> Floats:
    """The sum of the weights per code, all of them 0 or above."""
    return np.asarray(np.bincount(codes, weights, count), np.float64)


def summed(rates: Floats, owner: npt.NDArray[np.int32], members: int, weight: Floats) -> Floats:
    """Work/s per minute and member: [minute, member]. Partitions without an owner count nowhere."""
    held = owner >= 0
    weighted = rates[:, held] * weight[held]
    return np.stack([totals(owner[held], row, members) for row in weighted])


def estimate(by_minute: Floats) -> Interval:
    """The inflow of sums [minute, member]: the last minute and the median of five bound it. So a burst that ended a minute ago
    pulls ``low`` down at once, and one that began a minute ago does not pull it up."""
    last, usual = by_minute[0], np.median(by_minute, axis=0)
    return Interval(np.minimum(last, usual), usual, np.maximum(last, usual))


def since(
    stretches: Mapping[int, tuple[int, int]],
    lags: Lags,
    ends: Mapping[str, EndHistory],
    owner: npt.NDArray[np.int32],
) -> Floats:
    """The mean records/s of every partition over its owner's stretch of time (code → from and until, ms); 0 for other owners."""
    out = np.zeros(len(lags))
    for at, (began, last) in stretches.items():
        for code in np.unique(lags.topic[owner == at]).tolist():
            rows = np.flatnonzero((owner == at) & (lags.topic == code))
            times = np.array([began, last], np.float64)
            grown = np.diff(ends[lags.topics[code]].interpolated(lags.partition[rows], times), axis=0)[0]
            out[rows] = grown * 1000 / (last - began)
    return out
