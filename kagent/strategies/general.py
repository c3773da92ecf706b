"""The sticky assignment of a group whose subscriptions differ (``AbstractStickyAssignor``'s general case).

Kafka keeps the members in a tree ordered by (partitions held, id), asks before every partition whether all is
balanced, and scans the subscribers of its topic. Two observations make that cheap and leave the outcome as it is:

* a partition moves exactly when its holder has at least two more than the least loaded subscriber of its topic, and it
  goes to that one; so a topic none of whose holders has that many is passed over in one look;
* "is all balanced" is then the same as "nothing would move", so it need not be asked. It has to be asked only where a
  former owner is no longer subscribed (B2), for there Kafka moves partitions that no subscriber is waiting for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kagent.strategies import fewest_first
from kagent.strategies.claims import Claims
from kagent.strategies.constrained import Placed
from kagent.strategies.javahash import HashSet, partition_hash, string_hashes, string_ranks
from kagent.strategies.racks import Racks
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class NullOwnerError(Exception):
    """Kafka's code would fail with a NullPointerException here (B1)."""


@dataclass(slots=True)
class _Movements:
    """Which partitions moved between which members, per topic: a move is undone before its reverse is made."""

    topic_hash: dict[int, int] = field(default_factory=dict)
    pair: dict[int, tuple[int, int]] = field(default_factory=dict)
    by_topic: dict[int, dict[tuple[int, int], HashSet]] = field(default_factory=dict)


class _Board:
    """The assignment in the making."""

    def __init__(self, scenario: Scenario, claims: Claims, racks: Racks | None, faithful: bool) -> None:
        layout = scenario.layout
        self.scenario, self.layout, self.racks, self.faithful = scenario, layout, racks, faithful
        self.rank = string_ranks(scenario.member_ids)
        self.by_id = np.argsort(self.rank)
        self.subscribed = layout.subscribed
        self.users = {int(t): self.by_id[self.subscribed[self.by_id, t]] for t in layout.considered_topics}
        # TopicComparator: topics that few can take come first, while these members still have room.
        fewest_users = sorted(self.users, key=lambda t: (len(self.users[t]), t))
        self.topics = fewest_users
        self.previous = claims.previous
        self.owner = np.full(layout.total, -1, np.int64)
        # When each partition came to its holder: the order of a member's list in Kafka's result.
        self.turn = np.zeros(layout.total, np.int64)
        self.clock = len(claims.number)
        self.movements = _Movements()
        self.revocation = False
        self._keep(claims)
        self.held = np.bincount(self.owner[self.owner >= 0], minlength=len(scenario.members)).astype(np.int64)
        self.fixed: Flags = np.zeros(len(scenario.members), np.bool_)
        self.foreign = self._has_foreign_previous()

    def _keep(self, claims: Claims) -> None:
        member, number = claims.member, claims.number
        right = self.subscribed[member, self.layout.topic_of[number]]
        if self.racks is not None and len(member):
            right = right & self.racks.matches(member, number)
        self.revocation = not bool(right.all())
        self.owner[number[right]] = member[right]
        self.turn[number] = np.arange(len(number))

    def _has_foreign_previous(self) -> bool:
        if self.previous is None:
            return False
        numbers = np.flatnonzero(self.previous >= 0)
        return not bool(self.subscribed[self.previous[numbers], self.layout.topic_of[numbers]].all())

    def numbers(self, topic: int) -> Ints:
        start = int(self.layout.start[topic])
        return np.arange(start, start + int(self.layout.count[topic]))

    def give(self, member: Ints, number: Ints) -> None:
        """Partitions to members, in order; ``held`` is brought up to date by the caller."""
        self.owner[number] = member
        self.turn[number] = np.arange(self.clock, self.clock + len(number))
        self.clock += len(number)


