"""One look at one group: everything that is derived from an observation before anybody judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kagent.advice.load import Load, weigh
from kagent.advice.rates import Rates, fit
from kagent.advice.state import JudgeState, Pace
from kagent.contract.recommendation import GroupKind
from kagent.lag.commits import GONE
from kagent.lag.measure import Flags, Floats, Lags, ages, measure
from kagent.lag.membership import NOBODY, Roster, kind_of
from kagent.lag.observation import Observation
from kagent.policy import Policy

MOMENT = 30_000
UNEVEN, UNEVEN_LEAST = 0.25, 5.0
"""Partitions whose lateness differs by less than this share of it, or so many seconds, are equally late."""
GAPS = 2.75
"""Usual gaps between commits without progress that mean something: seen at two commits, and told before the fourth."""
RISING = 3
"""A topic that was ever later so often in a row is not late on purpose."""
OVERDUE = 1.5
"""Usual gaps between commits after which one is overdue, or was made again without moving."""
BY_MEMBER = frozenset(
    {
        GroupKind.CLASSIC,
        GroupKind.CLASSIC_JAVA,
        GroupKind.CLASSIC_LIBRDKAFKA,
        GroupKind.CLASSIC_PYTHON,
        GroupKind.CONSUMER,
        GroupKind.CONNECT,
        GroupKind.FAUST,
    }
)
"""Kinds whose members hold partitions that can be told from the records; the others are judged by partition."""
UNTAUGHT = frozenset({"kind", "lags", "_ages", "_late", "relevant", "standing", "waiting"})
"""What a look makes of the observation and the policy alone."""


@dataclass(frozen=True)
class Look:
    """An observation and what follows from it; what is costly is made when it is asked for."""

    seen: Observation
    policy: Policy
    state: JudgeState

    def after(self, state: JudgeState) -> Look:
        """The same look with what it taught; what does not depend on that is not made again."""
        if state is self.state:
            return self
        made = replace(self, state=state)
        for name in UNTAUGHT & self.__dict__.keys():
            made.__dict__[name] = self.__dict__[name]
        if state.busy is self.state.busy and "rates" in self.__dict__:
            made.__dict__["rates"] = self.rates
        return made

    @property
    def now(self) -> int:
        return self.seen.now

    @property
    def as_of(self) -> int:
        """The moment that the commits tell of: the pipeline's progress."""
        return min(self.seen.as_of or self.seen.now, self.seen.now)

    @property
    def roster(self) -> Roster | None:
        return self.seen.roster

    @cached_property
    def kind(self) -> GroupKind:
        return kind_of(self.roster, self.seen.group, self.policy.kind)

    @property
    def by_member(self) -> bool:
        """Whether skew over members means anything here."""
        return self.kind in BY_MEMBER and bool(self.roster and self.roster.members)

    @cached_property
    def lags(self) -> Lags:
        return measure(self.seen, self.policy)

    @cached_property
    def _ages(self) -> tuple[Floats, Flags]:
        return ages(self.seen, self.lags)

    @property
    def age(self) -> Floats:
        """Time lag per partition, in s."""
        return self._ages[0]

    @property
    def beyond(self) -> Flags:
        """Where the time lag is only a lower bound."""
        return self._ages[1]

    @cached_property
    def rates(self) -> Rates:
        return fit(self.state.busy)

    @property
    def names(self) -> tuple[str, ...]:
        return self.roster.names if self.roster else ()

    @cached_property
    def relevant(self) -> Flags:
        """Partitions that are the group's business: with a commit, and read by somebody if it has members."""
        lags = self.lags
        mine = lags.known & (lags.committed != GONE) & ~lags.orphaned
        return np.asarray(mine & (lags.owner != NOBODY)) if self.by_member else mine

    @cached_property
    def limit(self) -> Floats:
        """For how long a partition may make no progress before that means something, in ms: by the group's own habits."""
        floor = self.policy.stall_after * 1000
        learned = np.array([1.5 * self.state.stops.get(t, 0) for t in self.lags.topics] or [0.0])
        return np.asarray(np.maximum(np.maximum(floor, GAPS * self.lags.cadence), learned[self.lags.topic]))

    @cached_property
    def since(self) -> Floats:
        """Since when each partition's topic has gone on without a pause, as far as was seen, in ms."""
        rows, resumed = self.seen.commits, self.state.resumed
        began = [max(rows[t].first if t in rows else self.now, resumed.get(t, 0)) for t in self.lags.topics]
        return np.array(began or [0], np.float64)[self.lags.topic]

    @cached_property
    def standing(self) -> Floats:
        """How long each partition with unread records has made no progress, in ms; 0 where nothing is unread."""
        lags = self.lags
        unread = self.relevant & (lags.shown > self.policy.allowed_lag) & (lags.time > 0)
        return np.where(unread, np.maximum(self.as_of - lags.moved, 0), 0).astype(np.float64)

    @cached_property
    def waiting(self) -> Floats:
        """For how long each partition has had unread records *and* made no progress, in ms: an idle topic that gets a
        record now has not been standing since its last commit."""
        return np.asarray(np.minimum(self.standing, self.age * 1000))

    @cached_property
    def stopped(self) -> Flags:
        """Partitions with unread records that make no progress for longer than the group's habits explain."""
        return np.asarray(self.waiting > self.limit)

    @cached_property
    def pinned(self) -> Flags:
        """Partitions that stand still, if only for a little while: no matter of the spread, and never to be moved."""
        return np.asarray(self.waiting > np.maximum(OVERDUE * self.lags.cadence, MOMENT))

    @cached_property
    def _late(self) -> tuple[Floats, Flags]:
        lags, late, beyond = self.lags, np.zeros(len(self.lags)), np.zeros(len(self.lags), bool)
        behind = self.relevant & (lags.low > 0)
        for code in np.unique(lags.topic[behind]).tolist():
            at = np.flatnonzero(behind & (lags.topic == code))
            base = np.maximum(lags.committed[at], lags.start[at])
            ends = self.seen.ends[lags.topics[code]]
            late[at], beyond[at] = ends.late(lags.partition[at], base, lags.time[at])
        return late, beyond

    @property
    def late(self) -> Floats:
        """Time lag of every partition at its commit's own time, in s: what a reader that is never busy keeps small, or, if
        it leaves records alone for a while, the same. Estimated between samples; 0 where nothing was unread."""
        return self._late[0]

    @property
    def guessed(self) -> Flags:
        """Where the lateness is older than the history of log ends."""
        return self._late[1]

    def _as_late_as_all(self, which: Mapping[str, Pace]) -> Flags:
        """Partitions of these topics that are no later than all of them are."""
        most = np.array([which[t].age if t in which else -1.0 for t in self.lags.topics] or [-1.0])
        most = np.where(most < 0, most, most * (1 + UNEVEN) + UNEVEN_LEAST)
        return np.asarray(self.late <= most[self.lags.topic])

    @cached_property
    def paced(self) -> Flags:
        """Partitions of topics that are read with a constant delay: late, but on purpose."""
        return self._as_late_as_all({t: pace for t, pace in self.state.paces.items() if pace.settled})

    @cached_property
    def level(self) -> Flags:
        """Partitions of topics that are late all alike and have not become ever later: perhaps on purpose."""
        return self._as_late_as_all({t: pace for t, pace in self.state.paces.items() if pace.rises < RISING})

    @cached_property
    def aside(self) -> Flags:
        """Partitions whose lag is no matter of the spread."""
        return np.asarray(self.pinned | self.paced)

    @cached_property
    def load(self) -> Load:
        """The members' load without what stands still or is late on purpose."""
        return weigh(self.lags, self.names, self.rates, (self.age, self.beyond), self.aside)
