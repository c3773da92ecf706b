"""What a member can do, from what it did while it was certainly busy.

The certificate: a record that was in the log at t0 and is still uncommitted at t1 kept its member busy through (t0, t1),
whichever partition the member was serving (clients serve one partition's fetch after another). So the time between two commits
of a member counts if some partition that was served in the window has such a record. A window is a run of such times: held
against the whole window, a client that commits once a block would never be measured, as a block holds all that waited at its fetch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, median, stdev

import numpy as np

from kagent.detect.commit_gaps import LONGEST_GAP_S, USUAL_GAP_S
from kagent.detect.inflow import Interval
from kagent.detect.state import Window
from kagent.lag.chance import CLEARLY, NOT_CHANCE, TAIL, Z
from kagent.lag.commits import GAPS
from kagent.lag.log_ends import LATELY_MS
from kagent.lag.measure import Floats
from kagent.lag.time_units import SECOND_MS
from kagent.policy import Policy, shortened

LONGEST_S = CLEARLY * USUAL_GAP_S
"""Without progress for this long (90 s) a member has paused. A window lasts three commit gaps (NOT_CHANCE), at most this, and at least three
of the policy's ``cadence``: a shorter one measures the size of polls."""
RARE_GAP_S = LONGEST_S / NOT_CHANCE
"""Above this gap even the longest window is less than three gaps; a half-covered one then counts with its mean busy length."""
MOST, RECENT_MS, OLDEST_MS = GAPS, round(TAIL * LATELY_MS), round(TAIL * LONGEST_GAP_S * SECOND_MS)
"""Windows kept; of the last ten minutes if there are three: a slow leak shows, noise does not. A group that works once an hour is known by the
last time; what is older than two hours tells nothing of now, and what is known now promises nothing beyond two hours."""
PRIOR_SD, PRIOR_WEIGHT = 0.2, NOT_CHANCE - 1
"""Two windows must not be certain."""
STUDENT = {3: 2.92, 4: 2.35}
"""Of so few runs of windows: Student's t of two and three degrees of freedom, for as much certainty as Z gives of many."""
RESOLVED = 1 + Z * PRIOR_SD / sqrt(MOST)
"""What twelve windows resolve, ten per cent: a speed, an inflow or a time to catch up that differs by less is the same."""
USABLE = 0.85
"""Of its speed a member should get at most this share: with all of it a backlog never drains, and the inflow is never even."""


Estimate = tuple[float, float, float]
"""Work/s at least, likeliest and at most."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Work/s per member. ``measured``: whether it was ever busy; else it is taken from its peers, or from what it keeps up
    with."""

    rate: Interval
    measured: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    @property
    def usual(self) -> float:
        """Of a usual member, work/s: the median of those that were ever busy; 0 where none was."""
        speeds = self.rate.mid[self.measured]
        return median(speeds.tolist()) if len(speeds) else 0.0


def window_length_s(gap_s: float, policy: Policy) -> float:
    """How long a window lasts at least, by the member's median gap between commits."""
    least_s, most_s = (shortened(s, policy.hold) for s in (NOT_CHANCE * policy.cadence, LONGEST_S))
    return min(max(NOT_CHANCE * gap_s, least_s), most_s)


def kept(windows: Sequence[Window], now: int) -> tuple[Window, ...]:
    """The windows that are young enough, the newest last."""
    return tuple(w for w in windows if now - w.until <= OLDEST_MS)[-MOST:]


def pooled_variance(seen: float, count: int, prior: float = PRIOR_SD**2) -> float:
    """The variance of this many windows together with what is known of windows beforehand."""
    return (count * seen + PRIOR_WEIGHT * prior) / (count + PRIOR_WEIGHT)


def waits_on_purpose(windows: Sequence[Window], now: int, rise_s: float) -> bool:
    """Whether a member may do no more than arrives though it could: it is late, and neither later nor less late than some minutes ago. Then
    its windows show what it can do at least."""
    late = [w.late_s for w in recent(windows, now) if w.late_s is not None]
    half = len(late) // 2
    # Medians: a sample of the log end that is missing moves the lateness of one look.
    return half >= NOT_CHANCE - 1 and abs(median(late[half:]) - median(late[:half])) < rise_s


def recent(windows: Sequence[Window], now: int) -> Sequence[Window]:
    """The windows that count: those of the last ten minutes, or the newest three."""
    if not busy_lately(windows, now):
        return windows[-NOT_CHANCE:]
    return [w for w in windows if now - w.until <= RECENT_MS]


def busy_lately(windows: Sequence[Window], now: int) -> bool:
    """Whether the last ten minutes have enough windows to tell of them."""
    return len(windows) >= NOT_CHANCE and now - windows[-NOT_CHANCE].until <= RECENT_MS


def samples(windows: Sequence[Window], cost: Mapping[str, float], now: int, together: int = 1) -> list[float]:
    """Work/s of each window that counts, or of each run of ``together`` of them."""
    use = recent(windows, now)
    runs = [use[at : at + together] for at in range(len(use) % together, len(use), together)]
    return [_rate(run, cost) for run in runs]


def _rate(run: Sequence[Window], cost: Mapping[str, float]) -> float:
    done = sum(cost.get(t, 1.0) * n for w in run for t, n in w.records.items())
    return done / sum(w.seconds for w in run)


