"""What a group does again and again: the longest pauses and spells of lateness that ended by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kagent.contract.recommendation import Verdict
from kagent.detect.commit_gaps import LONGEST_GAP_S, USUAL_GAP_S
from kagent.detect.finding import NO_PROGRESS
from kagent.detect.state import Habit, JudgeState
from kagent.lag.chance import CLEARLY
from kagent.lag.log_ends import OLDEST

MENDABLE = NO_PROGRESS | {Verdict.BLOCKED_BY_TRANSACTION}
"""What a person may have mended before it ends: no habit of the group."""

RESTS_UNKNOWN_S = CLEARLY * LONGEST_GAP_S
"""A job that works now and then may rest for an hour the first time it is seen; after that its habit is known."""


def habit(habits: Mapping[str, Habit], kind: str, now: int) -> float:
    """The longest pause or spell of this kind, in s, that ended by itself in the last week."""
    known = habits.get(kind)
    return known.longest_s if known is not None and now - known.ended <= OLDEST else 0.0


def learned(habits: Mapping[str, Habit], kind: str, length_s: float, now: int) -> Mapping[str, Habit]:
    """The habits after something of this kind ended by itself."""
    # A pause shorter than USUAL_GAP_S is every group's habit. The longest is replaced only by a longer one, and runs out a week after
    # it ended: a habit that stopped is forgotten.
    if length_s < USUAL_GAP_S or length_s <= habit(habits, kind, now):
        return habits
    return {**habits, kind: Habit(round(length_s, 1), now)}


def learned_again(habits: Mapping[str, Habit], kind: str, length_s: float, now: int) -> Mapping[str, Habit]:
    """The habits after something of this kind ended that was reported: it may have been mended, and is a habit only where another that was
    reported ended within the week, for as long as both lasted."""
    # Else the next illness of the group would be reported only after twice as long, for a week.
    once = f"reported {kind}"
    both = learned(habits, kind, min(length_s, habit(habits, once, now)), now)
    return learned(both, once, length_s, now)


def with_ended_pauses(before: JudgeState, after: JudgeState, as_of: int, last_move: int) -> JudgeState:
    """``after``, with the standstills of partitions, silences of members and rests of the group that have ended by themselves since
    ``before``. ``last_move``: when a partition of a member last made progress; both times in ms."""
    habits = before.habits
    if before.incident is not None and before.incident.verdict in MENDABLE:
        # Of a whole group, records do not tell a rest on purpose, as of a job that works now and then, from one that was mended.
        if not after.at_rest_s:
            habits = learned_again(habits, "rest", before.at_rest_s, as_of)
        return after if habits is before.habits else replace(after, habits=habits)
    for key, clock in before.standing.items():
        now = after.standing.get(key)
        if now is None or now.since != clock.since:
            habits = learned(habits, "passed_over", clock.passed_over_s, as_of)
            habits = learned(habits, "idle", clock.idle_s, as_of)
            habits = learned(habits, "on_time", clock.on_time_s, as_of)
        if now is None or now.topic_rest_s < clock.topic_rest_s:
            habits = learned(habits, "topic_rest", clock.topic_rest_s, as_of)
    for name, member in before.members.items():
        if after.members[name].silent_s < member.silent_s:
            habits = learned(habits, "silent", member.silent_s, last_move)
    if not after.at_rest_s:
        habits = learned(habits, "rest", before.at_rest_s, as_of)
    return after if habits is before.habits else replace(after, habits=habits)
