"""Asking a cluster for the log ends of the topics that its groups read. Blocking: run it in a thread."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kagent.contract.admission import is_topic_name
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Topic
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.observation import TopicInfo

DESCRIBE_EVERY = 30.0
CONFIGS_EVERY = 3600.0
STABLE_UP_TO = 5000
"""Last stable offsets are asked for all partitions up to so many: a second request as large as the first."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One topic's log starts, ends and last stable offsets, per partition; UNKNOWN where one could not be asked."""

    topic: str
    topic_id: str
    asked: int
    seen: int
    start: list[int]
    end: list[int]
    stable: list[int] | None


@dataclass(slots=True)
class Sampler:
    """Samples of one cluster; remembers what changes seldom (topic ids, partition counts, cleanup policy)."""

    admin: Admin
    topics: dict[str, Topic] = field(default_factory=dict)
    compacted: dict[str, bool] = field(default_factory=dict)
    _described: float = float("-inf")
    _configured: float = float("-inf")

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
            names |= set(self.admin.topic_names())
        fresh = now - self._described < DESCRIBE_EVERY
        ask = names - set(self.topics) if fresh else names
        if ask:
            found = self.admin.topics(ask)
            self.topics = {n: t for n, t in self.topics.items() if n not in ask} | found
            if not fresh:
                self._described = now
        self._configure(names & set(self.topics), now)

    def _configure(self, names: set[str], now: float) -> None:
        """Learn the cleanup policies, of all once in a while and of new topics at once."""
        ask = names if now - self._configured > CONFIGS_EVERY else names - set(self.compacted)
        if ask:
            configs = self.admin.topic_configs(ask)
            self.compacted |= {n: "compact" in configs.get(n, {}).get("cleanup.policy", "") for n in ask}
            self._configured = now

    def sample(self, wanted: Iterable[str]) -> list[Sample]:
        """The log offsets of those of these topics that exist. Raises KafkaError."""
        names = sorted(set(wanted) & set(self.topics))
        keys = [(name, p) for name in names for p in range(self.topics[name].partitions)]
        if not keys:
            return []
        asked = int(time.time() * 1000)
        end = self.admin.log_end(keys).found
        seen = int(time.time() * 1000)
        start = self.admin.log_start(keys).found
        stable = self.admin.log_end(keys, committed_only=True).found if len(keys) <= STABLE_UP_TO else None
        return [
            Sample(
                topic=name,
                topic_id=self.topics[name].id,
                asked=asked,
                seen=seen,
                start=_column(start, name, self.topics[name].partitions),
                end=_column(end, name, self.topics[name].partitions),
                stable=None if stable is None else _column(stable, name, self.topics[name].partitions),
            )
            for name in names
        ]


def _column(found: Mapping[tuple[str, int], int], topic: str, partitions: int) -> list[int]:
    return [found.get((topic, p), UNKNOWN) for p in range(partitions)]
