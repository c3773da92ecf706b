"""What the two server-side assignors (KIP-848) share: what members hold, and the ``range`` one.

The server knows who holds what, so there are no claims to settle; racks play no part (KAFKA-16694).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.strategies.assignment import Assignment
from kagent.strategies.ranges import in_blocks
from kagent.strategies.scenario import Scenario
from kagent.text import shown

Ints = npt.NDArray[np.int64]

# https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
PAST_THE_END = "{} held partitions that no longer exist were dropped"


@dataclass(frozen=True, slots=True)
class Held:
    """Rows (member, partition) that count: of topics the member is subscribed to, in the order of the records."""

    member: Ints
    number: Ints
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    taken: npt.NDArray[np.bool_]
    """Of every partition by its global number: whether it is held."""
    notes: tuple[str, ...]


def held_rows(scenario: Scenario) -> Held:
    """What members hold.

    Raises InputError when two members hold one partition: the server never lets that be.
    """
    layout, owned = scenario.layout, scenario.owned
    topic, partition, member = owned.topic, owned.partition, owned.member
    keep = partition < layout.limit.take(topic)
    gone = 0 if keep.all() else int(layout.considered[topic[~keep]].sum())
    if not layout.same_effective:
        keep = keep & layout.subscribed[member, topic]
    if not keep.all():
        topic, partition, member = topic[keep], partition[keep], member[keep]
    number = layout.numbers(topic, partition)
    taken = np.zeros(layout.total, np.bool_)
    taken[number] = True
    wide = member.astype(np.int64)
    if np.count_nonzero(taken) < len(number):
        _refuse(scenario, wide, number)
    return Held(wide, number, topic, partition, taken, (PAST_THE_END.format(gone),) if gone else ())


def _refuse(scenario: Scenario, member: Ints, number: Ints) -> None:
    layout = scenario.layout
    twice = int(np.argmax(np.bincount(number)))
    first, second = member[number == twice][:2].tolist()
    topic = int(layout.topic_of[twice])
    raise InputError(
        f'members[{second}].owned: partition {twice - int(layout.start[topic])} of "{shown(layout.topics[topic])}" '
        f"is already owned by members[{first}]"
    )


def homogeneous(scenario: Scenario) -> bool:
    """Whether every topic that anyone names, existing or not, is named by all."""
    # By names, not by what exists: ModernGroup.subscriptionType counts a topic that is not there yet, too.
    distinct = scenario.layout.subscriptions
    return len(distinct) == 1 or len({frozenset(codes.tolist()) for codes in distinct}) == 1


def assign_range(scenario: Scenario) -> Assignment:
    """What the server's ``RangeAssignor`` gives: per topic, contiguous blocks to the members in order."""
    layout = scenario.layout
    held_rows(scenario)  # it plays no part, but two holders of one partition are no group that can be
    topic, partition = layout.partitions()
    member = in_blocks(scenario, layout.considered_topics)
    return Assignment(scenario.member_ids, layout.topics, topic, partition, member)