def done_per_s(windows: Sequence[Window], now: int) -> dict[str, float]:
    """Records/s by topic over the windows that count."""
    use = recent(windows, now)
    seconds = sum(w.seconds for w in use)
    topics = sorted({t for w in use for t in w.records})
    return (
        {t: done / seconds for t in topics if (done := sum(w.records.get(t, 0) for w in use))}
        if seconds > 0
        else {}
    )


def variance(rates: Sequence[float]) -> float:
    """The relative variance of a member's windows; 0 of one that did nothing."""
    mid = median(rates)
    # 1.4826 · MAD estimates the standard deviation of normal noise: https://en.wikipedia.org/wiki/Median_absolute_deviation
    return float((1.4826 * median(abs(r - mid) for r in rates) / mid) ** 2) if mid > 0 else 0.0


def noise_of(members: Sequence[Sequence[float]]) -> float:
    """The relative variance of a window in this group: what its members' windows show, together with what is known beforehand.

    Members run the same client on the same topics, so how far a window strays is learned from all of them; each one's own windows
    alone would be too few to tell for many minutes.
    """
    counts = [len(rates) for rates in members]
    total = sum(counts)
    seen = sum(n * variance(rates) for n, rates in zip(counts, members, strict=True) if n)
    return pooled_variance(seen / total, total) if total else PRIOR_SD**2


def estimate(rates: Sequence[float], noise: float) -> Estimate | None:
    """At least, likeliest and at most: the median, so that a pause is one window and no slow machine; None without any.

    ``noise``: the relative variance of a window in its group; a member whose own windows stray further has its own.
    """
    if not rates:
        return None
    mid, count = median(rates), len(rates)
    if mid <= 0:
        return 0.0, 0.0, 0.0
    error = Z * max(variance(rates), noise) ** 0.5 / count**0.5
    return mid * max(0.0, 1 - error), mid, mid * (1 + error)


def of_runs(windows: Sequence[Window], cost: Mapping[str, float], now: int) -> Estimate | None:
    """The estimate by what the member did in each run of three windows; None below three runs.

    One that is quick and slow by turns, as by a limit of requests a minute, does something else in each window and much the same in each
    run. So the error of a mean of values that depend on each other is estimated: batch means,
    Schmeiser 1982, https://doi.org/10.1287/opre.30.3.556.
    """
    rates = samples(windows, cost, now, NOT_CHANCE)
    mid = mean(rates) if len(rates) in STUDENT else 0.0
    if mid <= 0:
        return None
    seen = stdev(rates) ** 2 / mid**2
    known = max(seen, pooled_variance(seen, len(rates), PRIOR_SD**2 / NOT_CHANCE))
    error = STUDENT[len(rates)] * sqrt(known / len(rates))
    return mid * max(0.0, 1 - error), mid, mid * (1 + error)


def of_windows(
    members: Sequence[Sequence[Window]], cost: Mapping[str, float], now: int, keeps_up_with: Floats
) -> Capacity:
    """The capacity of every member, from its busy windows."""
    young = _of_one_time([kept(windows, now) for windows in members])
    rates = [samples(windows, cost, now) for windows in young]
    noise = noise_of(rates)
    singly, by_runs = [estimate(each, noise) for each in rates], [of_runs(each, cost, now) for each in young]
    return of_members([_surer(a, b) for a, b in zip(singly, by_runs, strict=True)], keeps_up_with)


def _of_one_time(members: Sequence[Sequence[Window]]) -> list[Sequence[Window]]:
    """The windows of the members that were busy lately as compared with the others, in their order; none of the others. What slows all of them for a while,
    as a database that they share, makes no member slow that was busy only then."""
    newest = max((windows[-1].until for windows in members if windows), default=0)
    return [windows if windows and newest - windows[-1].until <= RECENT_MS else () for windows in members]


def _surer(singly: Estimate | None, by_runs: Estimate | None) -> Estimate | None:
    """The estimate with less doubt."""
    if singly is None or by_runs is None or singly[1] <= 0:
        return singly
    return min(singly, by_runs, key=lambda each: (each[2] - each[0]) / each[1])


def of_members(found: Sequence[Estimate | None], keeps_up_with: Floats) -> Capacity:
    """The capacity of every member, from the estimates of those that were ever busy. One that was never busy can do at least what it keeps up with, and is taken for a usual one
    where some member was busy; at most it can do what the fastest can."""
    measured = np.array([f is not None for f in found], bool)
    low, mid, high = (np.array([f[i] if f else 0.0 for f in found]) for i in range(3))
    if measured.any():
        usual = median(mid[measured].tolist())
        # It may be one that was never busy: what that keeps up with, another machine can do as well.
        fastest = float(np.where(measured, high, keeps_up_with).max())
    else:
        usual = fastest = 0.0
    # Replicas of one deployment are alike until one of them is measured to be different.
    unknown_mid = np.maximum(usual, keeps_up_with)
    return Capacity(
        Interval(
            np.where(measured, low, keeps_up_with),
            np.where(measured, mid, unknown_mid),
            np.where(measured, high, np.maximum(fastest, unknown_mid)),
        ),
        measured,
    )
