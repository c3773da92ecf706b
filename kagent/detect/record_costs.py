"""What a record of each topic costs, from what members did while they were certainly busy.

Each busy window says how many records of each topic took how many seconds. Where members always read the same mix of topics, no window shows
which of them costs the time; then costs are unknown, and a decision holds only if it does for every cost that the windows allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from kagent.detect.capacity import PRIOR_SD, PRIOR_WEIGHT, RESOLVED
from kagent.detect.state import Window
from kagent.lag.bound import Bound
from kagent.lag.chance import NOT_CHANCE, TAIL, UNSEEN, Z
from kagent.lag.measure import Floats

COST_SD = log(TAIL)
"""Before anything is known: records of one topic rarely take more than twice, or less than half, of what those of another take."""
EXACT_SD = UNSEEN / Z
"""No window is known better (3 %): those of one member stray by 0.6 % in the median of 1,775 looks at members of recorded real groups, by 2.8 % in one of ten."""
STEPS: Bound = 20
"""That takes four to eight steps; where it does not, costs as near as these come are good enough."""
SHARES = int(1 / (RESOLVED - 1))
"""A topic's share of a member's time is asked in tenths, which is what twelve windows resolve (RESOLVED): costs differ by orders of magnitude, shares of the
time do not. In quarters, 7 of 10 groups with a topic of 84 % were called right, in tenths 15 of 16."""


@dataclass(frozen=True)
class BusyMix:
    """What members do of each topic. ``rows`` ([window, topic]): records of the busy windows, divided by what a window of its length
    usually holds: residuals are relative then, and a long window weighs no more than a short one. ``bounds`` ([member, topic]): the same of
    what arrives at members that are on time, and so takes them no more than all of their time."""

    topics: tuple[str, ...]
    rows: Floats
    bounds: Floats

    @classmethod
    def of(cls, members: Sequence[Sequence[Window]], on_time: Sequence[Mapping[str, float]] = ()) -> BusyMix:
        """From the busy windows of all members, and the records/s by topic that arrive at those that are on time."""
        windows = [w for some in members for w in some]
        found = [{t: n / w.seconds for t, n in w.records.items()} for w in windows]
        topics = tuple(sorted({t for mix in (*found, *on_time) for t, n in mix.items() if n > 0}))
        rows, bounds = (
            np.array([[mix.get(t, 0.0) for t in topics] for mix in some], np.float64).reshape(
                len(some), len(topics)
            )
            for some in (found, on_time)
        )
        usual = sum(w.seconds for w in windows) / max(sum(sum(w.records.values()) for w in windows), 1)
        return cls(topics, rows * usual, bounds * usual)

    @cached_property
    def costs(self) -> dict[str, float]:
        """Relative cost of a record by topic, mean 1: those that explain the lengths of the windows and are near each other.

        With one topic, or where the mix of topics never changes, they stay near 1.
        """
        if len(self.topics) < 2 or not len(self.rows):
            return dict.fromkeys(self.topics, 1.0)
        logs = np.zeros(len(self.topics))
        for _ in range(STEPS):
            step = self._step(logs)
            logs += np.clip(step, -1, 1)
            if abs(step).max() < EXACT_SD:
                break
        found = np.exp(logs) * self._bound(np.exp(logs))
        # Else the speeds that were stored before would change their unit with every refit.
        return dict(zip(self.topics, (found / found.mean()).tolist(), strict=True))

    def _bound(self, cost: Floats) -> Floats:
        """By how much to lower these costs of topics of which the busy windows tell nothing: so that every member that is on time has the time for
        them. Of the others the windows tell, and who does more than they allow is the faster machine."""
        # Less of a window than windows resolve: one record beside a hundred of another topic shows no cost.
        unseen = (self.rows * cost).max(axis=0) < 1 / SHARES
        left, taken = 1 - self.bounds[:, ~unseen] @ cost[~unseen], self.bounds[:, unseen] @ cost[unseen]
        bounds = (taken > left) & (left > 0)
        reads = bounds[:, None] & (self.bounds > 0)
        share = np.where(reads, (left / np.maximum(taken, 1e-12))[:, None], 1.0)
        return np.where(unseen, share.min(axis=0, initial=1.0), 1.0)

    def _step(self, logs: Floats) -> Floats:
        """What a step of Gauss and Newton adds to the logarithms of the costs: a cost is never negative, and may be a hundred times another."""
        parts = self.rows * np.exp(logs)
        # Topics that are always read in the same mix have collinear counts: what is known beforehand decides between them.
        weight = self._noise / COST_SD**2
        left = parts.T @ parts + weight * np.eye(len(logs))
        return np.asarray(np.linalg.solve(left, parts.T @ (1 - parts.sum(axis=1)) - weight * logs))

    @cached_property
    def _noise(self) -> float:
        """The variance of the windows' lengths that no costs explain: whatever is known of costs beforehand."""
        free = len(self.rows) - len(self.topics)
        # With one window or two more than topics, some costs explain them all by chance.
        if free < NOT_CHANCE:
            return PRIOR_SD**2
        found = np.linalg.lstsq(self.rows, np.ones(len(self.rows)), rcond=None)[0]
        left = float(((self.rows @ found - 1) ** 2).sum())
        # The mean of logarithms: that of the variances would stay near what is known beforehand however exact the windows are.
        seen = free * log(max(left / free, 1e-12)) + 1
        pooled = np.exp((seen + PRIOR_WEIGHT * log(PRIOR_SD**2)) / (free + PRIOR_WEIGHT))
        return max(EXACT_SD**2, float(pooled))

    def _unexplained(self, cost: Mapping[str, float]) -> float:
        """The sum of squared residuals at these costs, at the speed that suits the windows best."""
        each = np.array([cost.get(t, 0.0) for t in self.topics])
        lengths = self.rows @ each
        scale = float(lengths.sum()) / max(float(lengths @ lengths), 1e-12)
        too_long = np.maximum(scale * (self.bounds @ each) - 1, 0.0)
        return float(((scale * lengths - 1) ** 2).sum() + (too_long**2).sum())

    def at_share(self, topic: str, share: float, done: Mapping[str, float]) -> dict[str, float]:
        """Costs, in records of ``topic``, at which it takes this share of the time of a member that does ``done`` (records/s by topic)."""
        others = sum(self.costs.get(t, 1.0) * n for t, n in done.items() if t != topic)
        # Of the time that is left, the others take what they do at their likeliest costs.
        scale = done.get(topic, 0.0) * (1 / share - 1) / others if others > 0 else 0.0
        return {t: scale * cost for t, cost in self.costs.items()} | {topic: 1.0}

    def allowed_shares(self, done: Mapping[str, float]) -> Mapping[tuple[str, float], dict[str, float]]:
        """The costs that the windows do not refute, by a topic and the share of the member's time that it takes at them: they explain the
        lengths as well as the likeliest ones do, within the noise. Those that explain most come first."""
        shares = [step / SHARES for step in range(SHARES, 0, -1)]
        every = {(t, share): self.at_share(t, share, done) for share in shares for t in sorted(done)}
        left = {key: self._unexplained(cost) for key, cost in every.items()}
        # Twice the difference of the log-likelihoods is the square of a standard normal number (Wilks' theorem).
        most = min(self._unexplained(self.costs), *left.values()) + Z**2 * self._noise
        return {key: every[key] for key in sorted(left, key=left.__getitem__) if left[key] <= most}
