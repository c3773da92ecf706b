"""The evaluation session: judge each group, correlate the candidates of a cluster, confirm, remember. Pure; callers do I/O.

    session = EvaluationSession(policies)
    messages = session.evaluate_all(observations, ask)      at every tick, the groups of one cluster

``ask`` returns a group as its coordinator describes it now, or the reason to drop the candidate. A caller that must await the
answer takes the steps itself: :meth:`~EvaluationSession.judge` every group, :meth:`~EvaluationSession.correlate` the
candidates of a cluster, :meth:`~EvaluationSession.confirm` each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field

from kagent.contract.recommendation import Recommendation
from kagent.detect.state import JudgeState
from kagent.group_key import group_key
from kagent.incident.correlation import Correlated, CorrelationState, Population, correlate
from kagent.incident.evaluate import Candidate, Judgement, confirm, judge, rejected
from kagent.lag.observation import Observation
from kagent.policy import Policy

Answer = Observation | str
"""A fresh observation, or the reason to drop the candidate (as counted in metrics)."""
Ask = Callable[[Observation], Answer]


@dataclass(slots=True)
class EvaluationSession:
    """State of groups between ticks, under the key ``<cluster>/<group>``; one or more clusters.

    ``states``: any mutable mapping, for example one that writes rows. ``judgements``: the latest of each group.
    ``suppressed_by``: per group, why its finding was not published at the latest tick (None: published, or no finding).
    ``published``: the latest message of each group and of each common incident. ``dropped``: dropped candidates by reason.
    ``recent``: per cluster, the state of the correlation.
    """

    policies: Callable[[str], Policy]
    states: MutableMapping[str, JudgeState] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    suppressed_by: dict[str, str | None] = field(default_factory=dict)
    published: dict[str, Recommendation] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    recent: dict[str, CorrelationState] = field(default_factory=dict)

    def assume_known(self, cluster: str, group: str, since_ms: int, now_ms: int) -> None:
        """Treat a group without state as first seen at ``since_ms`` and as having members at ``now_ms``."""
        # `members_at` too: an empty group can be reported as no_members only if it had members within a day.
        self.states.setdefault(group_key(cluster, group), JudgeState(first_seen=since_ms, members_at=now_ms))

    def judge(self, observation: Observation) -> Judgement:
        """Judge one group at this tick. A candidate in the result is still to be correlated and confirmed."""
        key = group_key(observation.cluster, observation.group)
        judgement = judge(observation, self.states.get(key), self.policies(observation.group))
        self.judgements[key] = judgement
        return self._keep(key, judgement)

    def correlate(
        self, cluster: str, candidates: Sequence[Candidate], population: Population, now_ms: int
    ) -> Correlated:
        """What one cluster's candidates of this tick have in common: messages above their own, which they never replace."""
        before = self.recent.get(cluster, CorrelationState())
        # Nearly every tick: nothing new, and no common incident that might have ended.
        if not candidates and before == CorrelationState():
            return Correlated((), before)
        found = correlate(candidates, before, cluster, population, now_ms)
        self.recent[cluster] = found.recent
        self._publish(found.messages)
        return found

    def confirm(self, candidate: Candidate, answer: Answer) -> Judgement:
        """Open the candidate's incident, wait for another confirmation, or drop it, by the coordinator's answer."""
        key = group_key(candidate.cluster, candidate.group)
        # The state as it is now: the answer may come after another tick has judged the group.
        state = self.states[key]
        # A refusal keeps the evidence: the next tick asks again.
        if isinstance(answer, str):
            return self._keep(key, rejected(state, answer))
        return self._keep(key, confirm(candidate, answer, state, self.policies(candidate.group)))

    def evaluate(self, observation: Observation, ask: Ask) -> tuple[Recommendation, ...]:
        """Judge one group and confirm its candidate, without correlation. Returns the messages to publish, in order."""
        judgement = self.judge(observation)
        if judgement.candidate is None:
            return judgement.messages
        return (*judgement.messages, *self.confirm(judgement.candidate, ask(observation)).messages)

    def evaluate_all(
        self, observations: Iterable[Observation], ask: Ask, groups: int | None = None
    ) -> tuple[Recommendation, ...]:
        """Evaluate all groups of one cluster at one tick. Returns the messages to publish, in order.

        ``groups``: number of groups on the cluster, where it is not the number of observations.
        """
        observed = {o.group: o for o in observations}
        if not observed:
            return ()
        # All groups first: a common cause shows only once every group of the tick has been judged.
        judgements = [self.judge(observation) for observation in observed.values()]
        messages = [message for judgement in judgements for message in judgement.messages]
        first = next(iter(observed.values()))
        candidates = [judgement.candidate for judgement in judgements if judgement.candidate is not None]
        population = population_of(observed.values(), groups)
        messages += self.correlate(first.cluster, candidates, population, first.now).messages
        for candidate in candidates:
            messages += self.confirm(candidate, ask(observed[candidate.group])).messages
        return tuple(messages)

    def forget(self, key: str) -> None:
        """Forget everything about a group but its state, which is the caller's to drop."""
        for known in (self.judgements, self.suppressed_by, self.published):
            known.pop(key, None)

    def retain(self, keys: Container[str]) -> None:
        """Forget all groups except these."""
        # A copy of the keys, since forget() removes from these dicts.
        for key in {*self.judgements, *self.suppressed_by, *self.published}:
            if key not in keys:
                self.forget(key)

    def _keep(self, key: str, judgement: Judgement) -> Judgement:
        self.states[key] = judgement.state
        self.suppressed_by[key] = judgement.rejected_by or judgement.suppressed_by
        if judgement.rejected_by:
            self.dropped[judgement.rejected_by] += 1
        self._publish(judgement.messages)
        return judgement

    def _publish(self, messages: Iterable[Recommendation]) -> None:
        for message in messages:
            self.published[group_key(message.cluster, message.group)] = message


def population_of(observations: Iterable[Observation], groups: int | None = None) -> Population:
    """How many groups read each topic and from each broker."""
    topics: Counter[str] = Counter()
    brokers: Counter[int] = Counter()
    count = 0
    for seen in observations:
        count += 1
        mine = set(seen.commits)
        topics.update(mine)
        brokers.update({leader for t in mine if t in seen.topics for leader in seen.topics[t].leaders})
    return Population(groups or count, topics, brokers)