def place(scenario: Scenario, claims: Claims, racks: Racks | None, faithful: bool = True) -> Placed:
    """The whole assignment.

    ``faithful`` follows Kafka into B1 (raises NullOwnerError) and B2; otherwise a former owner that is gone from the
    balancing or not subscribed any more is passed over.
    """
    board = _Board(scenario, claims, racks, faithful)
    initializing = not board.held.any()
    free = {t: numbers[board.owner[numbers] < 0] for t in board.topics for numbers in (board.numbers(t),)}
    _assign(board, free)
    # Kafka takes what cannot move out of the balancing: topics with one subscriber, and members that have all they can have.
    shared = [t for t in board.topics if len(board.users[t]) >= 2]
    board.fixed = _fixed(board, shared)
    before = (board.owner.copy(), board.turn.copy(), board.held.copy())
    # First only new partitions move, which disturbs less; after a change of subscriptions all are looked at anyway.
    if not board.revocation:
        _reassign(board, {t: free[t] for t in shared if len(free[t])})
    moved = _reassign(board, {t: board.numbers(t) for t in shared})
    # Kafka takes its moves back where they did not make the assignment more even (getBalanceScore).
    if not initializing and moved and _score(board, board.held) >= _score(board, before[2]):
        board.owner, board.turn, board.held = before
    number = np.flatnonzero(board.owner >= 0)
    number = number[np.argsort(board.turn[number], kind="stable")]
    return Placed(board.owner[number], number, None)


def _assign(board: _Board, free: dict[int, Ints]) -> None:
    if board.racks is not None:
        free = {t: _assign_nearby(board, t, numbers, board.racks) for t, numbers in free.items()}
    for topic, numbers in free.items():
        if len(numbers):
            board.give(fewest_first.fill(board.held, board.users[topic], len(numbers)), numbers)


def _assign_nearby(board: _Board, topic: int, numbers: Ints, racks: Racks) -> Ints:
    """Give each partition to the least loaded subscriber in one of its racks; partitions without a subscriber in their racks are returned."""
    users = board.users[topic]
    rack = racks.member[users]
    left: list[int] = []
    for number in numbers.tolist():
        near = users[(rack < 0) | racks.replicas[number, rack]]
        if not len(near):
            left.append(number)
            continue
        member = int(near[np.argmin(board.held[near])])
        board.give(np.array([member]), np.array([number]))
        board.held[member] += 1
    return np.array(left, np.int64)


def _fixed(board: _Board, shared: list[int]) -> Flags:
    """Members that have all they can have, none of it shared: they stay out of the balancing."""
    layout = board.layout
    in_shared = np.zeros(len(layout.topics), np.bool_)
    in_shared[shared] = True
    owned = np.flatnonzero(board.owner >= 0)
    busy = np.bincount(
        board.owner[owned], weights=in_shared[layout.topic_of[owned]], minlength=len(board.held)
    )
    fixed: Flags = (board.held >= _potential(board)) & (busy == 0)
    return fixed


def _potential(board: _Board) -> Ints:
    kinds = board.layout.subscribed_by_kind @ board.layout.count
    potential: Ints = kinds[board.layout.subscription]
    return potential


def _score(board: _Board, held: Ints) -> int:
    """Σ of the differences between all pairs of members."""
    sizes = np.sort(held[~board.fixed])
    # In sorted order the i-th of n sizes is added i times and subtracted n − 1 − i times: no loop over pairs.
    return int((sizes * (2 * np.arange(len(sizes)) - len(sizes) + 1)).sum())


def _reassign(board: _Board, lists: dict[int, Ints]) -> bool:
    """Passes over the partitions until one moves nothing; says whether any moved."""
    moved = False
    limit = (
        1000 + 100 * board.layout.total
    )  # far beyond what balancing takes: each move evens two members out
    while limit > 0:
        moves = 0
        for topic, numbers in lists.items():
            moves += _pass(board, topic, numbers)
        if not moves:
            return moved
        moved = True
        limit -= moves
    return moved


