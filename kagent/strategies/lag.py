"""``lag`` (KAFKA-5337): per topic, the partitions with most lag first, each to the member with the fewest of the topic.

A member with as few partitions as any other comes before one with less lag, so within a topic the members take turns:
in each turn everybody gets one, in the order of (lag so far, id). That is a sort per turn instead of a search per
partition.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from kagent.strategies.assignment import Assignment
from kagent.strategies.claims import member_order
from kagent.strategies.javahash import order_of_computes, string_hashes, string_ranks
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]

FEW = 32
"""With fewer members than this a heap is quicker than a sort per turn."""


def assign(scenario: Scenario) -> Assignment:
    """What grantneale's ``LagBasedPartitionAssignor`` gives; topics of unknown lag are passed over, as it does."""
    layout = scenario.layout
    lag = scenario.lag()
    by_id = np.argsort(string_ranks(scenario.member_ids))
    numbers, takers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for topic in _topic_order(scenario).tolist():
        if layout.topics[topic] not in scenario.lags:
            continue
        start, count = int(layout.start[topic]), int(layout.count[topic])
        order = np.argsort(-lag[start : start + count], kind="stable")
        users = by_id if layout.same_effective else by_id[layout.subscribed[by_id, topic]]
        numbers.append(start + order)
        takers.append(_in_turns(lag[start : start + count][order], users))
    topics, partition = layout.split(np.concatenate(numbers))
    member = np.concatenate(takers).astype(np.int32)
    return Assignment(scenario.member_ids, layout.topics, topics, partition, member, _notes(scenario))


def _notes(scenario: Scenario) -> tuple[str, ...]:
    layout = scenario.layout
    missing = [t for t in layout.considered_topics.tolist() if layout.topics[t] not in scenario.lags]
    return (f"the lag of {len(missing)} topics is not known: they are not assigned",) if missing else ()


def _in_turns(lag: Ints, users: Ints) -> Ints:
    """Takers of partitions whose lags descend; ``users`` are in the order of their ids."""
    if len(users) == 1:
        return np.repeat(users, len(lag))
    # The lags descend, so their negatives ascend as searchsorted needs.
    behind = int(np.searchsorted(-lag, 0))  # from here on no partition adds lag, so the turns repeat
    # The heap also serves sums beyond 64 bits: Python's integers do not overflow.
    if len(users) < FEW or _beyond(lag):
        takers = users[_by_heap(lag[:behind].tolist(), len(users))]
    else:
        takers = users[_by_sorting(lag[:behind], len(users))]
    if behind == len(lag):
        return takers
    return np.concatenate((takers, _idle(takers, lag[:behind], users, len(lag) - behind)))


def _beyond(lag: Ints) -> bool:
    """Whether sums of these may not fit in 64 bits; Java's would wrap there, and the busiest member seem idle."""
    return float(lag.sum(dtype=np.float64)) >= 2.0**62


def _by_sorting(lag: Ints, count: int) -> Ints:
    has = np.zeros(count, np.int64)
    turns = []
    for at in range(0, len(lag), count):
        turn = lag[at : at + count]
        # Everybody has the same number of partitions at the start of a turn, so only lag so far and id decide.
        order = np.argsort(has, kind="stable")[: len(turn)]
        has[order] += turn
        turns.append(order)
    return np.concatenate(turns) if turns else np.zeros(0, np.int64)


def _by_heap(lag: list[int], count: int) -> Ints:
    heap = [(0, 0, member) for member in range(count)]
    takers = []
    for more in lag:
        partitions, has, member = heap[0]
        heapq.heapreplace(heap, (partitions + 1, has + more, member))
        takers.append(member)
    return np.array(takers, np.int64)


def _idle(takers: Ints, lag: Ints, users: Ints, count: int) -> Ints:
    """Takers of ``count`` partitions without lag, after those that have some."""
    size = int(users.max()) + 1
    has = np.zeros(size, object if _beyond(lag) else np.int64)
    np.add.at(has, takers, lag)
    partitions = np.bincount(takers, minlength=size)
    order = np.argsort(has[users], kind="stable")
    # The last turn with lag may have been cut short: members it did not reach come first.
    fewest = partitions[users].min()
    opening = users[order][partitions[users][order] == fewest]
    turns = np.resize(users[order], max(0, count - len(opening)))
    return np.concatenate((opening[:count], turns))


def _topic_order(scenario: Scenario) -> Ints:
    """Codes of the considered topics in the order of the map topic → members, filled member by member."""
    layout = scenario.layout
    met: dict[int, None] = {}
    seen: set[int] = set()
    asked_again = False
    for kind in layout.subscription[member_order(scenario)].tolist():
        topics = layout.subscriptions[kind]
        if kind in seen or not len(topics):
            asked_again = asked_again or bool(len(topics))
            continue
        seen.add(kind)
        known = len(met)
        met.update(dict.fromkeys(topics.tolist()))
        asked_again = len(met) == known or int(topics[-1]) != next(reversed(met))
    codes = np.array(list(met), np.int64)
    hashes = string_hashes([layout.topics[code] for code in codes.tolist()])
    ordered: Ints = codes[order_of_computes(hashes, asked_again)]
    exist: Ints = ordered[layout.count[ordered] > 0]
    return exist
