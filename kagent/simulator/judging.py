"""The simulator's only door to the judgement: judge, confirm, and the cheap look that most groups stop at.

Whoever changes what the judgement passes over without a close look changes :func:`loud` and :func:`wants_a_look` with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kagent.advice.judge import confirm, judge, minded, unread_since
from kagent.advice.state import JudgeState
from kagent.contract.recommendation import Recommendation
from kagent.lag.commits import GONE
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.simulator.table import NEVER, Table
from kagent.simulator.world import Flags


@dataclass(slots=True)
class Mind:
    """What is remembered and said of one group."""

    state: JudgeState | None = None
    messages: list[Recommendation] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)


def known_for_a_week(now: int) -> Mind:
    """Of a group that has been watched for a week."""
    return Mind(JudgeState(first_seen=now - 7 * 86_400_000, members_at=now))


def evaluate(
    mind: Mind, seen: Observation, ask: Callable[[], Observation], policy: Policy
) -> tuple[Recommendation, ...]:
    """One look at one group: what is said now. ``ask``: the group as its coordinator tells of it."""
    judgement = judge(seen, mind.state, policy)
    if judgement.candidate is not None:
        judgement = confirm(judgement.candidate, ask(), judgement.state, policy)
        if judgement.dropped:
            mind.dropped[judgement.dropped] = mind.dropped.get(judgement.dropped, 0) + 1
    mind.state = judgement.state
    mind.messages.extend(judgement.messages)
    return judgement.messages


def wants_a_look(mind: Mind, roster: Roster | None, now: int, policy: Policy) -> bool:
    """Whether the group is to be looked at whatever its lag."""
    state = mind.state
    idle = roster is not None and any(not m.assigned for m in roster.members)
    return state is None or idle or bool(state.incident or state.streak) or minded(state, now, policy)


def loud(table: Table, ends: Mapping[str, EndHistory], as_of: int, policy: Policy) -> Flags:
    """Which groups the judgement's cheap look does not pass over, or perhaps not: of all seeds at once."""
    out = np.zeros(len(table.committed), bool)
    for code, (topic, here) in enumerate(zip(table.topics, table.spans, strict=True)):
        history, shape = ends[topic.name], (len(out), topic.partitions)
        committed, start = table.committed[:, here], history.start.reshape(shape)
        unread = (history.end.reshape(shape) - committed > policy.allowed_lag) & (committed != GONE)
        gaps = table.gaps[:, code]
        least = np.where(gaps[:, -3] < NEVER, gaps.min(axis=1), 0)  # the usual gap is no shorter
        floor = as_of - np.maximum(unread_since(policy, 0), 2 * least)
        times = table.time[:, here].ravel()
        before, _ = history.bracket(np.arange(times.size), times, int(policy.clock_slack * 1000))
        before = before.reshape(shape)
        late = (before != UNKNOWN) & (before - committed > policy.allowed_lag)
        old = table.moved[:, here] < floor[:, None]
        out |= (unread & (late | old | (start > committed))).any(axis=1)
    return out