def _pass(board: _Board, topic: int, numbers: Ints) -> int:
    users = board.users[topic]
    moves = at = 0
    while at < len(numbers):
        # ``users`` are in the order of ids and argmin takes the first: the head of Kafka's tree by (size, id).
        target = int(users[np.argmin(board.held[users])])
        rest = numbers[at:]
        holding = board.held[board.owner[rest]]
        restless = holding > board.held[target] + 1
        if board.previous is not None:
            restless = restless | _called_back(board, rest, holding)
        first = int(np.argmax(restless)) if len(restless) else 0
        if not restless[first]:
            break
        # Kafka asks before each partition; only here can the answer differ from "nothing would move".
        if board.foreign and _balanced(board):
            break
        at += first + 1
        moves += _move(board, topic, int(rest[first]), target)
    return moves


def _called_back(board: _Board, numbers: Ints, holding: Ints) -> Flags:
    """Partitions that a former owner may have back."""
    assert board.previous is not None
    former = board.previous[numbers]
    gone = board.fixed[former] & (former >= 0)
    if board.faithful:
        if gone.any() and not _balanced(board):
            # Kafka fails on the first of them that a pass reaches; the pass may move others before.
            return gone | (former >= 0) & (holding > board.held[former] + 1)
    else:
        gone = gone | ~board.subscribed[former, board.layout.topic_of[numbers]]
    back: Flags = (former >= 0) & ~gone & (holding > board.held[former] + 1)
    return back


def _move(board: _Board, topic: int, number: int, target: int) -> int:
    holder = int(board.owner[number])
    former = -1 if board.previous is None else int(board.previous[number])
    if former >= 0:
        if board.fixed[former]:
            if board.faithful:
                raise NullOwnerError
        elif board.held[holder] > board.held[former] + 1 and (
            board.faithful or board.subscribed[former, topic]
        ):
            target = former
            _carry(board, topic, number, target)
            return 1
    if board.held[holder] > board.held[target] + 1:
        _carry(board, topic, number, target)
        return 1
    return 0


def _carry(board: _Board, topic: int, number: int, target: int) -> None:
    """Move the partition, or another one of the topic whose earlier move this would turn back."""
    moves = board.movements
    # getTheActualPartitionToBeMoved: a partition that has moved counts from where it first came, and where another of
    # the topic went the other way, that one goes back: the first of a HashSet, so Java's order decides which.
    source = moves.pair[number][0] if number in moves.pair else int(board.owner[number])
    reverse = moves.by_topic.get(topic, {}).get((target, source))
    if reverse is not None:
        number = reverse.first()
    holder = int(board.owner[number])
    _record(board, topic, number, holder, target)
    board.held[holder] -= 1
    board.held[target] += 1
    board.give(np.array([target]), np.array([number]))


def _record(board: _Board, topic: int, number: int, holder: int, target: int) -> None:
    moves = board.movements
    code = _hash(board, topic, number)
    pair = (holder, target)
    earlier = moves.pair.pop(number, None)
    if earlier is not None:
        sets = moves.by_topic[topic]
        sets[earlier].remove(number, code)
        if not len(sets[earlier]):
            del sets[earlier]
        if not sets:
            del moves.by_topic[topic]
        # Back at its first holder: as if it had never moved.
        if earlier[0] == target:
            return
        pair = (earlier[0], target)
    moves.pair[number] = pair
    moves.by_topic.setdefault(topic, {}).setdefault(pair, HashSet()).add(number, code)


def _hash(board: _Board, topic: int, number: int) -> int:
    hashes = board.movements.topic_hash
    if topic not in hashes:
        hashes[topic] = int(string_hashes([board.layout.topics[topic]])[0])
    return partition_hash(hashes[topic], number - int(board.layout.start[topic]))


def _balanced(board: _Board) -> bool:
    """Kafka's own question, asked only where the shortcut above does not hold."""
    held = board.held[~board.fixed]
    if int(held.min()) >= int(held.max()) - 1:
        return True
    hungry = ~board.fixed & (board.held != _potential(board))
    for topic in board.topics:
        users = board.users[topic]
        users = users[hungry[users]]
        holders = board.owner[board.numbers(topic)]
        if len(users) and int(board.held[holders].max()) > int(board.held[users].min()) + 1:
            return False
    return True
