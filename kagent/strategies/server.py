"""What the two server-side assignors (KIP-848) share: what members hold, and the ``range`` one.

The server knows who holds what, so there are no claims to settle; racks play no part (KAFKA-16694).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.names import shown
from kagent.strategies.assignment import Assignment
from kagent.strategies.ranges import in_member_order, shares
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]

PAST_THE_END = "{} held partitions that no longer exist were dropped"


def held_rows(scenario: Scenario) -> tuple[Ints, Ints, tuple[str, ...]]:
    """(member, global number) of what members hold and are subscribed to, in the order of their records.

    Raises InputError when two members hold one partition: the server never lets that be.
    """
    layout, owned = scenario.layout, scenario.owned
    exists = owned.partition < layout.count[owned.topic]
    wanted = layout.subscribed[owned.member, owned.topic] if not layout.same_effective else True
    keep = exists & layout.considered[owned.topic] & wanted
    everything = bool(keep.all())
    topic, partition = (
        (owned.topic, owned.partition) if everything else (owned.topic[keep], owned.partition[keep])
    )
    member = (owned.member if everything else owned.member[keep]).astype(np.int64)
    number = layout.numbers(topic, partition)
    holders = np.bincount(number, minlength=layout.total)
    if len(holders) and int(holders.max()) > 1:
        _refuse(scenario, int(np.argmax(holders)), member, number)
    gone = int((~exists & layout.considered[owned.topic]).sum())
    return member, number, (PAST_THE_END.format(gone),) if gone else ()


def _refuse(scenario: Scenario, twice: int, member: Ints, number: Ints) -> None:
    layout = scenario.layout
    first, second = member[number == twice][:2].tolist()
    topic = int(layout.topic_of[twice])
    raise InputError(
        f'members[{second}].owned: partition {twice - int(layout.start[topic])} of "{shown(layout.topics[topic])}" '
        f"is already owned by members[{first}]"
    )


def homogeneous(scenario: Scenario) -> bool:
    """Whether every topic that anyone names, existing or not, is named by all."""
    named = {frozenset(codes.tolist()) for codes in scenario.layout.subscriptions}
    return len(named) == 1


def assign_range(scenario: Scenario) -> Assignment:
    """What the server's ``RangeAssignor`` gives: per topic, contiguous blocks to the members in order."""
    layout = scenario.layout
    ordered = in_member_order(scenario)
    topic, partition = layout.partitions()
    blocks = [np.zeros(0, np.int64)]
    for code in layout.considered_topics.tolist():
        takers = ordered if layout.same_effective else ordered[layout.subscribed[ordered, code]]
        blocks.append(np.repeat(takers, shares(int(layout.count[code]), len(takers))))
    member = np.concatenate(blocks).astype(np.int32)
    return Assignment(scenario.member_ids, layout.topics, topic, partition, member)
