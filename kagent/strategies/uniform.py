"""``kip848-uniform`` where all members subscribe to the same topics (``UniformHomogeneousAssignmentBuilder``, 4.1).

Even counts, members keep what they hold; who gets one more is decided in the order of Java's map of members, with
KAFKA-18688: a member that cannot use the extra one leaves it to another, while there are enough of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kagent.strategies import topicids, uniform_mixed
from kagent.strategies.assignment import Assignment
from kagent.strategies.javahash import copy_capacity, order_of_puts, string_hashes
from kagent.strategies.kip848 import held_rows, homogeneous
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def assign(scenario: Scenario) -> Assignment:
    """What ``UniformAssignor`` gives. Within a member the order of rows says nothing: Java has sets there."""
    # https://github.com/apache/kafka/blob/4.3.0/group-coordinator/src/main/java/org/apache/kafka/coordinator/group/assignor/UniformHomogeneousAssignmentBuilder.java
    if not homogeneous(scenario):
        return uniform_mixed.assign(scenario)
    layout = scenario.layout
    rows = held_rows(scenario)
    member, topic, partition = rows.member, rows.topic, rows.partition
    ids = scenario.member_ids
    # Java's HashMap walks buckets of hashes, so the order of members follows from their ids alone.
    order = order_of_puts(string_hashes(ids))
    # The server keeps what members hold up to their quotas and gives out only the rest, so quotas decide all moves.
    held = np.bincount(member, minlength=len(order))
    quotas = _quotas(held, order, layout.considered_total)
    new_topic, new_partition = _free(scenario, order, rows.taken)
    if (held > quotas).any():
        keeps, revoked = _revoked(scenario, member, rows.number, held, quotas, order)
        member, topic, partition = member[keeps], topic[keeps], partition[keeps]
        more_topic, more_partition = layout.split(revoked)
        new_topic = np.concatenate((new_topic, more_topic))
        new_partition = np.concatenate((new_partition, more_partition))
    lacking = order[quotas[order] > held[order]]
    taker = np.repeat(lacking, (quotas - held)[lacking])[: len(new_topic)]
    return Assignment(
        ids,
        layout.topics,
        np.concatenate((topic, new_topic)),
        np.concatenate((partition, new_partition)),
        np.concatenate((member, taker)).astype(np.int32),
        (*rows.notes, *topicids.notes(scenario)),
    )


def _quotas(held: Ints, order: Ints, total: int) -> Ints:
    """How many partitions each member may have."""
    count = len(order)
    low, extra = divmod(total, count)
    quotas = np.full(count, low, np.int64)
    if extra:
        takes = held[order] > low
        left = extra - (np.cumsum(takes) - takes)
        # The others have room left as it is, and leave the extra one until there are no more members than extra ones.
        takes |= np.logical_or.accumulate(count - np.arange(count) <= left)
        quotas[order[np.flatnonzero(takes)[:extra]]] += 1
    return quotas


def _free(scenario: Scenario, order: Ints, taken: Flags) -> tuple[Codes, Codes]:
    """Unassigned (topic, partition) pairs, topics in the order of Java's set of ids."""
    layout = scenario.layout
    topics = _topic_order(scenario, int(order[0]))
    if not taken.any():
        return layout.partitions(topics)
    numbers = layout.without(taken)
    place = np.zeros(len(layout.topics), np.int64)
    place[topics] = np.arange(len(topics))
    return layout.split(numbers[np.argsort(place[layout.topic_of[numbers]], kind="stable")])


def _topic_order(scenario: Scenario, first: int) -> Ints:
    """Topics of the first member, as ids in a set filled in the order of its set of names."""
    layout = scenario.layout
    codes = layout.subscriptions[layout.subscription[first]].astype(np.int64)
    names = [layout.topics[code] for code in codes.tolist()]
    capacity = copy_capacity(len(names))
    codes = codes[order_of_puts(string_hashes(names), capacity)]
    codes = codes[layout.count[codes] > 0]
    ordered: Ints = codes[order_of_puts(topicids.hashes(scenario, codes), capacity)]
    return ordered


def _revoked(
    scenario: Scenario, member: Ints, number: Ints, held: Ints, quotas: Ints, order: Ints
) -> tuple[Flags, Ints]:
    """Which rows stay, and the partitions taken away in the order in which Java takes them."""
    keeps = np.ones(len(number), np.bool_)
    taken = [np.zeros(0, np.int64)]
    rows_of = np.argsort(member, kind="stable")
    ends = np.cumsum(held)
    for over in order[(held > quotas)[order]].tolist():
        rows = rows_of[ends[over] - held[over] : ends[over]]
        rows = _iterated(scenario, over, rows, number)
        keeps[rows[quotas[over] :]] = False
        taken.append(number[rows[quotas[over] :]])
    return keeps, np.concatenate(taken)


def _iterated(scenario: Scenario, member: int, rows: Ints, number: Ints) -> Ints:
    """The rows of one member in the order in which its map of sets is walked."""
    layout, owned = scenario.layout, scenario.owned
    record = owned.topic[owned.member == member]
    codes = np.array(list(dict.fromkeys(record.tolist())), np.int64)
    codes = codes[order_of_puts(topicids.hashes(scenario, codes))]
    topic = layout.topic_of[number[rows]]
    walked = []
    for code in codes.tolist():
        mine = rows[topic == code]
        partitions = (number[mine] - layout.start[code]).astype(np.uint32)
        walked.append(mine[order_of_puts(partitions, copy_capacity(len(mine)))])
    return np.concatenate(walked)
