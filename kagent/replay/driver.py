"""Run a recording through an evaluation session, tick by tick on the recording's own clock. Pure.

The worker asks the coordinator before it publishes; here the recording itself answers, with all that was read by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kagent.capture.folder import EndsSample
from kagent.contract.events import GroupEvent
from kagent.contract.recommendation import Recommendation
from kagent.group_key import group_key
from kagent.groups import KnownRecords, view
from kagent.incident.session import EvaluationSession
from kagent.lag.apply_event import commits_after, membership_after
from kagent.lag.commits import TopicCommits
from kagent.lag.log_end_coverage import unread
from kagent.lag.log_ends import PAUSE, EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation, TopicInfo
from kagent.replay.captured_events import Recording, Trigger

TICK_MS = 10_000
PATIENCE_MS = max(PAUSE, 15_000)
"""As in the worker at its default interval: without a sample for so long, a group's next commit is awaited."""
BLIND_AFTER_MS = 60_000
"""As in the worker: without a sample of the log ends for so long, nothing is judged."""


@dataclass(slots=True)
class RecordedGroup:
    """One group as the events up to now describe it."""

    name: str
    state: KnownRecords | None = None
    commits: dict[str, TopicCommits] = field(default_factory=dict)
    _roster: Roster | None = None

    def take(self, event: GroupEvent) -> None:
        """Fold an event in, as the worker's tables do."""
        state = membership_after(self.state, event)
        if state is not self.state:
            self.state, self._roster = state, None
        self.commits |= commits_after(self.commits, event)

    def roster(self, topic_names: Mapping[str, str]) -> Roster:
        """The membership; derived again while a topic id has no name yet."""
        if self._roster is None or self._roster.unresolved:
            self._roster = Roster.of(view(self.state, topic_names, self.name))
        return self._roster


@dataclass(slots=True)
class RecordedCluster:
    """The cluster as the recording shows it up to the latest :meth:`advance`."""

    recording: Recording
    wanted: Callable[[str], bool] = lambda group: True
    groups: dict[str, RecordedGroup] = field(default_factory=dict)
    ends: dict[str, EndHistory] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)
    sampled_ms: int = 0
    now_ms: int = 0
    _triggers: Iterator[Trigger] = field(init=False)
    _samples: Iterator[EndsSample] = field(init=False)
    _trigger: Trigger | None = field(init=False)
    _sample: EndsSample | None = field(init=False)

    def __post_init__(self) -> None:
        self._triggers, self._samples = iter(self.recording.triggers), iter(self.recording.samples)
        self._trigger, self._sample = next(self._triggers, None), next(self._samples, None)
        self.topics = dict(self.recording.topics)
        self.topic_names = {info.topic_id: name for name, info in self.topics.items() if info.topic_id}
        self.sampled_ms = self.recording.start_ms

    def advance(self, now_ms: int) -> None:
        """Take in everything that was known at this time."""
        while self._trigger is not None and self._trigger.at_ms <= now_ms:
            self._take(self._trigger.events)
            self._trigger = next(self._triggers, None)
        # By the time of the answer: before it, the worker could not have known the sample either.
        while self._sample is not None and self._sample.answered_ms <= now_ms:
            self._take_sample(self._sample)
            self._sample = next(self._samples, None)
        self.now_ms = now_ms

    def _take(self, events: Iterable[GroupEvent]) -> None:
        for event in events:
            if self.wanted(event.group):
                self.groups.setdefault(event.group, RecordedGroup(event.group)).take(event)
                for offsets in event.offsets:
                    self._learn_id(offsets.topic, offsets.topic_id)

    def _learn_id(self, topic: str, topic_id: str | None) -> None:
        if topic_id is not None and self.topic_names.get(topic_id) != topic:
            self.topic_names[topic_id] = topic
            self.topics[topic] = replace(self.topics.get(topic, TopicInfo(0)), topic_id=topic_id)

    def _take_sample(self, sample: EndsSample) -> None:
        for topic, ends in sample.ends.items():
            info = self.topics.get(topic, TopicInfo(0))
            if info.partitions < len(ends):
                info = self.topics[topic] = replace(info, partitions=len(ends))
            history = self.ends.setdefault(topic, EndHistory(len(ends)))
            columns = (sample.starts[topic], ends, sample.stables.get(topic))
            history.add(sample.asked_ms, sample.answered_ms, *columns, topic_id=info.topic_id)
        self.sampled_ms = sample.answered_ms

    def observe(self, name: str) -> Observation:
        """All that a judgement of this group rests on now."""
        group = self.groups[name]
        roster = group.roster(self.topic_names)
        ends = {t: self.ends[t] for t in {*group.commits, *roster.subscribed} if t in self.ends}
        return Observation(
            cluster=self.recording.cluster,
            group=name,
            now=self.now_ms,
            roster=roster,
            commits=dict(group.commits),
            ends=ends,
            topics=self.topics,
            as_of=self.now_ms,
            blind=self._blind() or unread(group.commits, ends, BLIND_AFTER_MS, self.now_ms),
            patience=PATIENCE_MS,
        )

    def _blind(self) -> str | None:
        age_ms = self.now_ms - self.sampled_ms
        return f"the log ends were last read {age_ms / 1000:.0f} s ago" if age_ms > BLIND_AFTER_MS else None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The messages that would have been published, in order of time, and when, ms; per group, why its finding was not at the end."""

    messages: tuple[Recommendation, ...]
    published_ms: tuple[int, ...]
    suppressed_by: Mapping[str, str | None]
    ticks: int


def replay(
    recording: Recording,
    session: EvaluationSession,
    wanted: Callable[[str], bool] = lambda group: True,
    tick_ms: int = TICK_MS,
    known_for_ms: int = 0,
) -> Replayed:
    """Evaluate the wanted groups at every tick. ``known_for_ms``: treat groups as first seen that long before."""
    cluster = RecordedCluster(recording, wanted)
    messages: list[Recommendation] = []
    published: list[int] = []
    # Ticks at the recording's own times: the same capture gives the same messages on every machine.
    times = range(recording.start_ms + tick_ms, recording.end_ms + 1, tick_ms)
    for now_ms in times:
        cluster.advance(now_ms)
        groups = [name for name in sorted(cluster.groups) if not session.policies(name).ignore]
        # As if the groups had been watched before: a capture of minutes would otherwise end while every group is still new.
        if known_for_ms:
            for name in groups:
                session.assume_known(recording.cluster, name, now_ms - known_for_ms, now_ms)
        observations = map(cluster.observe, groups)
        messages += session.evaluate_all(observations, lambda seen: cluster.observe(seen.group))
        published += [now_ms] * (len(messages) - len(published))
    suppressed = {
        g: session.suppressed_by.get(group_key(recording.cluster, g)) for g in sorted(cluster.groups)
    }
    return Replayed(tuple(messages), tuple(published), suppressed, len(times))
