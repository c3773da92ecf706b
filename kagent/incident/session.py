"""One evaluation of groups, whoever runs it: judged, gathered by cluster, confirmed, remembered. Pure; I/O is the caller's.

    session = EvaluationSession(policies)
    messages = session.evaluate_all(observations, ask)      at every tick, the groups of one cluster

``ask`` gives a candidate's group as its coordinator tells of it now, or the reason why that bears nothing out. Who must wait
for an answer takes the steps one by one: :meth:`~EvaluationSession.judge` every group, :meth:`~EvaluationSession.gather` the
candidates of a cluster, :meth:`~EvaluationSession.confirm` each that stands alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field

from kagent.advice.judge import Candidate, Judgement, confirm, dropped, judge
from kagent.advice.state import JudgeState
from kagent.advice.storms import Gathered, Recent, gather
from kagent.contract.recommendation import Recommendation
from kagent.group_key import group_key
from kagent.lag.observation import Observation
from kagent.policy import Policy

COMMON = "common"
"""A candidate was held back because a common incident speaks for it."""

Answer = Observation | str
"""The group as its coordinator tells of it now, or why a candidate is dropped (a counted reason)."""
Ask = Callable[[Observation], Answer]


@dataclass(slots=True)
class EvaluationSession:
    """What is remembered of groups between ticks, by ``<cluster>/<group>``; of one cluster or of several.

    ``states``: any mapping, such as one that keeps rows. ``judged``: the last judgement of each group; ``held``: why what is
    the matter was not (yet) said, None where nothing is or where it was said; ``said``: the last message of each group and
    scope; ``dropped``: how often candidates were dropped, by reason; ``recent``: by cluster, what was gathered of late.
    """

    policies: Callable[[str], Policy]
    states: MutableMapping[str, JudgeState] = field(default_factory=dict)
    judged: dict[str, Judgement] = field(default_factory=dict)
    held: dict[str, str | None] = field(default_factory=dict)
    said: dict[str, Recommendation] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    recent: dict[str, Recent] = field(default_factory=dict)

    def know(self, cluster: str, group: str, since: int, now: int) -> None:
        """Count a group as seen since that time (ms), with members at ``now``; what is remembered of it already stands."""
        self.states.setdefault(group_key(cluster, group), JudgeState(first_seen=since, members_at=now))

    def judge(self, seen: Observation) -> Judgement:
        """One group at this tick; a candidate in it is to be gathered and confirmed."""
        key = group_key(seen.cluster, seen.group)
        found = judge(seen, self.states.get(key), self.policies(seen.group))
        self.judged[key] = found
        return self._kept(key, found)

    def gather(self, cluster: str, candidates: Sequence[Candidate], groups: int, now: int) -> Gathered:
        """Which candidates of a cluster stand alone, and what is said of those that do not; ``groups``: judged there."""
        before = self.recent.get(cluster, Recent())
        if not candidates and before == Recent():
            return Gathered((), (), (), before)
        found = gather(candidates, before, cluster, groups, now)
        self.recent[cluster] = found.recent
        for candidate in found.held:
            self.held[group_key(cluster, candidate.group)] = COMMON
        if found.held:
            self.dropped[COMMON] += len(found.held)
        self._say(found.messages)
        return found

    def confirm(self, candidate: Candidate, answer: Answer) -> Judgement:
        """A candidate by the coordinator's answer: said, kept until it is asked again, or dropped."""
        key = group_key(candidate.cluster, candidate.group)
        state = self.states[key]
        if isinstance(answer, str):
            return self._kept(key, dropped(state, answer))
        return self._kept(key, confirm(candidate, answer, state, self.policies(candidate.group)))

    def evaluate(self, seen: Observation, ask: Ask) -> tuple[Recommendation, ...]:
        """One group judged and, if it is a candidate, confirmed: the messages. Nothing is gathered."""
        found = self.judge(seen)
        if found.candidate is None:
            return found.messages
        return (*found.messages, *self.confirm(found.candidate, ask(seen)).messages)

    def evaluate_all(
        self, observations: Iterable[Observation], ask: Ask, groups: int | None = None
    ) -> tuple[Recommendation, ...]:
        """All groups of one cluster at one tick: the messages, in the order in which they would be published."""
        messages: list[Recommendation] = []
        seen = list(observations)
        candidates: dict[str, tuple[Candidate, Observation]] = {}
        for one in seen:
            found = self.judge(one)
            messages += found.messages
            if found.candidate is not None:
                candidates[one.group] = (found.candidate, one)
        if not seen:
            return ()
        listed = [candidate for candidate, _ in candidates.values()]
        gathered = self.gather(seen[0].cluster, listed, len(seen) if groups is None else groups, seen[0].now)
        messages += gathered.messages
        for candidate in gathered.alone:
            messages += self.confirm(candidate, ask(candidates[candidate.group][1])).messages
        return tuple(messages)

    def _kept(self, key: str, found: Judgement) -> Judgement:
        self.states[key] = found.state
        self.held[key] = found.dropped or found.held
        if found.dropped:
            self.dropped[found.dropped] += 1
        self._say(found.messages)
        return found

    def _say(self, messages: Iterable[Recommendation]) -> None:
        for message in messages:
            self.said[group_key(message.cluster, message.group)] = message
