"""The simulator's only door to the judgement: an evaluation session, and the cheap look at which most groups stop.

Whoever changes ``unread`` of ``kagent.detect.signs`` changes :func:`loud` too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kagent.contract.recommendation import Recommendation
from kagent.detect.evidence import idle_s
from kagent.detect.signs import young_ms
from kagent.group_key import group_key
from kagent.incident.fast_path import has_open_questions
from kagent.incident.session import Ask, EvaluationSession
from kagent.lag.commits import GONE
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.simulator.commit_table import NEVER, CommitTable
from kagent.simulator.world import Flags


@dataclass(slots=True)
class RecordedSession:
    """One evaluation session and its messages: about one group, or about all groups of one cluster."""

    session: EvaluationSession
    messages: list[Recommendation] = field(default_factory=list)

    @classmethod
    def of(cls, policy: Policy) -> RecordedSession:
        return cls(EvaluationSession(lambda group: policy))

    def evaluate(self, observations: Sequence[Observation], ask: Ask, groups: int) -> list[Recommendation]:
        """Evaluate these groups of the cluster, which has ``groups`` in all; the new messages."""
        if groups == 1:
            published = [message for one in observations for message in self.session.evaluate(one, ask)]
        else:
            published = list(self.session.evaluate_all(observations, ask, groups))
        self.messages += published
        return published

    def wants_a_look(self, seen: Observation, policy: Policy) -> bool:
        """Whether the group is to be looked at whatever its lag."""
        state = self.session.states.get(group_key(seen.cluster, seen.group))
        return state is None or state.incident is not None or has_open_questions(seen, state, policy)


def loud(table: CommitTable, ends: Mapping[str, EndHistory], as_of: int, policy: Policy) -> Flags:
    """Which groups the judgement's cheap look does not pass over, or perhaps not: of all seeds at once."""
    out = np.zeros(len(table.committed), bool)
    for code, (topic, here) in enumerate(zip(table.topics, table.spans, strict=True)):
        history, shape = ends[topic.name], (len(out), topic.partitions)
        committed, start = table.committed[:, here], history.start.reshape(shape)
        unread = (history.end.reshape(shape) - committed > policy.allowed_lag) & (committed != GONE)
        gaps = table.gaps[:, code]
        least = np.where(gaps[:, -3] < NEVER, gaps.min(axis=1), 0)  # the usual gap is no shorter
        floor = as_of - np.maximum(young_ms(0), 2 * least)
        times = table.time[:, here].ravel()
        # Against the log end at the commit's own time, as the judgement does: later records are not yet overdue.
        before, _ = history.bracket(np.arange(times.size), times)
        before = before.reshape(shape)
        spare = np.maximum(idle_s(policy) * history.rates().reshape(shape), policy.allowed_lag)
        late = (before != UNKNOWN) & (before - committed > spare)
        old = table.moved[:, here] < floor[:, None]
        out |= (unread & (late | old | (start > committed))).any(axis=1)
    return out
