"""Asking a cluster for the log ends of the topics that its groups read. Blocking: run it in a thread."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kagent.contract.topic_name import is_topic_name
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Key, TopicDescription
from kagent.kafka.log_offsets import END, START, Longs, OffsetQuery, OffsetSample, now_ms
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.observation import TopicInfo

DESCRIBE_EVERY = 30.0
CONFIGS_EVERY = 3600.0
AT_ONCE_FROM = 2000
"""From this many partitions, all partitions of a leader are asked in one request, over connections of its own."""
WANTED = OffsetQuery(END), OffsetQuery(START), OffsetQuery(END, committed_only=True)
"""Log ends first: when they were asked and answered counts."""


@dataclass(frozen=True, slots=True)
class LogEndSample:
    """One topic's log starts, ends and last stable offsets, per partition; UNKNOWN where one could not be asked."""

    topic: str
    topic_id: str
    asked: int
    seen: int
    start: Longs
    end: Longs
    stable: Longs


@dataclass(slots=True)
class Sampler:
    """Samples of one cluster; remembers what changes seldom (topic ids, partition counts, cleanup policy)."""

    admin: Admin
    topics: dict[str, TopicDescription] = field(default_factory=dict)
    compacted: dict[str, bool] = field(default_factory=dict)
    _described: float = float("-inf")
    _configured: float = float("-inf")
    _whole: bool = True
    """Whether the last sample had an answer for every partition."""

    def names(self) -> dict[str, str]:
        """Topic id → name, of all topics described so far."""
        return {topic.id: name for name, topic in self.topics.items()}

    def infos(self) -> dict[str, TopicInfo]:
        """What the judgement wants to know of each topic."""
        return {
            name: TopicInfo(
                topic.partitions,
                topic.id,
                self.compacted.get(name, False),
                topic.leaders,
                topic.replica_racks,
            )
            for name, topic in self.topics.items()
        }

    def describe(self, wanted: Iterable[str], all_topics: bool = False) -> None:
        """Learn ids and partition counts; of ``all_topics`` where a topic id is still without a name."""
        now = time.monotonic()
        names = {name for name in wanted if is_topic_name(name)}
        if all_topics:
            # The clients describe topics by name only: an id without a name is looked for among all topics.
            names |= set(self.admin.topic_names())
        # Partition counts change seldom; a new topic is described at once all the same.
        fresh = now - self._described < DESCRIBE_EVERY
        ask = names - set(self.topics) if fresh else names
        if ask:
            found = self.admin.topics(ask)
            # What was asked for and not found is deleted, or may not be described any more.
            self.topics = {n: t for n, t in self.topics.items() if n not in ask} | found
            if not fresh:
                self._described = now
        self._configure(names & set(self.topics), now)

    def _configure(self, names: set[str], now: float) -> None:
        """Learn the cleanup policies, of all once in a while and of new topics at once."""
        of_all = now - self._configured > CONFIGS_EVERY
        ask = names if of_all else names - set(self.compacted)
        if ask:
            configs = self.admin.topic_configs(ask)
            self.compacted |= {n: "compact" in configs.get(n, {}).get("cleanup.policy", "") for n in ask}
            # Not for new topics alone: with one an hour those that are known would never be asked again.
            self._configured = now if of_all else self._configured

    def sample(self, wanted: Iterable[str]) -> list[LogEndSample]:
        """The log offsets of those of these topics that exist. Raises KafkaError."""
        topics = [self.topics[name] for name in sorted(set(wanted) & set(self.topics))]
        if not topics:
            return []
        end, start, stable = self._columns(topics)
        # When asked and when answered: a commit between the two is neither before nor after this sample.
        asked, seen = end.asked_ms, end.answered_ms
        columns = start.offsets, end.offsets, stable.offsets
        return [
            LogEndSample(t.name, t.id, asked, seen, *(column[t.name] for column in columns)) for t in topics
        ]

    def _columns(self, topics: Sequence[TopicDescription]) -> list[OffsetSample]:
        # librdkafka's connections are open already; those of the column request cost a handshake each time.
        if self._whole and sum(t.partitions for t in topics) < AT_ONCE_FROM:
            found = self._by_librdkafka(topics)
            if found:
                return found
        columns = self.admin.columns({t.name: t.leaders for t in topics}, WANTED)
        for wanted, one in zip(WANTED, columns, strict=True):
            self._fill(one.offsets, wanted, one.silent)
        self._whole = not any(map(_missing, (one.offsets for one in columns)))
        return columns

    def _by_librdkafka(self, topics: Sequence[TopicDescription]) -> list[OffsetSample] | None:
        """None once a question has partitions without an answer: it waits for one leader that is silent with the whole deadline, each
        time, where the column request knows which one was silent."""
        found = []
        for wanted in WANTED:
            found.append(self._filled({t.name: np.full(t.partitions, UNKNOWN) for t in topics}, wanted))
            self._whole = not _missing(found[-1].offsets)
            if not self._whole:
                return None
        return found

    def _filled(self, empty: dict[str, Longs], wanted: OffsetQuery) -> OffsetSample:
        asked_ms = now_ms()
        self._fill(empty, wanted)
        return OffsetSample(asked_ms, now_ms(), empty)

    def _fill(self, found: dict[str, Longs], wanted: OffsetQuery, silent: Container[Key] = ()) -> None:
        """Ask librdkafka for what is missing: it looks for a leader that has moved, and says why it has no answer."""
        # A leader that moved answers NOT_LEADER_OR_FOLLOWER, which the column request leaves as UNKNOWN.
        missing = [key for key in _missing(found) if key not in silent]
        if not missing:
            return
        if wanted.time == START:
            answer = self.admin.log_start(missing)
        else:
            answer = self.admin.log_end(missing, wanted.committed_only)
        for (topic, partition), offset in answer.found.items():
            found[topic][partition] = offset


def _missing(found: Mapping[str, Longs]) -> list[Key]:
    return [(t, p) for t, column in found.items() for p in np.flatnonzero(column == UNKNOWN).tolist()]
