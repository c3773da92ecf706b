"""``sticky`` and ``cooperative-sticky``: keep what members have, as far as balance allows.

The two share one algorithm (``constrained`` where all subscriptions are the same, else ``general``) and differ in where
they learn what members own, and in that the cooperative one gives a partition to its new owner only a round later,
once the old one has let go (KIP-429).

Kafka's bugs, by the numbers of ``docs/strategies.md``: the outcome is Kafka's own, except that B1 (it fails), B2 and
B3 (it gives partitions to members that are not subscribed) and B5 (it gives partitions that do not exist) are
replaced by the assignment without the bug, and a note says so. With B4 Kafka's outcome is a valid assignment, only
decided on the wrong number: it is given as it is, with a note.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kagent.strategies import constrained, general
from kagent.strategies.assignment import Assignment
from kagent.strategies.claims import Claims, resolved
from kagent.strategies.constrained import Placed
from kagent.strategies.racks import Racks
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/internals/AbstractStickyAssignor.java
B1 = "B1: Kafka's own code fails here with a NullPointerException; the former owner was passed over"
B2 = "B2: Kafka's own code gives partitions back to a former owner that is no longer subscribed; it was passed over"
B3 = "B3: Kafka's own code gives partitions to members with an empty subscription; they got none"
B4 = "B4: {} claims were compared with a generation field that is absent or another; the outcome is Kafka's own"
B5 = "B5: {} claims of partitions that no longer exist were dropped; Kafka's own code can keep them, or fail"


def eager(scenario: Scenario) -> Assignment:
    """What ``StickyAssignor`` gives; it knows of owned partitions only what is in the members' user data."""
    # StickyAssignor takes partitions and generation from the user data alone, so that it understands members of any version.
    claimed_generation = [
        -1 if m.remembered_generation is None else m.remembered_generation for m in scenario.members
    ]
    placed, notes = _placed(scenario, scenario.remembered, np.array(claimed_generation, np.int64))
    return _columns(scenario, placed, notes)


def cooperative(scenario: Scenario) -> Assignment:
    """What ``CooperativeStickyAssignor`` gives in this round; ``withheld`` says what follows in the next."""
    placed, notes = _placed(scenario, scenario.owned, generations(scenario))
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol
    return withholding(scenario, placed, notes)


def generations(scenario: Scenario) -> Ints:
    """What each member says its generation is (the subscription's field, else user data), −1 if nothing."""
    claimed_generation = (
        m.remembered_generation if m.generation is None else m.generation for m in scenario.members
    )
    return np.array([-1 if generation is None else generation for generation in claimed_generation], np.int64)


def _placed(scenario: Scenario, rows: Assignment, claimed_generation: Ints) -> tuple[Placed, tuple[str, ...]]:
    field = np.array([-1 if m.generation is None else m.generation for m in scenario.members], np.int64)
    claims = resolved(scenario, rows, claimed_generation, field)
    racks = _heeded(scenario)
    notes = [B5.format(claims.past_the_end)] if claims.past_the_end else []
    if claims.by_field:
        notes.append(B4.format(claims.by_field))
    # AbstractStickyAssignor chooses between its two algorithms by this test, right or not.
    if _taken_for_identical(scenario, claims):
        placed = constrained.place(scenario, claims, racks)
        if _all_subscribed(scenario, placed):
            return placed, tuple(notes)
        notes.append(B3)
    placed, bugs = _general(scenario, claims, racks)
    return placed, (*notes, *bugs)


def _general(scenario: Scenario, claims: Claims, racks: Racks | None) -> tuple[Placed, list[str]]:
    try:
        placed = general.place(scenario, claims, racks)
    # Bug B1: placed again as if the code did not fail.
    except general.NullOwnerError:
        return general.place(scenario, claims, racks, faithful=False), [B1]
    if claims.previous is None or _all_subscribed(scenario, placed):
        return placed, []
    return general.place(scenario, claims, racks, faithful=False), [B2]


def _heeded(scenario: Scenario) -> Racks | None:
    racks = Racks.of(scenario)
    if racks is None:
        return None
    return (
        racks
        if racks.aware(np.arange(len(scenario.members)), scenario.layout.considered_partitions())
        else None
    )


def _taken_for_identical(scenario: Scenario, claims: Claims) -> bool:
    """Kafka's test: every list against the first that is not empty, in the order of its map."""
    layout = scenario.layout
    if len(layout.subscriptions) == 1:
        return True
    kinds = layout.subscription[claims.order].tolist()
    sets = [frozenset(codes.tolist()) for codes in layout.subscriptions]
    first: frozenset[int] = frozenset()
    for kind in dict.fromkeys(kinds):
        if not first:
            first = sets[kind]
        elif sets[kind] != first:
            return False
    empty = next((kind for kind, codes in enumerate(sets) if not codes), None)
    met_later = empty is not None and first and _met_after_first(kinds, empty)
    return not met_later


def _met_after_first(kinds: list[int], empty: int) -> bool:
    filled = next((at for at, kind in enumerate(kinds) if kind != empty), len(kinds))
    return empty in kinds[filled:]


def _all_subscribed(scenario: Scenario, placed: Placed) -> bool:
    layout = scenario.layout
    if layout.same_effective:
        return True
    return bool(layout.subscribed[placed.member, layout.topic_of[placed.number]].all())


def _columns(scenario: Scenario, placed: Placed, notes: tuple[str, ...]) -> Assignment:
    topic, partition = scenario.layout.split(placed.number)
    return Assignment(
        scenario.member_ids,
        scenario.layout.topics,
        topic,
        partition,
        placed.member.astype(np.int32),
        notes,
    )


def withholding(scenario: Scenario, placed: Placed, notes: tuple[str, ...]) -> Assignment:
    """The columns without what is still to be given up by its owner (KIP-429)."""
    transferring = _transferring(scenario, placed)
    if transferring is None or not (out := transferring[placed.number]).any():
        return _columns(scenario, placed, notes)
    withheld = _columns(scenario, Placed(placed.member[out], placed.number[out], None), ())
    kept = _columns(scenario, Placed(placed.member[~out], placed.number[~out], None), notes)
    return replace(kept, withheld=withheld)


def _transferring(scenario: Scenario, placed: Placed) -> Flags | None:
    """Partitions to be taken out: the constrained case knows them, the general one compares with what is owned."""
    # ConstrainedAssignmentBuilder collects partitionsTransferringOwnership; the general one leaves it to adjustAssignment.
    if placed.compared:
        return placed.transferring
    layout, owned = scenario.layout, scenario.owned
    valid = owned.partition < layout.count[owned.topic]
    number = layout.numbers(owned.topic[valid], owned.partition[valid])
    member = owned.member[valid]
    owner = np.full(layout.total, -1, np.int64)
    owner[placed.number] = placed.member
    stays = owner[number] == member
    had = np.zeros(layout.total, np.bool_)
    had[number[stays]] = True
    given_up = np.zeros(layout.total, np.bool_)
    given_up[number[~stays]] = True
    return (owner >= 0) & ~had & given_up
