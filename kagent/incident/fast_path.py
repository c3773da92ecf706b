"""Whether a cheap look finds that a group needs no model: most groups, most of the time."""

from __future__ import annotations

from kagent.detect import signs, useful_members
from kagent.detect.detectors import SIGNS
from kagent.detect.state import JudgeState
from kagent.detect.without_members import ENDED_AFTER_MS
from kagent.lag.observation import Observation
from kagent.policy import Policy

QUESTIONS = tuple(sign for sign in SIGNS if sign is not signs.unread)
"""Signs that ask for a close look whatever the group's lag."""


def fast_path_healthy(seen: Observation, state: JudgeState, policy: Policy) -> bool:
    """Whether a cheap look finds nothing that could be the matter: most groups, most of the time, stop here."""
    if abandoned(seen):
        return True
    return not has_open_questions(seen, state, policy) and signs.unread(seen, state, policy) > seen.now


def has_open_questions(seen: Observation, state: JudgeState, policy: Policy) -> bool:
    """Whether something asks for a close look at the group whatever its lag."""
    # A loop, not `next_question_at`: this runs for every group at every tick.
    for sign in QUESTIONS:
        if sign(seen, state, policy) <= seen.now:
            return True
    return useful_members.due(state, seen.now)


def next_question_at(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """From when on (ms) the group asks for a close look whatever its lag, if it has no event until then."""
    return min(sign(seen, state, policy) for sign in QUESTIONS)


def abandoned(seen: Observation) -> bool:
    """Whether the group has no members and has not committed for a day: a job that ended, not one that is late."""
    members = seen.roster.members if seen.roster is not None else ()
    return not members and all(seen.now - row.last > ENDED_AFTER_MS for row in seen.commits.values())
