"""One late member: the facts that the detectors of spread decide by. Intervals decide, not points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect import capacity
from kagent.detect.capacity import RECENT_MS
from kagent.detect.evidence import PAUSE_SHARE, LatenessLimits
from kagent.detect.forecast import longest_s
from kagent.detect.group_model import GroupModel
from kagent.detect.inflow import MINUTE_MS, MINUTES
from kagent.lag.measure import Floats, Longs

AS_MUCH = 1.15
"""A peer's inflow within 15 % is "as much"."""


@dataclass(frozen=True)
class LateMember:
    """A member whose clocks run, in its group; ``at``: its code."""

    model: GroupModel
    at: int

    @property
    def name(self) -> str:
        return self.model.names[self.at]

    @property
    def lateness(self) -> float:
        """V, s."""
        return float(self.model.lateness[self.at])

    @cached_property
    def rows(self) -> Longs:
        """Places of its partitions, most work first."""
        return self.model.rows_of(self.at)

    @property
    def speed(self) -> tuple[float, float, float]:
        """Its capacity in work/s: at least, likeliest, at most."""
        rate = self.model.capacity.rate
        return float(rate.low[self.at]), float(rate.mid[self.at]), float(rate.high[self.at])

    @property
    def inflow(self) -> tuple[float, float, float]:
        """What it gets in work/s: at least, likeliest, at most."""
        flow = self.model.inflow
        return float(flow.low[self.at]), float(flow.mid[self.at]), float(flow.high[self.at])

    @property
    def measured(self) -> bool:
        """Whether it was ever certainly busy, so that its speed is known."""
        return bool(self.model.capacity.measured[self.at])

    @property
    def paused(self) -> bool:
        """Whether its lateness began with a gap in which it did less than half of its speed."""
        backlog = self.model.member_state(self.at).backlog
        if backlog is None or not backlog.ramp_s or not self.measured:
            return False
        return backlog.ramp_records < PAUSE_SHARE * self.speed[1] * backlog.ramp_s

    @property
    def drains(self) -> bool:
        """Whether it can do more than arrives, at the optimist's inflow."""
        return self.inflow[0] < self.speed[1]

    @cached_property
    def is_late_by_pause(self) -> bool:
        """Whether it is late because it paused, and catches up by itself."""
        return self.paused and self.drains

    @property
    def never_drains(self) -> bool:
        """Whether at the likeliest values more arrives at some member than it can do."""
        return bool(np.isinf(self.model.longest_drain))

    @cached_property
    def keeping_up(self) -> list[int]:
        """Codes of the peers that have partitions, are on time, and can do what arrives as far as is known: one that cannot falls
        behind next, and proves nothing."""
        model, limits = self.model, LatenessLimits.of(self.model.policy)
        held = np.bincount(model.owner[model.counted], minlength=len(model.names))
        # Never a limit of 0 (`min_behind: 0`): then not even a lateness of 0 would be below it.
        on_time = (model.lateness < max(limits.on_time, 1e-9)) & (held > 0)
        on_time &= model.capacity.rate.high >= model.inflow.low
        on_time[self.at] = False
        return np.flatnonzero(on_time).tolist()

    @property
    def usual_inflow(self) -> float:
        """What its partitions get now in work/s, the median of five minutes: the measure in which peers are compared. What it
        was given before, with more partitions or in a burst, is no part of it."""
        return self.usual_inflow_of(self.at)

    def usual_inflow_of(self, member: int) -> float:
        """What the partitions of a member get in work/s, the median of five minutes."""
        model = self.model
        held = model.counted & (model.owner == member)
        return float((model.columns.median_rates * model.cost)[held].sum())

    def done_by(self, peer: int) -> float:
        """What a peer certainly did of what arrived for it, in work/s: its lateness rises by what it left undone."""
        cost = {
            t: float(self.model.cost[self.model.lags.topic == at][0])
            for at, t in enumerate(self.model.lags.topics)
        }
        return max(sum(cost[t] * rate for t, rate in got.items()) for got in self._got(peer)) * self._pace_of(
            peer
        )

    def _pace_of(self, peer: int) -> float:
        """Share of what arrived that a peer has certainly done: its lateness rises by what it left undone."""
        seen = self.model.member_state(peer).lateness
        followed_s = (seen[-1][0] - seen[0][0]) / 1000 if seen else 0.0
        share = 1 - (seen[-1][1] - seen[0][1]) / followed_s if followed_s > 0 else 1.0
        if followed_s < LatenessLimits.of(self.model.policy).growing_need:
            # Of a member that is hardly late no lateness is kept. All of it may have come since this one fell behind: a peer that
            # gets more than it can do, too, is on time until it has done so for a while.
            share = min(share, 1 - float(self.model.lateness[peer]) / max(self._behind_for_s, 1e-9))
        return float(np.clip(share, 0, 1))

    @property
    def _behind_for_s(self) -> float:
        """How long it has been late, s of commit time."""
        known = self.model.member_state(self.at)
        began = min((clock.began for clock in (known.spell, known.backlog) if clock), default=known.time)
        return (known.time - began) / 1000

    @cached_property
    def done(self) -> Mapping[str, float]:
        """Records/s by topic that it did while it was certainly busy."""
        windows = capacity.kept(self.model.member_state(self.at).windows, self.model.now)
        return capacity.done_per_s(windows, self.model.now)

    def proven_by(self, peer: int) -> float:
        """How much work/s of this member's mix of topics a peer that keeps up proves to be possible on one machine."""
        return max(map(self._proven_by, self._got(peer))) * self._pace_of(peer)

    def _got(self, peer: int) -> list[dict[str, float]]:
        """Records/s by topic that arrived for a peer: the median of five minutes, and the means of each longer time up to ten minutes, back to
        five before the member fell behind. It is on time now, so it has done all of it, and by chance the last five may have brought little."""
        model = self.model
        rows = model.rows_of(peer)
        began = self.model.member_state(self.at).on_time_at - MINUTES * MINUTE_MS
        since = max(began, model.now - RECENT_MS, model.state.assigned_at, model.known_since(rows))
        lengths = np.arange(MINUTES + 1, (model.now - since) // MINUTE_MS + 1) * MINUTE_MS
        arrived = {
            t: self._arrived_of(rows, t, model.now - np.array([*lengths[::-1], 0.0]))
            for t in model.topics_of(rows)
        }
        means = [
            {t: (a[-1] - a[-2 - at]) * 1000 / length for t, a in arrived.items()}
            for at, length in enumerate(lengths)
        ]
        return [self._gets(peer), *means]

    @cached_property
    def proven_before(self) -> float:
        """How much work/s of its mix of topics it proved itself, before it fell behind with the partitions that it holds now; 0 where that is
        not known."""
        model, since = self.model, self.model.member_state(self.at).on_time_at - RECENT_MS
        if since < max(model.state.assigned_at, model.known_since(self.rows)):
            return 0.0
        times = np.array([since, since + RECENT_MS], np.float64)
        came = {
            t: float(np.diff(self._arrived_of(self.rows, t, times))[0]) * 1000 / RECENT_MS
            for t in model.topics_of(self.rows)
        }
        # It was on time in the end: no more was left than arrives within that.
        return self._proven_by(came) * (1 - LatenessLimits.of(model.policy).on_time * 1000 / RECENT_MS)

    def _proven_by(self, theirs: Mapping[str, float]) -> float:
        """Work/s of this member's mix of topics that a machine can do which keeps up with these records/s by topic, whatever records
        cost: the least ratio of these to what this one does, over the topics in which it falls behind most. Of the others these must be
        as much, or there was more time for those."""
        mine = self._gets(self.at)
        share = sum(self.done.values()) / max(sum(mine.values()), 1e-9)
        behind = {t for t, done in self.done.items() if done <= AS_MUCH * share * mine.get(t, 0.0)}
        # Who gets less of the other topics has more time for these, so it proves nothing.
        if any(theirs.get(t, 0.0) * AS_MUCH < done for t, done in self.done.items() if t not in behind):
            return 0.0
        return min((theirs.get(t, 0.0) / self.done[t] for t in behind), default=0.0) * self.speed[1]

    def arrived(self, times: Floats) -> Floats:
        """Work that had arrived at its partitions at these times (ms)."""
        total = np.zeros(len(times))
        for topic in self.model.topics_of(self.rows):
            cost = float(self.model.cost[self._of_topic(self.rows, topic)[0]])
            total += cost * self._arrived_of(self.rows, topic, times)
        return total

    def _arrived_of(self, rows: Longs, topic: str, times: Floats) -> Floats:
        """Records that had arrived at those of these partitions that are of the topic, at these times (ms)."""
        numbers = self.model.lags.partition[self._of_topic(rows, topic)]
        return np.asarray(self.model.seen.ends[topic].interpolated(numbers, times).sum(axis=1))

    def _of_topic(self, rows: Longs, topic: str) -> Longs:
        lags = self.model.lags
        return np.asarray(rows[lags.topic[rows] == lags.topics.index(topic)], np.int64)

    def _gets(self, member: int) -> dict[str, float]:
        """Records/s by topic that arrive for a member, the median of five minutes."""
        model, held = self.model, self.model.counted & (self.model.owner == member)
        flow = model.columns.median_rates
        topics = np.unique(model.lags.topic[held]).tolist()
        return {model.lags.topics[t]: float(flow[held & (model.lags.topic == t)].sum()) for t in topics}

    @cached_property
    def at_other_costs(self) -> Mapping[tuple[str, float], LateMember]:
        """The same member at other costs that the busy windows allow, each by a topic and the share of the member's time that it takes.

        Windows in which a member always had the same mix of topics do not tell which of them costs the time.
        """
        if len(self.done) < 2:
            return {}
        allowed = self.model.mix.allowed_shares(self.done)
        cases = {key: LateMember(self.model.at_costs(cost), self.at) for key, cost in allowed.items()}
        return {key: case for key, case in cases.items() if case._is_explained}

    @property
    def _is_explained(self) -> bool:
        """Whether by its costs it has work and gets more than it can do."""
        return self.measured and self.inflow[1] > self.speed[1] and self.model.has_work(self.at)

    @property
    def longest_s(self) -> float:
        """A remedy that takes longer is none for this member."""
        return longest_s(self.lateness)

    @cached_property
    def best(self) -> float:
        """The least T that any assignment was found to have, s; inf above ``longest_s``."""
        return self.model.best_drain(self.longest_s)

    @cached_property
    def best_for_optimist(self) -> float:
        """The same at the ends of the intervals that favour it."""
        return min(self.best, self.model.best_drain(self.longest_s, optimist=True))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table that decides about a late member: ``holds`` returns the evidence that it applies, or None; ``verdict``
    None: wait, for the reason in ``why``; ``likely``: whether it holds at the likeliest values, not only for an optimist."""

    holds: Callable[[LateMember], dict[str, Any] | None]
    verdict: Verdict | None = None
    why: str = ""
    likely: bool = True
