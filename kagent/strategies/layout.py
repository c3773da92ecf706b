"""What every strategy asks of a scenario's topics and subscriptions, worked out once in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kagent.strategies.javahash import string_sorted

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Layout:
    """Topics in the order of ``String.compareTo``, so that a topic's code is also its rank.

    A partition has a *global number*: ``start[topic] + partition``. Counted in that order, the partitions of all
    topics are sorted by (topic name, partition).
    """

    topics: tuple[str, ...]
    count: Ints
    """Partitions per topic; 0 for a topic that does not exist."""
    subscriptions: tuple[Codes, ...]
    """The subscriptions that there are: codes of the topics named, in the member's order."""
    subscription: Ints
    """Per member, which of the subscriptions."""

    @classmethod
    def empty(cls) -> Layout:
        """The layout of nothing."""
        return cls((), np.zeros(0, np.int64), (), np.zeros(0, np.int64))

    @classmethod
    def of(
        cls,
        kinds: Sequence[tuple[str, ...]],
        kind: Ints,
        partitions_per_topic: Mapping[str, int],
        others: Sequence[str] = (),
    ) -> Layout:
        """Of the subscriptions and which of them each member has, the cluster's topics, and further names (owned, deleted)."""
        names = set(partitions_per_topic).union(others, *kinds)
        # Sorted once: codes then compare as Kafka compares names, and no strategy sorts strings again.
        topics = tuple(string_sorted(names))
        codes = {name: at for at, name in enumerate(topics)}
        count = np.array([partitions_per_topic.get(name, 0) for name in topics], np.int64)
        subscriptions = tuple(np.array([codes[name] for name in names], np.int32) for names in kinds)
        return cls(topics, count, subscriptions, kind)

    @cached_property
    def code_of(self) -> dict[str, int]:
        """Topic name → code."""
        return {name: at for at, name in enumerate(self.topics)}

    @cached_property
    def start(self) -> Ints:
        """The global number of each topic's partition 0."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.count)))[:-1]

    @cached_property
    def total(self) -> int:
        """Partitions of all topics, subscribed or not."""
        return int(self.count.sum())

    @cached_property
    def effective(self) -> tuple[Codes, ...]:
        """The subscriptions, only topics with partitions."""
        return tuple(codes[self.count[codes] > 0] for codes in self.subscriptions)

    @cached_property
    def considered(self) -> Flags:
        """Topics that somebody subscribes to and that have partitions."""
        flags = np.zeros(len(self.topics), np.bool_)
        for codes in self.effective:
            flags[codes] = True
        return flags

    @cached_property
    def limit(self) -> Ints:
        """Partitions per considered topic, 0 for the others: a row counts when its partition is below."""
        return np.where(self.considered, self.count, 0)

    @cached_property
    def considered_topics(self) -> Ints:
        """Their codes, ascending."""
        return np.flatnonzero(self.considered)

    @cached_property
    def considered_total(self) -> int:
        """Partitions to be given out."""
        return int(self.count[self.considered].sum())

    def considered_partitions(self) -> Flags:
        """Per global number, whether the partition is to be given out. The caller owns the array and may write into it."""
        return np.repeat(self.considered, self.count)

    def without(self, taken: Ints | Flags) -> Ints:
        """Global numbers of the partitions to be given out that are not taken, ascending."""
        free = self.considered_partitions()
        free[taken] = False
        return np.flatnonzero(free)

    @cached_property
    def subscribed(self) -> Flags:
        """Matrix (member, topic): whether the member subscribes to it, and it has partitions."""
        return self.subscribed_by_kind[self.subscription]

    @cached_property
    def subscribed_by_kind(self) -> Flags:
        """The same per subscription."""
        flags = np.zeros((len(self.subscriptions), len(self.topics)), np.bool_)
        for row, codes in zip(flags, self.effective, strict=True):
            row[codes] = True
        return flags

    @cached_property
    def same_effective(self) -> bool:
        """Whether all members subscribe to the same topics, those that do not exist left out."""
        if len(self.subscriptions) == 1:
            return True
        kinds = self.subscribed_by_kind
        return bool((kinds == kinds[:1]).all())

    def subscribers(self, topic: int) -> Ints:
        """Members subscribed to the topic, ascending."""
        return np.flatnonzero(self.subscribed_by_kind[self.subscription, topic])

    def partitions(self, topics: Ints | None = None) -> tuple[Codes, Codes]:
        """(topic, partition) of all partitions of the topics given, in their order; of the considered ones without."""
        codes = self.considered_topics if topics is None else topics
        count = self.count[codes]
        topic = np.repeat(codes.astype(np.int32), count)
        first = np.repeat((np.cumsum(count) - count).astype(np.int32), count)
        return topic, np.arange(len(topic), dtype=np.int32) - first

    def numbers(self, topic: Codes, partition: Codes) -> Ints:
        """Global numbers."""
        # take(), not brackets: it needs two thirds of the time.
        return self.start.take(topic) + partition

    def split(self, numbers: Ints) -> tuple[Codes, Codes]:
        """(topic, partition) of global numbers."""
        topic = self.topic_of.take(numbers)
        return topic, (numbers - self.start.take(topic)).astype(np.int32)

    @cached_property
    def topic_of(self) -> Codes:
        """The topic of every global number."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), self.count)
