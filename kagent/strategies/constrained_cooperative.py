"""``constrained-cooperative-sticky``: the assignor of a rejected KIP, which became the constrained path of KAFKA-9987.

Only for groups whose members all subscribe to the same topics. It differs from what Kafka ships (``constrained``) in
four things: members are walked by id, any number of them keeps the greater share at first and is robbed of one
partition where others would fall short, what is free is sorted by partition before topic, and it goes to each member in
one piece. Where the KIP leaves something open: the partition that is taken is the first of the member's list, members
are robbed in the order in which they were found to have the greater share, and a member that lacks several takes
several.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.strategies.assignment import Assignment
from kagent.strategies.claims import resolved
from kagent.strategies.constrained import Placed
from kagent.strategies.javahash import string_ranks
from kagent.strategies.scenario import Scenario
from kagent.strategies.sticky import B5, generations, withholding

Ints = npt.NDArray[np.int64]

UNEQUAL = "members: constrained-cooperative-sticky needs identical subscriptions; take cooperative-sticky"


def assign(scenario: Scenario) -> Assignment:
    """What the KIP's text gives in this round; ``withheld`` says what follows in the next.

    Raises InputError when subscriptions differ.
    """
    if not scenario.layout.same_effective:
        raise InputError(UNEQUAL)
    # The KIP sorts members; what Kafka shipped walks its HashMap (KAFKA-9987).
    by_id = np.argsort(string_ranks(scenario.member_ids))
    low, extra = divmod(scenario.layout.considered_total, len(by_id))
    high = low + (extra > 0)
    member, number, past_the_end = _owned(scenario)
    sizes = np.bincount(member, minlength=len(by_id))
    within = np.arange(len(member)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    stays = within < high
    member, number, within = member[stays], number[stays], within[stays]
    sizes = np.minimum(sizes, high)
    at_most = by_id[sizes[by_id] > low]
    lack = np.maximum(low - sizes, 0)[by_id]
    takers = np.repeat(by_id, lack)
    free = _free(scenario, number)
    short = takers[len(free) :]
    # More members may have kept the greater share than there are remainders; the first of them give one partition each.
    robbed = at_most[: len(short)]
    stolen_row = np.isin(member, robbed) & (within == 0)
    stolen = np.zeros(len(scenario.members), np.int64)
    stolen[member[stolen_row]] = number[stolen_row]
    rest = np.setdiff1d(by_id, at_most, assume_unique=True) if len(free) > len(takers) else by_id[:0]
    rest = by_id[np.isin(by_id, rest)][: len(free) - len(takers)] if len(rest) else rest
    placed = Placed(
        np.concatenate((member[~stolen_row], takers[: len(free)], rest, short)),
        np.concatenate((number[~stolen_row], free, stolen[robbed])),
        None,
    )
    return withholding(scenario, placed, (B5.format(past_the_end),) if past_the_end else ())


def _owned(scenario: Scenario) -> tuple[Ints, Ints, int]:
    """(member, number) of what members of the newest generation own, grouped by member, lists in their order."""
    claimed_generation = generations(scenario)
    claims = resolved(scenario, scenario.owned, claimed_generation, claimed_generation)
    # Others may have had the partitions of an older generation since, so the KIP lets nothing of such a list count.
    newest = claimed_generation[claims.member] == claimed_generation.max()
    member, number = claims.member[newest], claims.number[newest]
    if len(member) and (np.diff(member) < 0).any():
        grouped = np.argsort(member, kind="stable")
        member, number = member[grouped], number[grouped]
    return member, number, claims.past_the_end


def _free(scenario: Scenario, taken: Ints) -> Ints:
    """Partitions that no member keeps: t0-0, t1-0, t2-0, t0-1, …"""
    layout = scenario.layout
    numbers = layout.without(taken)
    topic = layout.topic_of[numbers].astype(np.int64)
    key = (numbers - layout.start[topic]) * len(layout.topics) + topic
    key.sort()
    partition = key // max(1, len(layout.topics))
    ordered: Ints = layout.start[key - partition * len(layout.topics)] + partition
    return ordered
