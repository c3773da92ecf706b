"""Who owned what before a rebalance, where members contradict each other (``AbstractStickyAssignor``).

A member that missed a generation still claims what others have had since. Kafka walks over the members in the order
of its HashMap and lets the newer generation win; two claims of one generation cancel each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.strategies.assignment import Assignment
from kagent.strategies.javahash import order_of_puts, string_hashes
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]

NONE = -1


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that stand."""

    order: Ints
    """Members in the order of Java's map."""
    member: Ints
    number: Ints
    """Row by row: this member owns the partition of this global number; each number at most once."""
    doubly: Ints
    """Partitions that two members claimed in one generation."""
    previous: npt.NDArray[np.int32] | None
    """Per global number the member that had it in the newest of the older generations, −1 for none; None if no partition has one."""
    past_the_end: int
    """Claims dropped because the topic has no such partition any more (B5)."""
    by_field: int = 0
    """Claims decided otherwise than by what the two members say of themselves (B4)."""


def member_order(scenario: Scenario) -> Ints:
    """Members in the iteration order of the subscriptions map, and of the map Kafka copies it into."""
    hashes = string_hashes(scenario.member_ids)
    once = order_of_puts(hashes)
    return once[order_of_puts(hashes[once])]


def resolved(scenario: Scenario, rows: Assignment, generation: Ints, field: Ints) -> Claims:
    """The claims that stand of ``rows``.

    ``generation`` is what each member says of itself (−1: nothing), ``field`` the generation in its subscription:
    Kafka compares a claim with the *field* of the earlier claimant. For ``sticky`` that is another number than the
    one in the user data (B4), and where the field is absent the member that is met later wins.
    """
    layout = scenario.layout
    order = member_order(scenario)
    topic, partition = rows.topic, rows.partition
    # Kafka looks only at the topic of a claim, so a topic that was re-created with fewer partitions keeps old ones (B5).
    keep = partition < layout.limit[topic]
    everything = bool(keep.all())
    past_the_end = 0 if everything else int(layout.considered[topic[~keep]].sum())
    member = (rows.member if everything else rows.member[keep]).astype(np.int64)
    number = layout.numbers(topic, partition) if everything else layout.numbers(topic[keep], partition[keep])
    previous = _previous(member, number, generation, order, layout.total)
    claimed = np.bincount(number, minlength=layout.total)
    doubly = np.zeros(0, np.int64)
    by_field = 0
    # Disputes are rare: the walk in Java's order is made over disputed claims only.
    if len(claimed) and int(claimed.max()) > 1:
        disputed = claimed[number] > 1
        owner, doubly, by_field = _settled(member[disputed], number[disputed], generation, field, order)
        stands = ~disputed
        for at in np.flatnonzero(disputed).tolist():
            stands[at] = owner.get(int(number[at])) == int(member[at])
        member, number = member[stands], number[stands]
    return Claims(order, member, number, doubly, previous, past_the_end, by_field)


def _settled(
    member: Ints, number: Ints, generation: Ints, field: Ints, order: Ints
) -> tuple[dict[int, int], Ints, int]:
    """Partition → the member whose claim stands; partitions claimed twice in one generation; how many by B4."""
    met = np.empty(len(order), np.int64)
    met[order] = np.arange(len(order))
    claimant: dict[int, int] = {}
    owner: dict[int, int] = {}
    doubly: dict[int, None] = {}
    by_field = 0
    for at in np.argsort(met[member], kind="stable").tolist():
        partition, later = int(number[at]), int(member[at])
        earlier = claimant.get(partition)
        if earlier is not None:
            # Counted where the subscription's field and what the member says of itself decide differently (B4).
            ours = int(generation[later])
            by_field += np.sign(ours - field[earlier]) != np.sign(ours - generation[earlier])
        if earlier is None or generation[later] > field[earlier]:
            claimant[partition] = owner[partition] = later
        elif generation[later] == field[earlier]:
            # Neither keeps it, but the later one is what a third claim is compared with (allPreviousPartitionsToOwner).
            doubly[partition] = None
            owner.pop(partition, None)
            claimant[partition] = later
    return owner, np.array(list(doubly), np.int64), by_field


def _previous(
    member: Ints, number: Ints, generation: Ints, order: Ints, total: int
) -> npt.NDArray[np.int32] | None:
    older = generation < generation.max()
    rows = older[member]
    if not rows.any():
        return None
    member, number = member[rows], number[rows]
    met = np.empty(len(order), np.int64)
    met[order] = np.arange(len(order))
    # Kafka replaces an entry only by a higher generation, so of equal ones the first that it met stays: written last here.
    weakest_first = np.lexsort((-met[member], generation[member]))
    previous = np.full(total, NONE, np.int32)
    previous[number[weakest_first]] = member[weakest_first]  # the last one written stays
    return previous
