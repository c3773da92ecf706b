"""How a strategy deals partitions out to a number of members: all of them in turn, or each topic for itself (``range``)."""

from __future__ import annotations

import numpy as np

from kagent.detect.group_model import GroupModel
from kagent.lag.measure import Floats, Longs

BY_TOPIC = "range"
"""What classic groups and KIP-848 groups both call the strategy that begins with the first member at every topic."""


def deals_by_topic(model: GroupModel) -> bool:
    """Whether members beyond the partitions of the largest topic get nothing. Not where members subscribe to different topics: then
    each topic has members of its own."""
    roster = model.roster
    return roster is not None and roster.protocol == BY_TOPIC and len(roster.may_hold[0]) == 1


def piles_of(model: GroupModel, rows: Longs) -> Longs:
    """What of these partitions is dealt out for itself, as codes from 0: one pile, or one for each topic."""
    if not deals_by_topic(model):
        return np.zeros(len(rows), np.int64)
    return np.asarray(np.unique(model.lags.topic[rows], return_inverse=True)[1], np.int64)


def greatest(pile: Longs) -> int:
    """The size of the largest pile, which is the most members of which each gets something; at least 1."""
    return int(np.bincount(pile).max(initial=1))


def most_of(cards: Longs | int, members: Longs | int) -> Longs:
    """How many of a pile's cards one of this many members gets at most."""
    # The ceiling of cards ÷ members in integers.
    return np.asarray(-(-cards // members), np.int64)


def fullest(work: Floats, pile: Longs, members: int) -> Longs:
    """Places of the units of the member that gets the most work that any strategy gives one: as many of each pile as fall to one, the
    most work first."""
    by_pile = (np.flatnonzero(pile == code) for code in np.unique(pile).tolist())
    most = [rows[np.argsort(-work[rows], kind="stable")][: most_of(len(rows), members)] for rows in by_pile]
    return np.concatenate(most) if most else np.zeros(0, np.int64)


def dealt(work: Floats, pile: Longs, members: int) -> Longs:
    """Which member gets each unit. Dealt out like cards, the most work first: an optimal packing would promise what no client's
    own strategy gives."""
    out, load = np.empty(len(work), np.int64), np.zeros(members)
    by_pile = np.split(np.lexsort((-work, pile)), np.cumsum(np.bincount(pile))[:-1])
    for rows in sorted(by_pile, key=lambda rows: -float(work[rows].sum())):
        out[rows] = _takers(len(rows), load)
        load += np.bincount(out[rows], work[rows], members)
    return out


def _takers(cards: int, load: Floats) -> Longs:
    """Who takes a pile's cards: all, in full rounds, and the first members what is left, as ``range`` does. Which of them takes the
    most is chance, and moving one does as well: so who has least."""
    rounds, rest = divmod(cards, len(load))
    everyone = np.tile(np.argsort(load, kind="stable"), rounds)
    return np.concatenate([everyone, np.argsort(load[:rest], kind="stable")])
