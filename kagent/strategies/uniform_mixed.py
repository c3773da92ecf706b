"""``kip848-uniform`` where subscriptions differ (``UniformHeterogeneousAssignmentBuilder``, KAFKA-17710).

Keep, give out, then even out topic by topic, at most 16 rounds; it may end only nearly balanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.strategies import fewest_first, topicids
from kagent.strategies.assignment import Assignment
from kagent.strategies.javahash import order_of_puts, string_hashes
from kagent.strategies.kip848 import held_rows
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]

# MAX_ITERATION_COUNT of Kafka's builder: evening out one topic may unbalance another again.
# https://github.com/apache/kafka/blob/4.3.0/group-coordinator/src/main/java/org/apache/kafka/coordinator/group/assignor/UniformHeterogeneousAssignmentBuilder.java
MAX_ROUNDS = 16


def assign(scenario: Scenario) -> Assignment:
    """What ``UniformAssignor`` gives. Within a member the order of rows says nothing: Java has sets there."""
    layout = scenario.layout
    order = order_of_puts(string_hashes(scenario.member_ids))
    at = np.empty(len(order), np.int64)
    at[order] = np.arange(len(order))
    rows = held_rows(scenario)
    owner = np.full(layout.total, -1, np.int64)  # members by their place in Java's map from here on
    owner[rows.number] = at[rows.member]
    held = np.bincount(owner[rows.number], minlength=len(order)).astype(np.int64)
    subscribers = {
        topic: np.flatnonzero(layout.subscribed[order, topic]) for topic in layout.considered_topics.tolist()
    }
    topics = _sorted_topics(scenario, subscribers)
    for topic in topics:
        _give(scenario, topic, subscribers[topic], owner, held)
    _balance(scenario, [t for t in topics if len(subscribers[t]) >= 2], subscribers, owner, held)
    placed = np.flatnonzero(owner >= 0)
    topic_column, partition = layout.split(placed)
    return Assignment(
        scenario.member_ids,
        layout.topics,
        topic_column,
        partition,
        order[owner[placed]].astype(np.int32),
        (*rows.notes, *topicids.notes(scenario)),
    )


def _sorted_topics(scenario: Scenario, subscribers: dict[int, Ints]) -> list[int]:
    """By partitions per subscriber descending, then subscribers, then id."""
    codes = scenario.layout.considered_topics
    ids = dict(zip(codes.tolist(), topicids.halves(scenario, codes), strict=True))

    def key(topic: int) -> tuple[float, int, tuple[int, int]]:
        users = len(subscribers[topic])
        # As a double, as in Java: ratios that its precision cannot tell apart fall to the next criterion there, too.
        return -(int(scenario.layout.count[topic]) / users), users, ids[topic]

    return sorted(codes.tolist(), key=key)


def _give(scenario: Scenario, topic: int, users: Ints, owner: Ints, held: Ints) -> None:
    start, count = int(scenario.layout.start[topic]), int(scenario.layout.count[topic])
    free = start + np.flatnonzero(owner[start : start + count] < 0)
    if len(free):
        owner[free] = fewest_first.fill(held, users[np.argsort(held[users], kind="stable")], len(free))


def _balance(
    scenario: Scenario, topics: list[int], subscribers: dict[int, Ints], owner: Ints, held: Ints
) -> None:
    last = -1
    for _ in range(MAX_ROUNDS):
        for at, topic in enumerate(topics):
            # Once round since the last topic that changed: nothing is left to move.
            if at == last:
                return
            moved = _balance_topic(scenario, topic, subscribers[topic], owner, held)
            if moved or last == -1:
                last = at


def _balance_topic(scenario: Scenario, topic: int, users: Ints, owner: Ints, held: Ints) -> int:
    """Partitions of one topic from its most loaded to its least loaded subscribers; how many moved."""
    loads = held[users]
    if int(loads.max()) - int(loads.min()) <= 1:
        return 0
    sorted_users = users[np.argsort(loads, kind="stable")].tolist()
    start, count = int(scenario.layout.start[topic]), int(scenario.layout.count[topic])
    has: dict[int, list[int]] = {}
    for number, holder in enumerate(owner[start : start + count].tolist(), start):
        has.setdefault(holder, []).append(number)
    sizes = held.tolist()
    ends = _Ends.of(sorted_users, sizes)
    moved = 0
    while not ends.balanced() and (giver := ends.giver(sizes, has)) is not None:
        # Its highest partition, as in Kafka, taken before the check below that may end the round without the move.
        number = has[giver].pop()
        taker = ends.taker(sizes)
        if ends.balanced():
            break
        owner[number] = taker
        sizes[giver] -= 1
        sizes[taker] += 1
        moved += 1
    held[:] = sizes
    return moved


@dataclass(slots=True)
class _Ends:
    """The least loaded members, taken from the left, and the most loaded ones, taken from the right.

    Both are ranges of equal load in ``members``. A range is gone through once, then its level changes by one and it
    grows by the members that are at that level. A giver with nothing left of the topic is put to the right end, outside.
    """

    members: list[int]
    low_end: int
    low_level: int
    low_next: int
    high_start: int
    high_end: int
    high_level: int
    high_next: int

    @classmethod
    def of(cls, members: list[int], sizes: list[int]) -> _Ends:
        count = len(members)
        return cls(members, 0, sizes[members[0]] - 1, 0, count, count, sizes[members[-1]] + 1, count - 1)

    def balanced(self) -> bool:
        return self.high_level - self.low_level <= 1

    def taker(self, sizes: list[int]) -> int:
        if self.low_next >= self.low_end:
            self.low_level += 1
            while self.low_end < len(self.members) and sizes[self.members[self.low_end]] == self.low_level:
                self.low_end += 1
            self.low_next = 0
        self.low_next += 1
        return self.members[self.low_next - 1]

    def giver(self, sizes: list[int], has: dict[int, list[int]]) -> int | None:
        while (member := self._next_giver(sizes)) is not None and not has.get(member):
            self._exclude(member)
        return member

    def _next_giver(self, sizes: list[int]) -> int | None:
        if self.high_next < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                self.high_level = sizes[self.members[self.high_start - 1]]
            else:
                self.high_level -= 1
            while self.high_start > 0 and sizes[self.members[self.high_start - 1]] == self.high_level:
                self.high_start -= 1
            self.high_next = self.high_end - 1
        if self.high_next < 0:
            return None
        self.high_next -= 1
        return self.members[self.high_next + 1]

    def _exclude(self, member: int) -> None:
        at, last = self.high_next + 1, self.high_end - 1
        self.members[at], self.members[last] = self.members[last], member
        self.high_end -= 1
