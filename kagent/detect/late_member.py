"""One late member: the facts that the detectors of spread decide by. Intervals decide, not points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect import capacity
from kagent.detect.capacity import RECENT_MS, RESOLVED
from kagent.detect.evidence import PAUSE_SHARE, LatenessLimits
from kagent.detect.forecast import longest_s
from kagent.detect.group_model import GroupModel
from kagent.detect.peers import SPANS_MS
from kagent.lag.log_ends import LATELY_MS
from kagent.lag.measure import Floats, Longs


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
    def heaviest(self) -> tuple[int, ...]:
        """Places of the fewest of its partitions that have half of its work, most work first."""
        work = (self.model.columns.backlog * self.model.cost)[self.rows]
        count = int(np.searchsorted(work.cumsum(), work.sum() / 2)) + 1
        return tuple(self.rows[:count].tolist())

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

    @cached_property
    def catching_up(self) -> list[int]:
        """Codes of the peers that are late and catch up for certain while this one does not, as in a backfill: what they do while they
        are busy is as good a proof. Of one that catches up too, it would prove nothing that is the matter."""
        model, limits = self.model, LatenessLimits.of(self.model.policy)
        if np.isfinite(model.drain[self.at]):
            return []
        late = np.isfinite(model.drain_high) & (model.lateness >= max(limits.on_time, 1e-9))
        # Of the few that are late: this is asked for each late member at each look.
        codes = np.flatnonzero(late).tolist()
        return [at for at in codes if capacity.busy_lately(model.windows_of(at), model.now)]

    @property
    def peers(self) -> list[int]:
        """Codes of the members that prove what a machine can do: first those that keep up, then those that catch up."""
        return [*self.keeping_up, *self.catching_up]

    @property
    def usual_inflow(self) -> float:
        """What its partitions get now in work/s, the median of five minutes: the measure in which peers are compared. What it
        was given before, with more partitions or in a burst, is no part of it."""
        return float(self._gets @ self.model.topic_cost)

    @property
    def _gets(self) -> Floats:
        """Records/s by topic that arrive for it, the median of five minutes."""
        return np.asarray(self.model.inflow_by_topic[0, self.at])

    @cached_property
    def done_by_peers(self) -> Floats:
        """What each of ``peers`` certainly did, in work/s."""
        return np.asarray((self._peers_did @ self.model.topic_cost).max(axis=0)) * self._paces

    @property
    def done_by_peers_now(self) -> Floats:
        """The same of the last minutes alone."""
        return np.asarray(self._peers_did[0] @ self.model.topic_cost) * self._paces

    @cached_property
    def proven_by_peers(self) -> Floats:
        """How much work/s of this member's mix of topics each of ``peers`` proves to be possible on one machine."""
        return np.asarray(self._proven_by(self._peers_did).max(axis=0)) * self._paces

    @cached_property
    def _peers_did(self) -> Floats:
        """Records/s of ``peers``, [span, peer, topic]: what arrived for those that keep up, back to five minutes before the member fell
        behind, and no further than the assignment; what the others did while they were busy."""
        model = self.model
        since = max(self.on_time_at - LATELY_MS, model.state.assigned_at)
        known = model.now - SPANS_MS[:, 0] >= since
        known[0] = True
        got = model.inflow_by_topic[known][:, self.keeping_up]
        busy = [capacity.done_per_s(model.windows_of(peer), model.now) for peer in self.catching_up]
        if not busy:
            return got
        did = np.array([[done.get(topic, 0.0) for topic in model.lags.topics] for done in busy])
        return np.concatenate([got, np.repeat(did[None], len(got), axis=0)], axis=1)

    @cached_property
    def _paces(self) -> Floats:
        rate = self.model.capacity.rate
        sure = [float(rate.low[peer] / rate.mid[peer]) for peer in self.catching_up]
        return np.array([*(self._pace_of(peer) for peer in self.keeping_up), *sure])

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
    def late_since(self) -> int:
        """When the first of its clocks that run began, ms; its latest commit where none runs."""
        known = self.model.member_state(self.at)
        return min((clock.began for clock in (known.spell, known.backlog) if clock), default=known.time)

    @cached_property
    def on_time_at(self) -> int:
        """When it was last on time, ms. One that was idle until it fell behind was, as long ago as it is late now."""
        return self.model.member_state(self.at).on_time_at or self.late_since - round(1000 * self.lateness)

    @property
    def _behind_for_s(self) -> float:
        """How long it has been late, s of commit time."""
        return (self.model.member_state(self.at).time - self.late_since) / 1000

    @cached_property
    def done(self) -> Mapping[str, float]:
        """Records/s by topic that it did while it was certainly busy."""
        return capacity.done_per_s(self.model.windows_of(self.at), self.model.now)

    @cached_property
    def proven_before(self) -> float:
        """How much work/s of its mix of topics it proved itself, before it fell behind with the partitions that it holds now; 0 where that is
        not known."""
        model, since = self.model, self.on_time_at - RECENT_MS
        if since < max(model.state.assigned_at, model.known_since(self.rows)):
            return 0.0
        # It was on time in the end: all had been read but what came within that. A backlog that comes at once is no work done.
        read_until = max(since, self.on_time_at - round(1000 * LatenessLimits.of(model.policy).on_time))
        times = np.array([since, read_until], np.float64)
        came = np.zeros(len(model.lags.topics))
        for topic in model.topics_of(self.rows):
            arrived = self._arrived_of(topic, times)
            came[model.lags.topics.index(topic)] = (arrived[1] - arrived[0]) * 1000 / RECENT_MS
        return max(float(self._proven_by(came)), self._proven_by_as_much(came))

    def _proven_by_as_much(self, theirs: Floats) -> float:
        """The same by what it gets: who kept up with so much of each topic can do all of that, whatever records cost. What it does while
        it is late comes topic by topic, so the least ratio to that is too low."""
        here = self._gets > 0
        if not here.any():
            return 0.0
        return float((theirs[here] / self._gets[here]).min()) * self.usual_inflow

    def _proven_by(self, theirs: Floats) -> Floats:
        """Work/s of this member's mix of topics that a machine can do which keeps up with these records/s by topic ([…, topic]), whatever
        records cost: the least ratio of these to what this one does, over the topics in which it falls behind most. Of the others these
        must be as much, or there was more time for those."""
        done = np.array([self.done.get(t, 0.0) for t in self.model.lags.topics])
        share = done.sum() / max(float(self._gets.sum()), 1e-9)
        behind = (done > 0) & (done <= RESOLVED * share * self._gets)
        others = (done > 0) & ~behind
        # Who gets less of the other topics has more time for these, so it proves nothing.
        as_much = (theirs[..., others] * RESOLVED >= done[others]).all(axis=-1)
        ratio = (theirs[..., behind] / done[behind]).min(axis=-1, initial=np.inf)
        return np.where(as_much & behind.any(), ratio, 0.0) * self.speed[1]

    def arrived(self, times: Floats) -> Floats:
        """Work that had arrived at its partitions at these times (ms)."""
        total, topics = np.zeros(len(times)), self.model.lags.topics
        for topic in self.model.topics_of(self.rows):
            total += float(self.model.topic_cost[topics.index(topic)]) * self._arrived_of(topic, times)
        return total

    def _arrived_of(self, topic: str, times: Floats) -> Floats:
        """Records that had arrived at its partitions of a topic at these times (ms)."""
        lags = self.model.lags
        mine = lags.partition[self.rows[lags.topic[self.rows] == lags.topics.index(topic)]]
        return np.asarray(self.model.seen.ends[topic].interpolated(mine, times).sum(axis=1))

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
