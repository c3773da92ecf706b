"""Partitions and members that stand: passed over, idle beside, silent.

Most clients serve one partition's fetch after another, so a partition that waits while its member is busy is no evidence of a
bad record. It is *passed over* only where a sibling of the same topic has been given records that arrived after that sibling
had already had a turn. All clocks run on commits of the member, or on moves of its peers, so blind time adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kagent.detect.state import Habit, Standing
from kagent.lag.measure import Flags, Lags, Longs
from kagent.lag.membership import NOBODY

MOST = 200
"""Partitions whose clocks are kept, those that stand longest first."""
PAUSE_FACTOR = 1.5
"""A pause this much longer than the longest one that ended by itself is no habit."""
HABIT_MEMORY_MS = 7 * 86_400_000
WORTH_S = 60.0
"""A shorter pause is every group's habit."""
SOLE_FACTOR = 3.0
"""The only partition of its topic on a member may wait this much longer: a priority consumer starves topics, not records."""


@dataclass(frozen=True, slots=True)
class ProgressColumns:
    """What the clocks need of a group: its columns, who holds what, each member's latest commit (ms), since when each
    partition has had unread records (ms, 0: none), and which partitions count."""

    lags: Lags
    owner: np.ndarray[tuple[int, ...], np.dtype[np.int32]]
    committed_at: Longs
    waiting_since: Longs
    relevant: Flags


def advance(
    group: ProgressColumns,
    known: Mapping[str, Standing],
    names: Mapping[int, str],
    members: Sequence[str],
    as_of: int,
) -> dict[str, Standing]:
    """The clocks of all partitions that stand with something unread; ``names``: place → key, of those places; ``members``: by
    code; ``as_of``: ms."""
    return {
        key: _held_by(_clock(group, at, known.get(key)), members[group.owner[at]], as_of)
        for at, key in names.items()
    }


def _held_by(clock: Standing, holder: str, as_of: int) -> Standing:
    if clock.holder == holder:
        return clock
    # A row of an older version names no holder: that is no other one.
    handed_over = as_of if clock.holder else clock.handed_over
    return replace(clock, holder=holder, handed_over=handed_over)


def between_holders(
    lags: Lags, owner: np.ndarray[tuple[int, ...], np.dtype[np.int32]], known: Mapping[str, Standing]
) -> dict[str, Standing]:
    """The clocks of partitions that no member holds and that have not moved: a rebalance takes a partition from one member before
    it gives it to the next (KIP-429, KIP-848), and what the first showed is not over by that."""
    places = lags.places
    return {
        key: clock
        for key, clock in known.items()
        if key in places and owner[places[key]] == NOBODY and lags.moved[places[key]] <= clock.since
    }


def standing_rows(group: ProgressColumns) -> Longs:
    """Places of relevant partitions with unread records that did not move at their member's latest commit, or for a minute while
    others committed: a member that hangs commits nothing, and its partitions may be handed to the next one."""
    lags, held = group.lags, group.owner >= 0
    latest = np.zeros(len(lags), np.int64)
    latest[held] = group.committed_at[group.owner[held]]
    # By the clock of the group's commits, not by this machine's: time in which kagent was blind does not count.
    long_ago = int(group.committed_at.max(initial=0)) - int(WORTH_S * 1000)
    stands = (lags.moved < latest) | (_since(group) < long_ago)
    rows = np.flatnonzero(group.relevant & held & (group.waiting_since > 0) & stands)
    # The row goes to a changelog topic at each change: a group of 10,000 stopped partitions must not write all their clocks.
    return rows[np.argsort(_since(group)[rows], kind="stable")][:MOST]


def _since(group: ProgressColumns) -> Longs:
    return np.maximum(group.lags.moved, group.waiting_since)


def _clock(group: ProgressColumns, at: int, known: Standing | None) -> Standing:
    now = int(group.committed_at[group.owner[at]])
    # When the record arrived is less exactly known once log-end samples are thinned out: the clock keeps its first answer.
    still = known is not None and group.lags.moved[at] <= known.since
    since = known.since if known is not None and still else int(_since(group)[at])
    clock = known if known is not None and still else Standing(since, seen=max(since, 0))
    # Only a newer commit of the member advances a clock: an evaluation that is repeated adds nothing, nor does blind time.
    if now <= clock.seen:
        return clock
    beside = group.relevant & (group.owner == group.owner[at])
    beside[at] = False
    # Of the same topic: an application may read one topic before another on purpose (pause() and resume()), never one record.
    siblings = beside & (group.lags.topic == group.lags.topic[at])
    # Java hands out the fetch of one partition to its end before it begins the next, so waiting for a turn is healthy:
    # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/internals/FetchCollector.java
    turn = clock.turn or _first_turn(group, siblings, since)
    passed = _passed_over_s(group, siblings, turn, now) if turn else 0.0
    idle = clock.idle_s
    # The member had nothing else to do in this commit time, and went on committing.
    if not (group.waiting_since[beside] > 0).any():
        idle += (now - clock.seen) / 1000
    # The clock never goes back: the siblings' oldest records are known less exactly once samples are thinned out.
    return replace(clock, turn=turn, passed_over_s=max(passed, clock.passed_over_s), idle_s=idle, seen=now)


def _first_turn(group: ProgressColumns, siblings: Flags, since: int) -> int:
    moved = group.lags.moved[siblings]
    later = moved[moved > since]
    return int(later.min()) if len(later) else 0


def _passed_over_s(group: ProgressColumns, siblings: Flags, turn: int, now: int) -> float:
    """For how long siblings have been given records that arrived after one of them had had its turn. A sibling with nothing
    unread has been given all that came until now."""
    oldest = group.waiting_since[siblings]
    served = np.where(oldest > 0, oldest, now)
    return max(0.0, (int(served.max(initial=0)) - turn) / 1000)


def silence(before_s: float, seen: int, others_moved: int, since: int, cap_s: float) -> float:
    """For how long a member has not moved while others did, s: what it was before, and the time by which the others' latest move
    (ms) is later than the one that was seen (or than ``since``, at first). One long gap is a sleeping group's: it counts at most
    ``cap_s``."""
    return before_s + min(max(0, others_moved - (seen or since)) / 1000, cap_s)


def habit(habits: Mapping[str, Habit], kind: str, now: int) -> float:
    """The longest pause or spell of this kind, in s, that ended by itself in the last seven days."""
    known = habits.get(kind)
    return known.longest_s if known is not None and now - known.ended <= HABIT_MEMORY_MS else 0.0


def learned(habits: Mapping[str, Habit], kind: str, length_s: float, now: int) -> Mapping[str, Habit]:
    """The habits after something of this kind ended by itself."""
    # The longest is replaced only by a longer one, and runs out a week after it ended: a habit that stopped is forgotten.
    if length_s < WORTH_S or length_s <= habit(habits, kind, now):
        return habits
    return {**habits, kind: Habit(round(length_s, 1), now)}


def reassigned(clock: Standing) -> Standing:
    """The clock of a partition after a change of the assignment: what its siblings did beside another member is over."""
    return replace(clock, turn=0, passed_over_s=0.0, idle_s=0.0)
