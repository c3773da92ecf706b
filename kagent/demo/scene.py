"""What the demo has seen so far, and what it is worth in the end. Pure: the clock is passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kagent.contract.recommendation import Recommendation, State, Status, Verdict
from kagent.demo.topology import GROUPS, LOADS, Group
from kagent.kafka.group_lag import ShownGroup

CAUGHT_UP_SECONDS = 5.0
"""A member is caught up when it lags less than so many seconds of its own inflow (a commit is up to 2 s old)."""


@dataclass(frozen=True, slots=True)
class MemberLag:
    """One member now: partitions held, records behind, and seconds of its own inflow behind."""

    name: str
    partitions: int
    lag: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GroupLag:
    """One group now."""

    members: tuple[MemberLag, ...]
    skew: float | None

    @property
    def greatest(self) -> float:
        """Seconds behind of the member that is furthest behind."""
        return max((m.seconds for m in self.members), default=0.0)

    @property
    def spread(self) -> tuple[int, ...]:
        """How many partitions each member holds, by name."""
        return tuple(m.partitions for m in self.members)


def group_lag(shown: ShownGroup) -> GroupLag:
    """Members' lag from the cluster's answer."""
    rates = {load.topic: load.rates for load in LOADS}
    members = []
    for member in shown.group.members:
        rows = [row for row in shown.rows if row.member_id == member.member_id]
        inflow = sum(rates[row.topic][row.partition] for row in rows)
        lag = sum(row.lag if row.lag is not None else row.log_end or 0 for row in rows)
        members.append(MemberLag(member.client_id, len(rows), lag, lag / inflow if inflow else 0.0))
    return GroupLag(tuple(sorted(members, key=lambda m: m.name)), shown.skew)


@dataclass(slots=True)
class Scene:
    """The story so far. Times in s of one clock."""

    lags: dict[str, GroupLag] = field(default_factory=dict)
    said: dict[str, Recommendation] = field(default_factory=dict)
    opened: dict[str, Recommendation] = field(default_factory=dict)
    state: State | None = None
    applied_at: float | None = None
    applied: Recommendation | None = None
    drained_after: float | None = None
    twin_at_drain: GroupLag | None = None

    def hear(self, message: Recommendation | State) -> None:
        """A message of the recommendations topic."""
        if isinstance(message, State):
            self.state = message
            return
        self.said[message.group] = message
        self.opened.setdefault(message.group, message)

    def look(self, lags: Mapping[str, GroupLag], now: float) -> None:
        """The cluster's answer."""
        self.lags = dict(lags)
        follower = next(g for g in GROUPS if g.follows)
        lag = self.lags.get(follower.name)
        if self.applied_at is None or self.drained_after is not None or lag is None:
            return
        if lag.spread == self._planned and lag.greatest <= CAUGHT_UP_SECONDS:
            self.drained_after = now - self.applied_at
            self.twin_at_drain = self.lags.get("orders-b")

    @property
    def _planned(self) -> tuple[int, ...]:
        """How many partitions each member is to hold, by name: seen, it means that the plan is in effect."""
        assignment = (self.applied.assignment if self.applied else None) or {}
        return tuple(len(held) for _, held in sorted(assignment.items()))

    def advice(self) -> Recommendation | None:
        """The advice for the group that follows, if it says what to move."""
        said = self.said.get("orders-a")
        ready = (
            said is not None
            and said.status is not Status.RESOLVED
            and said.verdict is Verdict.REBALANCE
            and said.moves
        )
        return said if ready else None

    @property
    def reached(self) -> tuple[object, ...]:
        """How far the story has come: what was heard of each group, and whether the plan is in effect and drained."""
        heard = tuple((name, rec.status, rec.verdict) for name, rec in sorted(self.said.items()))
        spread = tuple((name, lag.spread) for name, lag in sorted(self.lags.items()))
        return heard, spread, self.applied_at, self.drained_after

    @property
    def resolved(self) -> bool:
        """Whether the followed incident has been closed."""
        said = self.said.get("orders-a")
        return said is not None and said.status is Status.RESOLVED

    @property
    def finished(self) -> bool:
        """Whether all that is to be seen has been seen."""
        return self.resolved and self.drained_after is not None and "hot" in self.opened

    def failures(self) -> list[str]:
        """What went other than it must, a sentence each."""
        found = [
            f"{g.name} is healthy, but an incident opened"
            for g in GROUPS
            if _quiet(g) and g.name in self.opened
        ]
        if "orders-a" not in self.opened:
            found.append("no recommendation came for orders-a")
        elif self.drained_after is None:
            found.append("orders-a did not drain after it had applied the advice")
        elif self.twin_at_drain is not None and self.twin_at_drain.greatest <= CAUGHT_UP_SECONDS:
            found.append("the twin drained as fast without the advice")
        elif not self.resolved:
            found.append("the incident of orders-a was not resolved")
        hot = self.said.get("hot")
        if hot is None:
            found.append("nothing was said about the hot partition")
        elif hot.verdict is not Verdict.HOT_PARTITION:
            found.append(f"the hot partition was called {hot.verdict.value}")
        return found


def _quiet(group: Group) -> bool:
    return group.name in ("healthy", "quiet-848")
