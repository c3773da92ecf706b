"""Whether a swing of the inflow explains by chance that a member is late.

A member near its limit falls behind whenever more arrives for some minutes than usual, and catches up when they are over. How far
one minute's inflow strays from the usual one is in the history of log ends before the member fell behind. A swing is taken to last
on with the minutes' own memory: it is over within the next minute with probability 1 - 1/e, so one that is twice as strange, or lasts
some minutes more, is a change and no swing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, log, sqrt
from statistics import NormalDist, quantiles

import numpy as np

from kagent.detect.capacity import RECENT_MS
from kagent.detect.late_member import LateMember
from kagent.lag.chance import RARE, Z
from kagent.lag.log_ends import BY_THE_MINUTE
from kagent.lag.measure import Floats
from kagent.lag.time_units import DAY_MS, MINUTE_MS

FEWEST = RECENT_MS // MINUTE_MS
"""The fewest minutes that tell how an inflow swings, of those for each of which log ends are kept: as many as tell of a speed."""
DRAWS = RARE * DAY_MS // MINUTE_MS
"""Minutes in RARE days: what comes by chance less often is a change."""
APART = 2
"""Minutes between two whose change is taken: their means have a fifth in common, where those of neighbours have half. So little is left of how
long an inflow lasts on, that one that changes each minute seems to stray by 1.3 of what its minutes do, by neighbours by 1.7."""
CHANGE = sqrt(2 * (2 * exp(-1) - (1 - exp(-1)) ** 2 * exp(1 - APART)))
"""How far the change between the means of two minutes strays, of what the inflow does (1.09), where an inflow lasts on for a minute with
probability 1/e: twice the variance of a mean less the covariance of the two."""


@dataclass(frozen=True, slots=True)
class Swings:
    """Work/s of a member: the usual minute, its standard deviation, and the mean from when it fell behind, ``lasted_s`` ago, until
    it was latest. ``rare_after_s``: how long such an inflow may last before it is no swing."""

    usual: float
    deviation: float
    since: float
    lasted_s: float
    rare_after_s: float


def rare_after_s(strange: float, draws: float) -> float:
    """After how many seconds an inflow this many standard deviations above the usual one comes less than once in ``draws`` minutes."""
    likely = erfc(strange / sqrt(2)) / 2
    # A minute's inflow lasts on with probability 1/e: minutes in which it stays are an exponential law's.
    return MINUTE_MS / 1000 * log(max(1.0, draws * likely))


def of(member: LateMember) -> Swings | None:
    """The swings of what the member holds now; None where too little is known of the time before it fell behind."""
    known, began = member.model.member_state(member.at), member.on_time_at
    # A backlog that drains has its swing behind it.
    peak = known.backlog.most_at if known.backlog else known.time
    times, arrived = _by_minute(member, began, known.time - BY_THE_MINUTE)
    if len(times) <= FEWEST or peak - began < MINUTE_MS:
        return None
    # At most: what it may have been able to do is no excess.
    usual_until = _excess_began(times, arrived, member.speed[2])
    rates = np.diff(arrived[: usual_until + 1]) * 1000 / MINUTE_MS
    usual, spread = float(np.median(rates)), deviation(rates)
    since = float(np.diff(member.arrived(np.array([began, peak], np.float64)))[0]) * 1000 / (peak - began)
    rare_s = rare_after_s((since - usual) / spread, DRAWS * len(member.model.names)) if spread > 0 else 0.0
    return Swings(usual, spread, since, (known.time - began) / 1000, member.model.policy.evidence * rare_s)


def _by_minute(member: LateMember, until: int, oldest: int) -> tuple[Floats, Floats]:
    """Each minute between two times (ms), as far back as log ends are known, and the work that had arrived by then."""
    model = member.model
    minutes = max(0, (until - max(model.known_since(member.rows), oldest)) // MINUTE_MS)
    times = until - MINUTE_MS * np.arange(minutes, -1, -1, dtype=np.float64)
    return times, member.arrived(times)


def _excess_began(times: Floats, arrived: Floats, speed: float) -> int:
    """Which of these times is the one since which more has arrived than the member does; never one of the first third.

    A member that gets a little too much is on time for minutes, and the new inflow in them is none of the swings of the usual one. It is
    where the sum of the excess is least (CUSUM: Page, Continuous inspection schemes, Biometrika 41, 1954).
    """
    excess = arrived - speed * times / 1000
    # The first ten of thirty minutes; where fewer are known, as in a group's first half hour, a jump in the tenth is in no third. And two changes
    # are the fewest that have quartiles.
    first = max(len(times) * FEWEST * MINUTE_MS // BY_THE_MINUTE, APART + 2)
    return first + int(np.argmin(excess[first:]))


def deviation(rates: Floats) -> float:
    """The standard deviation of normal noise at most (95 %), by what lies between the quartiles of its changes: a burst of some minutes must not hide itself.

    Changes between minutes, not the minutes themselves: an inflow that rises for half an hour has not swung (von Neumann et al.,
    The mean square successive difference, Annals of Mathematical Statistics 12, 1941).
    """
    low, _, high = quantiles((rates[APART:] - rates[:-APART]).tolist(), method="inclusive")
    first, _, last = NormalDist().quantiles()
    spread: float = (high - low) / (last - first) / CHANGE
    return spread * (1 + Z / sqrt(len(rates)))


def explanation(member: LateMember) -> Swings | None:
    """The swing that explains so far that the member is late; None where none does, or where it is too rare for one."""
    swings = of(member)
    # What usually arrives is more than it can do, or what arrived since is not: it is not a swing that makes it late.
    if swings is None or swings.usual >= member.speed[1] or swings.since <= member.speed[0]:
        return None
    return swings if swings.lasted_s < swings.rare_after_s else None
