"""One tick of one partition of the events topic: all of its groups, what they have in common, and what is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kagent.group_key import group_key
from kagent.incident.correlation import CorrelationState, Population
from kagent.incident.evaluate import Candidate
from kagent.incident.resolution import expired
from kagent.worker.beyond_log_end import BeyondLogEnd, in_use
from kagent.worker.cluster_logs import ClusterLogs
from kagent.worker.confirmations import Confirmations
from kagent.worker.context import WorkerContext
from kagent.worker.coverage_store import SourceCoverage
from kagent.worker.evaluator import Counts, GroupEvaluator
from kagent.worker.groups import Entry
from kagent.worker.publisher import Publisher
from kagent.worker.status import Summary


@dataclass(slots=True)
class PartitionTick:
    """The steps of a tick, in their order."""

    context: WorkerContext
    logs: ClusterLogs
    coverage: SourceCoverage
    evaluator: GroupEvaluator
    confirmations: Confirmations
    publisher: Publisher
    beyond: BeyondLogEnd

    async def run(self, partition: int, at: int) -> list[Summary]:
        """Judge the partition's groups as of ``at`` (ms), publish and write rows; one summary for each cluster."""
        self.context.presence.tick(self.context.now)
        self._forget_what_cannot_be(partition)
        # Before the first await: whether the data were complete is asked of the same moment as the judgement.
        summaries = {c: self._status(partition, c) for c in self.coverage.clusters(partition)}
        counts: Counts = Counter()
        candidates: list[tuple[Entry, Candidate]] = []
        self.evaluator.valid.begin()
        for entry in self.context.index.entries(partition).values():
            candidate = self.evaluator.judge(partition, entry, at, counts)
            if candidate is not None:
                candidates.append((entry, candidate))
        # Before the confirmations, which ask brokers: what many groups have in common comes first.
        self.correlate(partition, candidates, at)
        answers = await self.confirmations.answers([entry for entry, _ in candidates])
        for entry, candidate in candidates:
            self.evaluator.confirm(partition, entry, candidate, at, answers.get(entry.key))
        # After the judgements, which may have resolved it already.
        self._close_gone(partition, at)
        self.logs.keep(partition, at)
        self.publisher.retire(partition, at)
        # After retire(): a group is forgotten only once no message of it is on the topic.
        self._forget(partition, at)
        found = self._counted(partition, summaries, counts)
        there = {e.key for e in self.context.index.entries(partition).values() if self.evaluator.is_there(e)}
        self.context.live.ticked(partition, found, there)
        return found

    def correlate(self, partition: int, candidates: list[tuple[Entry, Candidate]], at: int) -> None:
        """Publish what many groups have in common; it replaces no group's own candidate."""
        session = self.evaluator.session
        for cluster in self.coverage.clusters(partition):
            mine = [c for e, c in candidates if e.cluster == cluster]
            before = session.recent.get(cluster, CorrelationState())
            # Nothing now and nothing before: the usual tick of a healthy cluster writes and publishes nothing.
            if not mine and before == CorrelationState():
                continue
            found = session.correlate(cluster, mine, self._population(cluster), at)
            try:
                for message in found.messages:
                    self.publisher.publish_common(partition, group_key(cluster, message.group), message)
            except BaseException:  # not published, so not to be remembered as published
                session.recent[cluster] = before
                raise
            if found.recent != before:
                self.coverage.keep(partition)

    def _forget_what_cannot_be(self, partition: int) -> None:
        """Records of places that the source does not have blind no group for longer than a minute."""
        self.beyond.forget(partition)
        self._forget_partitions(partition)
        coverage, now = self.coverage.of(partition), self.context.now
        if coverage.any_stale(now):
            coverage.forget_strays(in_use(self.context.index.entries(partition)), now)

    def _forget_partitions(self, partition: int) -> None:
        """Forget source partitions that were heard of before the clusters were asked how many there are."""
        coverage = self.coverage.of(partition)
        for cluster in self.context.settings.clusters:
            count = self.logs.source_partitions(cluster)
            if count is not None and coverage.forget_beyond(cluster, count):
                self.coverage.keep(partition)

    def _population(self, cluster: str) -> Population:
        """How many of this worker's groups read each topic and from each broker."""
        topics: Counter[str] = Counter()
        brokers: Counter[int] = Counter()
        infos, count = self.logs.infos.get(cluster, {}), 0
        for entries in self.context.index.partitions.values():
            for entry in entries.values():
                if entry.cluster == cluster:
                    count += 1
                    topics.update(entry.commits.keys())
                    # A set: a group counts once for a broker, however many of its partitions that leads.
                    brokers.update({b for t in entry.commits if t in infos for b in infos[t].leaders})
        return Population(count, topics, brokers)

    def _status(self, partition: int, cluster: str) -> Summary:
        """Whether the cluster is watched, and why not; still without counts."""
        coverage, now = self.coverage.of(partition), self.context.now
        status, reason = coverage.status(cluster, now)
        # Coverage without a source says watching: nothing in it is stale. Here it means that no pipeline runs.
        if reason is None and not any(c == cluster for c, _ in coverage.sources):
            status, reason = (
                "blind",
                "no progress of the pipeline has come yet (is `kagent pipeline` running?)",
            )
        unsampled = self.logs.blind_reason(cluster)
        if unsampled is not None and status != "blind":
            status, reason = "blind", unsampled
        reason = reason or self.logs.slow_reason(cluster)
        return Summary(cluster, partition, self.context.worker, now, status, reason, coverage.oldest(cluster))

    def _close_gone(self, partition: int, at: int) -> None:
        """Close the incident of a group of which nothing is left: every open gets its close."""
        for entry in self.context.index.entries(partition).values():
            # What is cheap to ask first: this is asked of every group at every tick.
            if entry.judged is not None and entry.judged.incident is not None and entry.gone:
                state, message = expired(entry.judged, at)
                self.publisher.publish(partition, entry.key, [message] if message is not None else [])
                self.context.index.judged(partition, entry, state)

    def _forget(self, partition: int, at: int) -> None:
        for key in self.context.index.forget(
            partition, at, self.context.settings.clusters, self.publisher.latest
        ):
            self.evaluator.session.forget(key)
            self.evaluator.set_aside.pop(key, None)
            self.context.counts["forgotten"] += 1

    def _counted(self, partition: int, summaries: Mapping[str, Summary], counts: Counts) -> list[Summary]:
        """The summaries with what the tick counted."""
        entries = self.context.index.entries(partition).values()
        opened = Counter(e.cluster for e in entries if e.judged and e.judged.incident)
        blind_reason, aside_reason = self.context.live.blind_reason, self.evaluator.aside_reason
        return [
            replace(
                summary,
                judged=counts[cluster, "judged"] + counts[cluster, "learning"] + counts[cluster, "muted"],
                blind=counts[cluster, "blind"],
                ignored=counts[cluster, "ignored"],
                learning=counts[cluster, "learning"],
                learning_until=counts[cluster, "learning_until"] or None,
                muted=counts[cluster, "muted"],
                muted_until=counts[cluster, "muted_until"] or None,
                blind_reason=blind_reason(partition, cluster) if counts[cluster, "blind"] else None,
                set_aside=counts[cluster, "set_aside"],
                set_aside_reason=aside_reason(partition, cluster),
                open=opened[cluster],
                no_members=self.context.live.without_members(partition, cluster),
                incidents=self.context.live.incidents(partition, cluster, summary.time),
            )
            for cluster, summary in summaries.items()
        ]
