"""How long the absence of a commit means nothing: what every rule about partitions and members that stand rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kagent.detect.committers import Units
from kagent.lag.commits import TopicCommits
from kagent.lag.measure import Lags, Longs
from kagent.lag.observation import Observation

USUAL_GAP_S = 60.0
"""Clients commit every few seconds to a minute: what lasts for less says nothing where no gap of the member's own is known, or where
it is shorter: that a member commits nothing, or that kagent does not see it."""
LONGEST_GAP_S = 3600.0
"""Some groups do once an hour what they do: so long they are watched before it is known how they are. A standstill must last as long
where it is unknown how often its group commits, or how long a fetch takes it, and in the first hour lateness needs more evidence."""


def usual_gaps_ms(
    seen: Observation, lags: Lags, units: Units, committed_at: Longs, waiting_since: Longs
) -> dict[str, float | None]:
    """Of each topic, the usual gap between commits, ms: the median; None until three are known, or where most may be longer than any
    that has ended.

    ``committed_at``: of each member's latest commit, ms; ``waiting_since``: of each partition, ms, 0 where nothing is unread.
    A gap of a member with something unread that still goes on counts as at least as long (Kaplan and Meier, 1958): of members that
    commit every ten minutes, each at a time of its own, only gaps that were short enough have ended in the first ten.
    """
    last, waits = lags.time.copy(), waiting_since > 0
    # Who reads a partition of a group without members may be unknown: its own commit says when that was last heard of.
    if units.known:
        last[waits] = committed_at[units.owner[waits]]
    ongoing = np.where(waits, (seen.as_of or seen.now) - np.maximum(waiting_since, last), 0)
    found: dict[str, float | None] = dict.fromkeys(lags.topics)
    for code, name in enumerate(lags.topics):
        commits = seen.commits.get(name)
        cadence = commits.cadence if commits is not None else None
        if commits is not None and cadence is not None:
            longer = (lags.topic == code) & (ongoing > cadence)
            going_on = _longest(units.owner[longer], last[longer], ongoing[longer])
            found[name] = _usual_ms(commits, going_on) if going_on else cadence
    return found


def _longest(owner: npt.NDArray[np.int32], last: Longs, ongoing: Longs) -> list[int]:
    """The longest gap of each that commits for itself: a member, or partitions that were committed at one time."""
    longest: dict[tuple[int, int], int] = {}
    for member, time, gap in zip(owner.tolist(), last.tolist(), ongoing.tolist(), strict=True):
        longest[member, time] = max(gap, longest.get((member, time), 0))
    return list(longest.values())


def _usual_ms(commits: TopicCommits, ongoing: Sequence[int]) -> float | None:
    """The median of the gaps that have ended and of these, which are longer than it and go on."""
    # The row keeps the latest gaps only; each stands for as many as have ended.
    ended, weight = sorted(commits.gaps), max(1.0, commits.commits / len(commits.gaps))
    longer_share = 1.0
    for at, gap in enumerate(ended):
        going_on = weight * (len(ended) - at) + sum(each > gap for each in ongoing)
        longer_share *= 1 - weight / going_on
        if longer_share <= 0.5:
            return gap
    return None
