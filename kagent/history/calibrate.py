"""Threshold and least time behind for each group, proposed from what its own past would have made of them.

A grid of policies is replayed through the judgement. Of two that would have been quiet about what mended itself, the more
watchful is better: the proposal is the lowest threshold, then the lowest ``min_behind``, without flaps, without incidents
that ended by themselves, and with at most ``PER_WEEK`` openings a week.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kagent.policy import Policies, Policy

# 15 pairs with BEHINDS: each is one more replay of the whole range.
THRESHOLDS = (1.25, 1.5, 2.0, 3.0, 5.0)
BEHINDS = (30.0, 60.0, 300.0)
PER_WEEK = 3.0
WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class Tried:
    """What one pair would have led to."""

    threshold: float
    min_behind: float
    openings: int
    flaps: int
    by_itself: int

    def fits(self, weeks: float) -> bool:
        """Whether people would have kept it."""
        # At least one opening is granted: over a range of hours, PER_WEEK would allow none.
        return not self.flaps and not self.by_itself and self.openings <= max(1.0, PER_WEEK * weeks)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One group's pair (None: none of those tried would have been quiet), and all that was tried."""

    cluster: str
    group: str
    chosen: Tried | None
    tried: tuple[Tried, ...]

    def sentence(self) -> str:
        """Why this pair."""
        if self.chosen is None:
            return "no pair fits: each would have flapped, opened for lateness that ended by itself, or opened too often"
        chosen = (self.chosen.threshold, self.chosen.min_behind)
        rejected = [t for t in self.tried if (t.threshold, t.min_behind) < chosen]
        if not self.chosen.openings and not rejected:
            return "even the most sensitive pair that was tried would have opened nothing"
        if not rejected:
            would = f"it would have opened {_times(self.chosen.openings)}, never for lateness that ended by itself"
            return f"the most sensitive pair that was tried; {would}"
        worst = rejected[-1]
        return (
            f"this pair would have opened {_times(self.chosen.openings)}; threshold {worst.threshold:g} with {worst.min_behind:g} s "
            f"{_times(worst.openings)}, {worst.by_itself} of them for lateness that ended by itself, with {worst.flaps} flaps"
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def grid(base: Policies) -> dict[str, Policies]:
    """The policies to replay, named by what :func:`propose` reads back."""
    return {
        f"{threshold}/{behind}": _with(base, threshold, behind)
        for threshold in THRESHOLDS
        for behind in BEHINDS
    }


def _with(base: Policies, threshold: float, behind: float) -> Policies:
    def tried(own: Policy) -> Policy:
        lower = min(own.lower_threshold, threshold)
        return replace(own, threshold=threshold, lower_threshold=lower, min_behind=behind)

    made = Policies()
    made.base = tried(base.base)
    # All else is the group's own: its `hold`, `kind` or `allowed_lag` decide with the two what opens.
    made.patterns = [entry._replace(policy=tried(entry.policy)) for entry in base.patterns]
    made.ignored = base.ignored
    return made


def propose(results: Iterable[Mapping[str, Any]], length_ms: int) -> list[Proposal]:
    """A proposal per group from the rows of :func:`kagent.history.backtest.backtest` over :func:`grid`."""
    of: dict[tuple[str, str], list[Tried]] = defaultdict(list)
    for row in results:
        threshold, behind = map(float, row["policy"].split("/"))
        of[row["cluster"], row["group"]].append(
            Tried(threshold, behind, row["openings"], row["flaps"], row["by_itself"])
        )
    weeks = length_ms / WEEK_MS
    return [_proposal(cluster, group, tried, weeks) for (cluster, group), tried in sorted(of.items())]


def _proposal(cluster: str, group: str, tried: list[Tried], weeks: float) -> Proposal:
    ordered = tuple(sorted(tried, key=lambda t: (t.threshold, t.min_behind)))
    # Ordered from the most watchful pair on, so the first that fits is the lowest that people would have kept.
    return Proposal(cluster, group, next((t for t in ordered if t.fits(weeks)), None), ordered)
