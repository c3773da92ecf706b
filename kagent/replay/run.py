"""A capture through an evaluation session, tick by tick on the capture's own clock. Pure.

What the worker asks the coordinator before it says anything is answered by the capture itself: all that was recorded until
then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kagent.contract.events import GroupEvent
from kagent.contract.recommendation import Recommendation
from kagent.group_key import group_key
from kagent.groups import GroupState, view
from kagent.incident.session import EvaluationSession
from kagent.lag.commits import TopicCommits
from kagent.lag.events import commits_after, membership_after
from kagent.lag.log_end_coverage import unread
from kagent.lag.log_ends import PAUSE, EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation, TopicInfo
from kagent.replay.capture import Capture, Sample, Trigger

TICK = 10_000
SAMPLED_EVERY = 5_000
BLIND_AFTER = 60_000


@dataclass(slots=True)
class Group:
    """What the events told of one group."""

    name: str
    state: GroupState | None = None
    commits: dict[str, TopicCommits] = field(default_factory=dict)
    _roster: Roster | None = None

    def take(self, event: GroupEvent) -> None:
        """Fold an event in, as the worker's tables do."""
        state = membership_after(self.state, event)
        if state is not self.state:
            self.state, self._roster = state, None
        self.commits |= commits_after(self.commits, event)

    def roster(self, topic_names: Mapping[str, str]) -> Roster:
        """Who is in the group; looked at again while a topic id is without a name."""
        if self._roster is None or self._roster.unresolved:
            self._roster = Roster.of(view(self.state, topic_names, self.name))
        return self._roster


@dataclass(slots=True)
class World:
    """The cluster as far as a capture tells of it until now."""

    capture: Capture
    wanted: Callable[[str], bool] = lambda group: True
    groups: dict[str, Group] = field(default_factory=dict)
    ends: dict[str, EndHistory] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    sampled: int = 0
    heard: int = 0
    _triggers: Iterator[Trigger] = field(init=False)
    _samples: Iterator[Sample] = field(init=False)
    _trigger: Trigger | None = field(init=False)
    _sample: Sample | None = field(init=False)

    def __post_init__(self) -> None:
        self._triggers, self._samples = iter(self.capture.triggers), iter(self.capture.samples)
        self._trigger, self._sample = next(self._triggers, None), next(self._samples, None)
        self.sampled = self.heard = self.capture.start

    def advance(self, now: int) -> None:
        """Take in all that was known at this time."""
        while self._sample is not None and self._sample.answered <= now:
            self._take_sample(self._sample)
            self._sample = next(self._samples, None)
        while self._trigger is not None and self._trigger.at <= now:
            self._take(self._trigger.events)
            self._trigger = next(self._triggers, None)
        self.heard = now

    def _take(self, events: Iterable[GroupEvent]) -> None:
        for event in events:
            if self.wanted(event.group):
                self.groups.setdefault(event.group, Group(event.group)).take(event)
                self.names |= {o.topic_id: o.topic for o in event.offsets if o.topic_id}

    def _take_sample(self, sample: Sample) -> None:
        ids = {topic: topic_id for topic_id, topic in self.names.items()}
        for topic, ends in sample.ends.items():
            history = self.ends.setdefault(topic, EndHistory(len(ends)))
            history.add(sample.asked, sample.answered, sample.starts[topic], ends, topic_id=ids.get(topic))
        self.sampled = sample.answered

    def observe(self, name: str, now: int) -> Observation:
        """All that a judgement of this group rests on."""
        group = self.groups[name]
        roster = group.roster(self.names)
        topics = {*group.commits, *roster.subscribed}
        ends = {topic: self.ends[topic] for topic in topics if topic in self.ends}
        return Observation(
            cluster=self.capture.cluster,
            group=name,
            now=now,
            roster=roster,
            commits=dict(group.commits),
            ends=ends,
            topics={t: TopicInfo(h.partitions, h.topic_id) for t, h in self.ends.items()},
            as_of=self.heard,
            blind=self._unsampled(now) or unread(group.commits, ends, BLIND_AFTER, now),
            patience=max(PAUSE, 3 * SAMPLED_EVERY),
        )

    def _unsampled(self, now: int) -> str | None:
        age = now - self.sampled
        return f"the log ends were last read {age / 1000:.0f} s ago" if age > BLIND_AFTER else None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What would have been published, in the order of time, and why nothing (more) was, by group."""

    messages: tuple[Recommendation, ...]
    why_not: Mapping[str, str | None]
    groups: tuple[str, ...]
    ticks: int


def replay(
    capture: Capture,
    session: EvaluationSession,
    wanted: Callable[[str], bool] = lambda group: True,
    tick: int = TICK,
    known_for: int = 0,
) -> Replayed:
    """Evaluate all wanted groups every ``tick`` ms. ``known_for``: ms for which groups count as known when they appear."""
    world = World(capture, wanted)
    messages: list[Recommendation] = []
    times = range(capture.start + tick, capture.end + 1, tick)
    for now in times:
        world.advance(now)
        judged = [name for name in sorted(world.groups) if not session.policies(name).ignore]
        if known_for:
            for name in judged:
                session.know(capture.cluster, name, now - known_for, now)
        messages += session.evaluate_all((world.observe(name, now) for name in judged), _fresh(world))
    why = {name: session.held.get(group_key(capture.cluster, name)) for name in sorted(world.groups)}
    return Replayed(tuple(messages), why, tuple(sorted(world.groups)), len(times))


def _fresh(world: World) -> Callable[[Observation], Observation]:
    """The coordinator's answer: the group as it was recorded until then."""

    def ask(seen: Observation) -> Observation:
        world.advance(seen.now)
        return world.observe(seen.group, seen.now)

    return ask
