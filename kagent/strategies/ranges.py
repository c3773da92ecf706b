"""``range``: per topic, contiguous blocks to the members in order (``RangeAssignor``, racks: KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.strategies.assignment import Assignment
from kagent.strategies.claims import member_order
from kagent.strategies.javahash import order_of_puts, string_hashes, string_key, string_order
from kagent.strategies.racks import Racks
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]


def assign(scenario: Scenario) -> Assignment:
    """What ``RangeAssignor`` gives. With k subscribers of n partitions the first n mod k get one more than the rest."""
    # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/RangeAssignor.java
    racks = Racks.of(scenario)
    # KIP-881: racks matter only where clients and replicas have them, and not every rack has every replica.
    if racks is not None:
        states = _states(scenario, racks)
        if any(state.aware for state in states.values()):
            return _rack_aware(scenario, racks, states)
    topics = topic_order(scenario)
    topic, partition = scenario.layout.partitions(topics)
    return Assignment(
        scenario.member_ids, scenario.layout.topics, topic, partition, in_blocks(scenario, topics)
    )


def in_member_order(scenario: Scenario) -> Ints:
    """Static members by instance id, then dynamic ones by member id."""
    if not scenario.has_static_members:
        return string_order(scenario.member_ids)

    def key(at: int) -> tuple[bool, bytes]:
        member = scenario.members[at]
        # By instance id, which outlives a restart: by member id every restart would shift the blocks (KAFKA-8355, KIP-345).
        static = member.group_instance_id
        return static is None, string_key(member.id if static is None else static)

    # Kafka sorts lists that are in its map's order; that shows where two members carry one instance id.
    return np.array(sorted(member_order(scenario).tolist(), key=key), np.int64)


def topic_order(scenario: Scenario) -> Ints:
    """Codes of the considered topics in the order in which Kafka's map of them is walked."""
    layout = scenario.layout
    met: dict[int, None] = {}
    for kind in _kinds_met(scenario):
        met.update(dict.fromkeys(layout.subscriptions[kind].tolist()))
    codes = np.array(list(met), np.int64)
    hashes = string_hashes([layout.topics[code] for code in codes.tolist()])
    # Two orders in turn: Kafka gathers the names in a HashSet, and walks that to fill the HashMap that it assigns from.
    as_set = order_of_puts(hashes)
    codes, hashes = codes[as_set], hashes[as_set]
    known = layout.count[codes] > 0
    codes, hashes = codes[known], hashes[known]
    ordered: Ints = codes[order_of_puts(hashes)]
    return ordered


def _kinds_met(scenario: Scenario) -> Iterable[int]:
    """The distinct subscriptions in the order in which Kafka meets them."""
    layout = scenario.layout
    if len(layout.subscriptions) == 1:
        return (0,)
    return dict.fromkeys(layout.subscription[member_order(scenario)].tolist())


def in_blocks(scenario: Scenario, topics: Ints) -> npt.NDArray[np.int32]:
    """The taker of every partition of these topics, in their order: contiguous blocks to each topic's subscribers."""
    layout = scenario.layout
    ordered = in_member_order(scenario)
    if layout.same_effective:
        return _alike(ordered, layout.count[topics])
    kinds = layout.subscribed_by_kind[:, topics]
    blocks: dict[tuple[bytes, int], npt.NDArray[np.int32]] = {}
    given = [np.zeros(0, np.int32)]
    # Topics with the same subscribers and as many partitions fall out alike.
    for count, column in zip(layout.count[topics].tolist(), kinds.T, strict=True):
        key = column.tobytes(), count
        if key not in blocks:
            takers = ordered[column[layout.subscription[ordered]]]
            blocks[key] = np.repeat(takers, shares(count, len(takers))).astype(np.int32)
        given.append(blocks[key])
    return np.concatenate(given)


def _alike(takers: Ints, counts: Ints) -> npt.NDArray[np.int32]:
    """Blocks of topics that all have these takers."""
    distinct = dict.fromkeys(counts.tolist())
    blocks = {n: np.repeat(takers, shares(n, len(takers))).astype(np.int32) for n in distinct}
    return np.concatenate([np.zeros(0, np.int32), *map(blocks.__getitem__, counts.tolist())])


