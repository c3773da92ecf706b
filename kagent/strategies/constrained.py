"""The sticky assignment of a group whose members all subscribe to the same topics (KAFKA-9987, KAFKA-12464).

Every member ends with ⌊P/N⌋ or ⌈P/N⌉ partitions and keeps as many of its own as that allows. Which members keep the
greater share is decided in the order of Java's map, all else is sorted, so it is a handful of passes over columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.strategies.claims import Claims
from kagent.strategies.javahash import string_ranks
from kagent.strategies.racks import Racks
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows (member, global number) in list order, and which partitions change hands."""

    member: Ints
    number: Ints
    transferring: Flags | None
    """Per global number; None when nothing does."""
    compared: bool = False
    """Whether ``transferring`` was worked out."""


@dataclass(slots=True)
class _Unfilled:
    """Members that may get more, sorted by id, and how far the greater share has been given out."""

    low: int
    high: int
    above: int
    expected: int
    under: list[int]
    exact: list[int]


def place(scenario: Scenario, claims: Claims, racks: Racks | None) -> Placed:
    """The whole assignment."""
    total, count = scenario.layout.considered_total, len(scenario.members)
    member, number, revoked = _kept_rows(scenario, claims, racks)
    sizes = np.bincount(member, minlength=count)
    low, expected = divmod(total, count)
    keeps, waiting = _shares(sizes, claims.order, low, expected)
    rank = string_ranks(scenario.member_ids)
    # Kafka sorts both lists by id only after the walk in map order, so ids decide who is filled first, not who keeps more.
    waiting.under.sort(key=rank.__getitem__)
    waiting.exact.sort(key=rank.__getitem__)
    if not len(member):
        free, kept_member, kept_number = _all_numbers(scenario), member, number
    else:
        # The place of each row within its member's block: rows before ``keeps`` stay.
        within = np.arange(len(member)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        stays = within < np.repeat(keeps, sizes)
        if not stays.all():
            revoked.append((member[~stays], number[~stays]))
        kept_member, kept_number = (member, number) if stays.all() else (member[stays], number[stays])
        free = scenario.layout.without(kept_number)
    held = np.minimum(sizes, keeps)
    taker, given = _given(scenario, free, held, waiting, racks)
    return Placed(
        np.concatenate((kept_member, taker)),
        np.concatenate((kept_number, given)),
        _transferring(scenario, revoked, claims.doubly, taker, given),
        compared=True,
    )


def _kept_rows(
    scenario: Scenario, claims: Claims, racks: Racks | None
) -> tuple[Ints, Ints, list[tuple[Ints, Ints]]]:
    """Claims by member, then partition, then topic, without wrong racks (revoked) and double claims."""
    member, number = claims.member, claims.number
    revoked: list[tuple[Ints, Ints]] = []
    # A partition without a replica in the member's rack is given up and may go to a nearer member (KIP-881).
    if racks is not None and len(member):
        right = racks.matches(member, number)
        revoked.append((member[~right], number[~right]))
        member, number = member[right], number[right]
    if len(claims.doubly):
        single = ~np.isin(number, claims.doubly)
        member, number = member[single], number[single]
    return (*_sorted_rows(scenario, member, number), revoked)


def _sorted_rows(scenario: Scenario, member: Ints, number: Ints) -> tuple[Ints, Ints]:
    if not len(member):
        return member, number
    layout = scenario.layout
    topics = len(layout.topics)
    topic = layout.topic_of[number].astype(np.int64)
    partition = number - layout.start[topic]
    width = int(partition.max()) + 1
    # Below, the three columns packed in one int64 sort in one pass; this is for numbers that would overflow it.
    if len(scenario.members) * width * topics >= 1 << 62:
        order = np.lexsort((topic, partition, member))
        return member[order], number[order]
    # Partition before topic: a member that gives some up keeps part of every topic (KAFKA-16277, Kafka 3.8).
    key = (member * width + partition) * topics + topic
    key.sort()
    rest = key // topics
    topic_sorted = key - rest * topics
    member_sorted = rest // width
    return member_sorted, layout.start[topic_sorted] + (rest - member_sorted * width)


def _shares(sizes: Ints, order: Ints, low: int, expected: int) -> tuple[Ints, _Unfilled]:
    """How many partitions each member keeps, and who waits for more; walks in the order of Java's map."""
    high = low + (expected > 0)
    keeps = np.full(len(sizes), low, np.int64)
    under: list[int] = []
    exact: list[int] = []
    above = 0
    for member, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        if size < low:
            under.append(member)
        elif size >= high and above < expected:
            above += 1
            keeps[member] = high
            # All greater shares are taken: members that waited for one will not get it.
            if above == expected:
                exact.clear()
        elif above < expected:
            exact.append(member)
    return keeps, _Unfilled(low, high, above, expected, under, exact)


def _all_numbers(scenario: Scenario) -> Ints:
    layout = scenario.layout
    if bool(layout.considered.all()):
        return np.arange(layout.total)
    return np.flatnonzero(layout.considered_partitions())


def _given(
    scenario: Scenario, free: Ints, held: Ints, waiting: _Unfilled, racks: Racks | None
) -> tuple[Ints, Ints]:
    """Takers and the partitions they take, in order of giving."""
    # Kafka sorts what is free by the number of members nearby even where it does not heed racks otherwise.
    known = racks if racks is not None else Racks.of(scenario)
    if known is not None and len(free):
        free = free[np.argsort(known.nearby(free), kind="stable")]
    if racks is None:
        return _in_turn(held, waiting, len(free)), free
    taker, taken = _nearby_first(free, held, waiting, racks)
    rest = free[~np.isin(free, taken)] if len(taken) else free
    return np.concatenate((taker, _in_turn(held, waiting, len(rest)))), np.concatenate((taken, rest))


def _in_turn(held: Ints, waiting: _Unfilled, count: int) -> Ints:
    """Who takes the next ``count`` partitions: those under the lower share in turns, then one each of the others."""
    under = np.array(waiting.under, np.int64)
    lack = waiting.low - held[under]
    # All lack the same: the turns of the round robin are whole.
    if len(lack) and int(lack.min()) == int(lack.max()):
        takers = np.tile(under, int(lack[0]))
        filled = under
    else:
        turn = np.arange(int(lack.sum())) - np.repeat(np.cumsum(lack) - lack, lack)
        takers = np.repeat(under, lack)[np.argsort(turn, kind="stable")]
        filled = under[np.argsort(lack, kind="stable")]
    if len(takers) >= count:
        return takers[:count]
    # Then one each: members that already had the lower share, and behind them those just filled, in the order of filling.
    return np.concatenate((takers, np.array(waiting.exact, np.int64), filled))[:count]


def _nearby_first(free: Ints, held: Ints, waiting: _Unfilled, racks: Racks) -> tuple[Ints, Ints]:
    """The pass that gives a partition only to a member in one of its racks; updates ``held`` and ``waiting``."""
    taker: list[int] = []
    taken: list[int] = []
    start = 0
    rack_of = racks.member.tolist()
    for number in free.tolist():
        near = set(np.flatnonzero(racks.replicas[number]).tolist())
        member, start = _next_nearby(near, rack_of, held, waiting, start)
        if member is not None:
            held[member] += 1
            taker.append(member)
            taken.append(number)
    return np.array(taker, np.int64), np.array(taken, np.int64)


def _next_nearby(
    near: set[int], rack_of: list[int], held: Ints, waiting: _Unfilled, start: int
) -> tuple[int | None, int]:
    under, exact = waiting.under, waiting.exact
    at = _circular(under, near, rack_of, start)
    if at is not None:
        member = under[at]
        size = int(held[member]) + 1
        if size >= waiting.low:
            del under[at]
            if size < waiting.high and waiting.above < waiting.expected:
                exact.append(member)
        else:
            at += 1
        # The next search starts behind this member: Kafka's round robin within racks (nextRackConsumer).
        return member, at % len(under) if under else 0
    at = _circular(exact, near, rack_of, 0)
    if at is None:
        return None, start
    member = exact[at]
    if int(held[member]) + 1 == waiting.high:
        del exact[at]
        waiting.above += 1
        if waiting.above == waiting.expected:
            exact.clear()
    return member, start


def _circular(members: list[int], near: set[int], rack_of: list[int], start: int) -> int | None:
    count = len(members)
    return next(
        (at % count for at in range(start, start + count) if rack_of[members[at % count]] in near), None
    )


def _transferring(
    scenario: Scenario, revoked: list[tuple[Ints, Ints]], doubly: Ints, taker: Ints, given: Ints
) -> Flags | None:
    if not len(doubly) and not any(len(member) for member, _ in revoked):
        return None
    flags = np.zeros(scenario.layout.total, np.bool_)
    flags[doubly] = True
    from_member = np.full(scenario.layout.total, -1, np.int64)
    for member, number in revoked:
        from_member[number] = member
    was = from_member[given]
    # A partition that returns to the member it was taken from never stops there, so nothing has to be withheld.
    moves = (was >= 0) & (was != taker) | flags[given]
    out = np.zeros(scenario.layout.total, np.bool_)
    out[given[moves]] = True
    return out


__all__ = ["Placed", "place"]
