"""What the demo has seen so far, and what it is worth in the end. Pure: the clock is passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kagent.contract.recommendation import Recommendation, Resolution, State, Status, Verdict
from kagent.contract.words import VERDICTS, in_words
from kagent.demo.topology import FOLLOWERS, LOADS, DemoGroup
from kagent.kafka.group_lag import ShownGroup

CAUGHT_UP_SECONDS = 5.0
"""A member is caught up when it lags less than this many seconds of its own inflow (a commit is up to 2 s old)."""


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
        # Before its first commit a member has everything to read.
        lag = sum(row.lag if row.lag is not None else row.log_end or 0 for row in rows)
        members.append(MemberLag(member.client_id, len(rows), lag, lag / inflow if inflow else 0.0))
    return GroupLag(tuple(sorted(members, key=lambda m: m.name)), shown.shown_ratio)


@dataclass(frozen=True, slots=True)
class FollowedAdvice:
    """Advice that a group takes: since when, and what came of it. Times in s of one clock."""

    at: float
    advice: Recommendation
    drained_after: float | None = None
    twin_at_drain: GroupLag | None = None

    @property
    def spread(self) -> tuple[int, ...]:
        """How many partitions each member is to hold, by name: seen, it means that the plan is in effect."""
        return tuple(len(held) for _, held in sorted((self.advice.assignment or {}).items()))


@dataclass(slots=True)
class Scene:
    """The story so far. Times in s of one clock."""

    lags: dict[str, GroupLag] = field(default_factory=dict)
    messages: dict[str, Recommendation] = field(default_factory=dict)
    opened: dict[str, Recommendation] = field(default_factory=dict)
    state: State | None = None
    followed: dict[str, FollowedAdvice] = field(default_factory=dict)

    def hear(self, message: Recommendation | State) -> None:
        """A message of the recommendations topic."""
        if isinstance(message, State):
            self.state = message
            return
        self.messages[message.group] = message
        # The first one stays: the summary shows what was advised, and the latest may have no action any more.
        self.opened.setdefault(message.group, message)

    def follow(self, group: str, now: float) -> None:
        """The group takes its advice from now on."""
        advice = self.advice(group)
        assert advice is not None
        self.followed[group] = FollowedAdvice(now, advice)

    def look(self, lags: Mapping[str, GroupLag], now: float) -> None:
        """The cluster's answer."""
        self.lags = dict(lags)
        for group in FOLLOWERS:
            known, lag = self.followed.get(group.name), self.lags.get(group.name)
            if known is None or known.drained_after is not None or lag is None:
                continue
            # Low lag alone proves nothing: only with the plan in effect is the drain the plan's.
            if lag.spread == known.spread and lag.greatest <= CAUGHT_UP_SECONDS:
                # At this moment, not in the end: without advice the twin falls further behind for as long as one looks.
                twin = self.lags.get(group.twin)
                self.followed[group.name] = replace(known, drained_after=now - known.at, twin_at_drain=twin)

    def advice(self, group: str) -> Recommendation | None:
        """The advice for a group that follows, if it says what to move."""
        latest = self.messages.get(group)
        ready = (
            latest is not None
            and latest.status in (Status.OPEN, Status.UPDATED)
            and latest.verdict is Verdict.REBALANCE
            and latest.moves
        )
        return latest if ready else None

    @property
    def reached(self) -> tuple[object, ...]:
        """How far the story has come: what was heard of each group, and whether the plans are in effect and drained."""
        heard = tuple((name, rec.status, rec.verdict) for name, rec in sorted(self.messages.items()))
        spread = tuple((name, lag.spread) for name, lag in sorted(self.lags.items()))
        done = tuple((name, one.at, one.drained_after) for name, one in sorted(self.followed.items()))
        return heard, spread, done

    def resolved(self, group: str) -> bool:
        """Whether the incident of a group that follows has been closed."""
        latest = self.messages.get(group)
        return latest is not None and latest.status is Status.RESOLVED

    @property
    def finished(self) -> bool:
        """Whether all that is to be seen has been seen."""
        drained = (self.followed[g.name].drained_after for g in FOLLOWERS if g.name in self.followed)
        all_drained = len(self.followed) == len(FOLLOWERS) and None not in drained
        return all_drained and all(self.resolved(g.name) for g in FOLLOWERS) and "hot" in self.opened

    def failures(self) -> list[str]:
        """What went other than it must, a sentence each."""
        found = (
            ["an incident opened for healthy, which is a healthy group"] if "healthy" in self.opened else []
        )
        for group in FOLLOWERS:
            failure = self._failure(group)
            found += [failure] if failure else []
        hot = self.messages.get("hot")
        if hot is None:
            found.append("no message about the hot partition")
        elif hot.verdict is not Verdict.HOT_PARTITION:
            found.append(f"the hot partition was called {VERDICTS[hot.verdict].short}")
        return found

    def _failure(self, group: DemoGroup) -> str | None:
        """What went wrong with a group that follows, the first of it."""
        name, known, latest = group.name, self.followed.get(group.name), self.messages.get(group.name)
        if latest is None:
            return f"no recommendation came for {name}"
        if known is None or known.drained_after is None:
            return f"{name} did not drain after it had applied the advice"
        # The control: where the twin drains as fast, following has shown nothing.
        if known.twin_at_drain is not None and known.twin_at_drain.greatest <= CAUGHT_UP_SECONDS:
            return f"the twin of {name} drained as fast without the advice"
        if not self.resolved(name):
            return f"the incident of {name} was not resolved"
        if latest.resolution is not Resolution.FOLLOWED or latest.outcome is None:
            return (
                f"the incident of {name} was resolved as {in_words(str(latest.resolution))}, not as followed"
            )
        return None