def shares(count: int, takers: int) -> Ints:
    """How many of ``count`` partitions each of the takers gets: the first count mod takers one more."""
    quota, extra = divmod(count, takers)
    share = np.full(takers, quota, np.int64)
    share[:extra] += 1
    return share


@dataclass(slots=True)
class _State:
    """One topic while it is given out with racks in mind."""

    topic: int
    takers: tuple[int, ...]
    aware: bool
    rows: int
    """Partitions with rack data: all of them when a subscriber has a rack, else 0."""
    quota: int
    extra: int
    free: list[int]
    has: dict[int, int]

    def room(self, member: int) -> int:
        return max(0, self.quota + (self.extra > 0) - self.has[member])

    def take(self, member: int, numbers: list[int], given: list[tuple[int, int]]) -> None:
        given.extend((member, number) for number in numbers)
        self.has[member] += len(numbers)
        # It has one of the extras now; once per call, as Kafka counts it, however many partitions it took.
        if self.has[member] > self.quota:
            self.extra -= 1
        taken = set(numbers)
        self.free = [number for number in self.free if number not in taken]


def _states(scenario: Scenario, racks: Racks) -> dict[int, _State]:
    layout = scenario.layout
    ordered = in_member_order(scenario)
    states = {}
    for topic in layout.considered_topics.tolist():
        takers = ordered[layout.subscribed[ordered, topic]]
        start, count = int(layout.start[topic]), int(layout.count[topic])
        free = list(range(start, start + count))
        racked = bool((racks.member[takers] >= 0).any())
        of_topic = np.zeros(layout.total, np.bool_)
        of_topic[start : start + count] = True
        aware = racked and racks.aware(takers, of_topic)
        quota, extra = divmod(count, len(takers))
        has = dict.fromkeys(takers.tolist(), 0)
        states[topic] = _State(topic, tuple(has), aware, count if racked else 0, quota, extra, free, has)
    return states


def _rack_aware(scenario: Scenario, racks: Racks, states: dict[int, _State]) -> Assignment:
    given: list[tuple[int, int]] = []
    alike: dict[tuple[tuple[int, ...], int], list[_State]] = {}
    for state in states.values():
        alike.setdefault((state.takers, state.rows), []).append(state)
    for group in alike.values():
        # Topics with the same subscribers and as many partitions stay co-partitioned: that comes before racks (RangeAssignor).
        if len(group) > 1:
            _together(group, racks, given)
        elif group[0].aware:
            _alone(group[0], racks, given)
    for state in states.values():
        for member in state.takers:
            if rest := state.free[: state.room(member)]:
                state.take(member, rest, given)
    # With racks Kafka sorts each member's list at the end by topic and partition, which global numbers are in order of.
    columns = np.array(sorted(given, key=lambda row: row[1]), np.int64).reshape(-1, 2)
    topic, partition = scenario.layout.split(columns[:, 1])
    takers = columns[:, 0].astype(np.int32)
    return Assignment(scenario.member_ids, scenario.layout.topics, topic, partition, takers)


def _near(racks: Racks, member: int, number: int) -> bool:
    rack = int(racks.member[member])
    return rack < 0 or bool(racks.replicas[number, rack])


def _alone(state: _State, racks: Racks, given: list[tuple[int, int]]) -> None:
    for member in state.takers:
        near = [number for number in state.free if _near(racks, member, number)]
        if mine := near[: state.room(member)]:
            state.take(member, mine, given)


def _together(group: list[_State], racks: Racks, given: list[tuple[int, int]]) -> None:
    """Co-partitioned topics: partition p of all of them to one member, if it is near all and has room in all."""
    starts = [state.free[0] for state in group]
    remaining = list(group[0].takers)
    for partition in range(group[0].rows):
        for member in remaining:
            if all(
                _near(racks, member, start + partition) and state.room(member) > 0
                for state, start in zip(group, starts, strict=True)
            ):
                break
        else:
            continue
        for state, start in zip(group, starts, strict=True):
            state.take(member, [start + partition], given)
        if not any(state.room(member) for state in group):
            remaining.remove(member)
            if not remaining:
                return
