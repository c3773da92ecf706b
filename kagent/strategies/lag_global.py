"""``lag-global``: the rule of ``lag`` over all topics of the group at once, and sticky.

``lag`` starts counting anew with each topic and forgets who had what. Here every partition has a weight

    (1 − balance) / partitions + balance · lag / lag of all

so the weights of a group add up to 1 and a member's fair share is one over the members. ``balance`` 0 evens out counts,
1 evens out lag, in between both count.

1. From nothing: partitions by weight, greatest first, each to the subscriber with the least weight so far, ties to the
   smallest id (the LPT rule of scheduling: at most 4/3 of the best greatest load, Graham 1969). The greatest load
   that this gives is the *limit*.
2. Members keep what they own as far as the limit (and ``tolerance`` above it) allows, heaviest first.
3. What is left goes by the rule of 1.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.strategies.assignment import Assignment
from kagent.strategies.javahash import string_ranks
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Loads that differ by less than this share of the whole are the same."""


def assign(scenario: Scenario, balance: float = 0.5, tolerance: float = 0.0) -> Assignment:
    """An assignment with even mixed weights that moves little.

    Args:
        scenario: the group; lags that are not known count as none.
        balance: 0 evens out counts, 1 evens out lag.
        tolerance: by which share of the limit a member may exceed it to keep what it owns.
    """
    if not 0 <= balance <= 1:
        raise InputError(f"balance: {balance} is not between 0 and 1")
    if tolerance < 0:
        raise InputError(f"tolerance: {tolerance} is below 0")
    layout = scenario.layout
    numbers = np.flatnonzero(layout.considered_partitions())
    weight = _weights(scenario.lag()[numbers], balance)
    heaviest = np.argsort(-weight, kind="stable")
    numbers, weight = numbers[heaviest], weight[heaviest]
    nothing = np.zeros(len(scenario.members))
    fresh = _lightest(scenario, numbers, weight, nothing)
    owner = _owners(scenario)[numbers]
    if (owner >= 0).any():
        # What members keep may not make the greatest load worse than a fresh assignment has it.
        limit = _loads(fresh, weight, len(nothing)).max() * (1 + tolerance) + ROUNDING
        member = _kept(owner, weight, limit, len(nothing))
        free = member < 0
        loads = _loads(member[~free], weight[~free], len(nothing))
        member[free] = _lightest(scenario, numbers[free], weight[free], loads)
    else:
        member = fresh
    topic, partition = layout.split(numbers)
    return Assignment(scenario.member_ids, layout.topics, topic, partition, member.astype(np.int32))


def _weights(lag: Ints, balance: float) -> Weights:
    total = float(lag.sum(dtype=np.float64))
    if not total:
        return np.full(len(lag), 1 / max(1, len(lag)))
    weights: Weights = (1 - balance) / len(lag) + balance * (lag / total)
    return weights


def _loads(member: Ints, weight: Weights, count: int) -> Weights:
    return np.bincount(member, weights=weight, minlength=count).astype(np.float64, copy=False)


def _owners(scenario: Scenario) -> Ints:
    """Per global number the member that owns it and is still subscribed; the newest generation wins; otherwise no owner."""
    layout, owned = scenario.layout, scenario.owned
    valid = (owned.partition < layout.count[owned.topic]) & layout.subscribed[owned.member, owned.topic]
    number = layout.numbers(owned.topic[valid], owned.partition[valid])
    member = owned.member[valid].astype(np.int64)
    generation = np.array([-1 if m.generation is None else m.generation for m in scenario.members])
    oldest_first = np.argsort(generation[member], kind="stable")
    owner = np.full(layout.total, -1, np.int64)
    owner[number[oldest_first]] = member[oldest_first]
    # Of two claims in one generation none can be trusted, so neither keeps it.
    disputed = generation[owner[number]] == generation[member]
    owner[number[disputed & (owner[number] != member)]] = -1
    return owner


def _kept(owner: Ints, weight: Weights, limit: float, count: int) -> Ints:
    """Owners that keep their partition, −1 where not; the rows are heaviest first."""
    kept = owner.copy()
    loads = _loads(owner[owner >= 0], weight[owner >= 0], count)
    for member in np.flatnonzero(loads > limit).tolist():
        load = 0.0
        for row in np.flatnonzero(owner == member).tolist():
            if load + weight[row] > limit:
                kept[row] = -1
            else:
                load += weight[row]
    return kept


def _lightest(scenario: Scenario, numbers: Ints, weight: Weights, loads: Weights) -> Ints:
    """Each partition in turn to the subscriber with the least load, ties to the smallest id."""
    layout = scenario.layout
    rank = string_ranks(scenario.member_ids)
    by_rank = np.argsort(rank).tolist()
    held = loads[by_rank].tolist()  # by rank of id from here on
    topic = layout.topic_of[numbers]
    heaps, heap_of = _heaps(scenario, rank, held, np.unique(topic))
    takers = []
    for which, more in zip(heap_of[topic].tolist(), weight.tolist(), strict=True):
        heap = heaps[which]
        load, place = heap[0]
        while load != held[place]:  # it got something through another heap since
            heapq.heapreplace(heap, (held[place], place))
            load, place = heap[0]
        held[place] = load + more
        heapq.heapreplace(heap, (load + more, place))
        takers.append(by_rank[place])
    return np.array(takers, np.int64)


def _heaps(
    scenario: Scenario, rank: Ints, held: list[float], topics: npt.NDArray[np.int32]
) -> tuple[list[list[tuple[float, int]]], Ints]:
    """A heap (load, rank of id) for each distinct set of subscribers, and which one each topic uses."""
    layout = scenario.layout
    known: dict[bytes, int] = {}
    heaps: list[list[tuple[float, int]]] = []
    heap_of = np.full(len(layout.topics), -1, np.int64)
    for topic in topics.tolist():
        # Topics with the same subscribers share one heap: in most groups all topics do.
        key = layout.subscribed_by_kind[:, topic].tobytes()
        if key not in known:
            known[key] = len(heaps)
            heap = [(held[place], place) for place in rank[layout.subscribers(topic)].tolist()]
            heapq.heapify(heap)
            heaps.append(heap)
        heap_of[topic] = known[key]
    return heaps, heap_of
