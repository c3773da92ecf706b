"""One group at a time: observe it, judge it, ask its coordinator, publish and keep the result.

A group whose data makes the judgement raise is set aside alone: the others of the partition are judged all the same.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kagent.contract.recommendation import Verdict
from kagent.incident.evaluate import Candidate, Judgement
from kagent.incident.session import Answer, EvaluationSession
from kagent.lag.log_end_coverage import unread
from kagent.lag.observation import UNKNOWN_CLUSTER, Observation, of_its_data
from kagent.text import shown
from kagent.worker.cluster_logs import ClusterLogs
from kagent.worker.confirmations import BROKER_TROUBLE
from kagent.worker.confirmations import Answer as CoordinatorsAnswer
from kagent.worker.context import WorkerContext
from kagent.worker.coordinator_check import contradiction, refreshed
from kagent.worker.coverage_store import SourceCoverage
from kagent.worker.group_state import EvaluationState, group_state, learned_by_ms
from kagent.worker.groups import Entry, IndexStates
from kagent.worker.http.judgement_view import GroupSummary, summary_of
from kagent.worker.mute_state import MuteState
from kagent.worker.publisher import Publisher
from kagent.worker.restore import adopt
from kagent.worker.valid_judgements import ValidJudgements

log = logging.getLogger("kagent.worker")

Counts = Counter[tuple[str, str]]
"""(cluster, what) → number of groups, or a time in ms for what ends with ``_until``."""


@dataclass(slots=True)
class GroupEvaluator:
    """``set_aside``: group key → why it cannot be judged, until its data changes."""

    context: WorkerContext
    logs: ClusterLogs
    coverage: SourceCoverage
    mutes: MuteState
    session: EvaluationSession
    states: IndexStates
    publisher: Publisher
    valid: ValidJudgements
    set_aside: dict[str, str] = field(default_factory=dict)
    _tool_options: dict[str, str] = field(init=False)
    """Cluster → how Kafka's own tools reach it, for commands in advice."""
    _command_options: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        clusters = self.context.settings.clusters
        self._tool_options = {name: cluster.tool_options() for name, cluster in clusters.items()}
        self._command_options = {name: self.context.settings.command_options(name) for name in clusters}

    def observe(self, partition: int, entry: Entry, at: int) -> Observation:
        """Everything that a judgement of this group at ``at`` (ms) rests on."""
        names = self.logs.names.get(entry.cluster, {})
        coverage = self.coverage.of(partition)
        # Freshness by the clock, not by the tick's time: to a tick that waited, old data would look fresh.
        topics, now = entry.topics(names), self.context.now
        ends = {t: self.logs.ends[entry.cluster, t] for t in topics if (entry.cluster, t) in self.logs.ends}
        blind = coverage.why_blind(entry.cluster, entry.source, now) or self.logs.blind_reason(entry.cluster)
        seen = Observation(
            cluster=entry.cluster,
            group=entry.group,
            now=at,
            roster=entry.roster(names),
            commits=entry.commits,
            ends=ends,
            topics=self.logs.infos.get(entry.cluster, {}),
            as_of=coverage.as_of(entry.cluster, entry.source),
            blind=blind or unread(entry.commits, ends, self.logs.blind_after_ms, now),
            mute=self.mutes.of(entry.key, entry.cluster, entry.group, at),
            patience=self.logs.patience_ms,
            present_since=self.context.presence.since_ms,
            tool_options=self._tool_options.get(entry.cluster, UNKNOWN_CLUSTER),
            command_options=self._command_options.get(entry.cluster, ""),
        )
        return seen if seen.blind is None else of_its_data(seen)

    def judge(self, partition: int, entry: Entry, at: int, counts: Counts) -> Candidate | None:
        """Judge one group, publish what needs no confirmation; the candidate that does. Adds to ``counts``."""
        try:
            return self._judge(partition, entry, at, counts)
        except BROKER_TROUBLE:
            raise
        except Exception as error:
            self.put_aside(entry, error)
            counts[entry.cluster, "blind"] += 1
            counts[entry.cluster, "set_aside"] += 1
            return None

    def _judge(self, partition: int, entry: Entry, at: int, counts: Counts) -> Candidate | None:
        valid = self.valid.of(partition, entry, at)
        if valid is not None:
            self._carry_on(partition, entry, at, valid, counts)
            return None
        # Here, not with the next one: what raises in between must not bring the old one back.
        entry.valid = None
        policy = self.context.policies(entry.group)
        if policy.ignore:
            counts[entry.cluster, "ignored"] += 1
            return None
        # Ignored groups come first: they are never counted as blind.
        if not self._can_be_judged(entry):
            counts[entry.cluster, "blind"] += 1
            counts[entry.cluster, "set_aside"] += 1
            return None
        seen = self.observe(partition, entry, at)
        judgement = self._judgement(seen, entry)
        was_busy, entry.busy = entry.busy, entry.unjudged_since is not None
        # The delay of the oldest event that this judgement was the first to see.
        if entry.unjudged_since is not None:
            self.context.delays.add("verdict", self.context.now - entry.unjudged_since)
            entry.unjudged_since = None
        self._publish_and_keep(partition, entry, judgement)
        quiet = judgement.model is None and seen.blind is None
        blind = seen.blind is not None or judgement.suppressed_by == "unwatched"
        muted_until = seen.mute.until if seen.mute else 0
        if self._show(partition, entry, at, quiet, lambda: summary_of(seen, judgement, policy)):
            # After all that may raise, which is counted as set aside.
            _count_state(entry, at, counts, blind=blind, muted_until=muted_until)
        # A group with events before each tick is judged at the next one whatever is valid.
        if not (was_busy and entry.busy):
            self.valid.keep(entry, seen, judgement, policy)
        return judgement.candidate

    def _carry_on(self, partition: int, entry: Entry, at: int, judgement: Judgement, counts: Counts) -> None:
        """Show and count a group as a tick does that judges it and finds the same."""

        def found() -> GroupSummary:
            return summary_of(
                self.observe(partition, entry, at), judgement, self.context.policies(entry.group)
            )

        entry.busy = False
        if self._show(partition, entry, at, True, found):
            _count_state(entry, at, counts)

    def is_there(self, entry: Entry) -> bool:
        """Whether the group is shown and counted: not a deleted one of which no message is kept. What is known of it is kept for a
        while, as a replay may read older events of it again."""
        return not entry.gone or entry.key in self.publisher.latest

    def _show(
        self, partition: int, entry: Entry, at: int, quiet: bool, found: Callable[[], GroupSummary]
    ) -> bool:
        """Show the group; whether it is there to be shown, and so counted."""
        if not self.is_there(entry):
            return False
        latest = self.publisher.latest.get(entry.key)
        self.context.live.judged(partition, entry.key, at, quiet, found, latest)
        return True

    def _judgement(self, seen: Observation, entry: Entry) -> Judgement:
        """The judgement; if the group's state makes it raise, with the state that the published message implies instead."""
        try:
            return self.session.judge(seen)
        except Exception:
            if entry.judged is None:
                raise
            remembered, message = entry.judged, self.publisher.latest.get(entry.key)
            # The incident stays open under its id; only habits and baselines are lost.
            entry.judged = adopt(None, message) if message else None
            try:
                found = self.session.judge(seen)
            except Exception:
                entry.judged = remembered
                raise
            log.warning(
                "the saved state of %r cannot be used: kagent learns the group again",
                entry.key,
                exc_info=True,
            )
            self.context.refused["memory", "not_judged"] += 1
            return found

    def _can_be_judged(self, entry: Entry) -> bool:
        if "members" in entry.unreadable:
            self.set_aside[entry.key] = (
                "its members are not known, as their row is lost: its coordinator is asked"
            )
        limit = self.context.settings.worker.max_partitions_per_group
        count = sum(len(c.partition) for c in entry.commits.values())
        if count > limit:
            self.set_aside[entry.key] = (
                f"it has {count} partitions, and worker.max_partitions_per_group is {limit}"
            )
        return entry.key not in self.set_aside

    def put_aside(self, entry: Entry, error: Exception) -> None:
        """Do not judge this group again until its data changes; remember why."""
        if entry.key not in self.set_aside:
            # Once per cause: at every tick it would fill the log.
            log.error("the group %r is set aside until its data changes", entry.key, exc_info=error)
            self.context.counts["judgements_failed"] += 1
        self.set_aside[entry.key] = f"its judgement failed ({type(error).__name__}: {error})"[:500]

    def aside_reason(self, partition: int, cluster: str) -> str | None:
        """One of the partition's groups that are set aside, and why."""
        for key, entry in self.context.index.entries(partition).items():
            if entry.cluster == cluster and key in self.set_aside:
                return f"{shown(entry.group)}: {self.set_aside[key]}"
        return None

    def confirm(
        self, partition: int, entry: Entry, candidate: Candidate, at: int, answer: CoordinatorsAnswer
    ) -> None:
        """Publish what still holds by the coordinator's answer; without one the candidate waits for the next tick."""
        try:
            # Compared with the records as they are after the question: an event may have come meanwhile.
            fresh = _afresh(candidate, answer, self.observe(partition, entry, at))
            self._publish_and_keep(partition, entry, self.session.confirm(candidate, fresh))
        except BROKER_TROUBLE:  # the tick fails and the next one tries again
            raise
        except Exception as error:
            self.put_aside(entry, error)

    def _publish_and_keep(self, partition: int, entry: Entry, judgement: Judgement) -> None:
        """Publish, then write the row, without an await between them: a row never says more than the topic."""
        try:
            self.publisher.publish(partition, entry.key, judgement.messages)
        except BaseException:
            # A state without its message would hide the incident from every later tick.
            self.states.drop(entry.key)
            raise
        self.states.write(entry.key)


def _afresh(candidate: Candidate, answer: CoordinatorsAnswer, seen: Observation) -> Answer:
    """The group with the offsets of now, or why the candidate is dropped. Raises what the question raised."""
    if answer is None:
        return "unconfirmed"
    if isinstance(answer, Exception):
        raise answer
    return contradiction(Verdict(candidate.verdict), answer, seen) or refreshed(seen, answer)


def _count_state(
    entry: Entry, now_ms: int, counts: Counts, *, blind: bool = False, muted_until: int = 0
) -> None:
    """Count the group in its one state, for the state message."""
    cluster, first_seen = entry.cluster, entry.judged.first_seen if entry.judged else now_ms
    state = group_state(
        ignored=False, blind=blind, muted=now_ms < muted_until, first_seen_ms=first_seen, now_ms=now_ms
    )
    counts[cluster, state] += 1
    ends = {EvaluationState.LEARNING: learned_by_ms(first_seen), EvaluationState.MUTED: muted_until}
    if state in ends:
        counts[cluster, f"{state}_until"] = max(ends[state], counts[cluster, f"{state}_until"])
