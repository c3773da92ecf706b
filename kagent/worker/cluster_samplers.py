"""The watched clusters, asked: log ends of all topics, one group's coordinator, commits, and our rights."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kagent.errors import KafkaError
from kagent.kafka.admin import CHUNK, Admin
from kagent.kafka.descriptions import GroupAnswers
from kagent.offsets import OFFSETS_TOPIC
from kagent.worker import rights
from kagent.worker.coordinator_check import CoordinatorAnswer, ask
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.groups import Entry
from kagent.worker.log_end_sampler import Sampler

log = logging.getLogger("kagent.app")


LEARN_S = 2.0
"""Events wait no longer for the number of sources: a broker answers within a tenth of it, and one that does not must not hold up what
the other clusters' pipelines have found. Until it answers, progress of more sources is only slower to read."""


class ClusterSamplers:
    """One sampler for each cluster of the settings; ``engine`` is set once it is made, as it asks through this."""

    engine: GroupEngine

    def __init__(self, clusters: Any) -> None:
        # Less than in_thread's 30 s: the question ends by its own deadline, with a reason.
        self.by_cluster = {name: Sampler(Admin(c, deadline=10)) for name, c in clusters.items()}
        # The loop itself keeps only weak references to tasks.
        self.late: frozenset[asyncio.Task[None]] = frozenset()

    async def ask(self, cluster: str, entries: Sequence[Entry]) -> GroupAnswers[CoordinatorAnswer]:
        """What coordinators answer about groups, after which the log ends of their topics are sampled."""
        sampler = self.by_cluster.get(cluster)
        if sampler is None:
            return GroupAnswers({})
        answers: GroupAnswers[CoordinatorAnswer] = await in_thread(
            ask, sampler.admin, [entry.group for entry in entries]
        )
        logs = self.engine.logs
        names = logs.names.get(cluster, {})
        topics = {t for entry in entries if entry.group in answers.found for t in entry.topics(names)}
        # Log ends are read after the commits: read before, a commit could lie beyond its log end.
        samples = await in_thread(sampler.sample, topics)
        logs.sampled(cluster, samples, sampler.names(), sampler.infos())
        return answers

    async def learn_sources(self) -> None:
        """Ask all clusters at once how many partitions ``__consumer_offsets`` has; one that does not answer is asked with each sample."""
        asked = [asyncio.create_task(self._learn_sources(*one)) for one in self.by_cluster.items()]
        if asked:
            # Without an end to those that are late: what they answer still counts.
            _, late = await asyncio.wait(asked, timeout=LEARN_S)
            self.late = frozenset(late)

    async def _learn_sources(self, cluster: str, sampler: Sampler) -> None:
        try:
            await in_thread(sampler.describe, {OFFSETS_TOPIC}, False)
        except (KafkaError, TimeoutError) as error:
            log.warning(
                "the number of partitions of %s of cluster %s is unknown: %s", OFFSETS_TOPIC, cluster, error
            )
        else:
            self.engine.logs.described(cluster, sampler.infos())

    async def sample(self) -> None:
        """Ask every cluster for the log ends of the topics that its groups read."""
        logs = self.engine.logs
        for cluster, sampler in self.by_cluster.items():
            topics, unresolved = logs.needed_topics(cluster)
            # A cluster that does not answer delays the others by its deadline, and blinds only itself.
            began = time.monotonic()
            try:
                # With the source: no progress on more partitions than it has is believed.
                await in_thread(sampler.describe, {*topics, OFFSETS_TOPIC}, unresolved)
                samples = await in_thread(sampler.sample, topics)
            except (KafkaError, TimeoutError) as error:
                self.engine.counts["samples_failed"] += 1
                log.warning("log ends of %s are not known: %s", cluster, error)
                continue
            logs.sampled(cluster, samples, sampler.names(), sampler.infos())
            logs.sampling_took(cluster, time.monotonic() - began)

    async def rebuild_commits(self) -> None:
        """Ask the coordinators for the commits of groups whose rows could not be read."""
        wanted: dict[str, list[tuple[int, Entry]]] = defaultdict(list)
        for partition, entry in self.engine.ingest.without_commits():
            wanted[entry.cluster].append((partition, entry))
        for cluster in wanted.keys() & self.by_cluster.keys():
            for at in range(0, len(wanted[cluster]), CHUNK):
                await self._rebuild(self.by_cluster[cluster], wanted[cluster][at : at + CHUNK])

    async def _rebuild(self, sampler: Sampler, entries: Sequence[tuple[int, Entry]]) -> None:
        # The row is lost, its events may be gone from the topic: only the coordinator still knows the offsets.
        # It is asked again after the next tick: what cannot be answered now holds up neither this one nor the other groups.
        answers = await in_thread(sampler.admin.committed_now, [entry.group for _, entry in entries])
        for partition, entry in entries:
            if entry.group in answers.failed or entry.group in answers.settled:
                continue
            # Perhaps another worker's by now: it asks itself.
            if self.engine.index.partitions.get(partition, {}).get(entry.key) is not entry:
                continue
            self.engine.ingest.rebuild(partition, entry, answers.found.get(entry.group, {}))
            log.info("the commits of %r were read from its coordinator", entry.key)

    async def check_rights(self, mine: rights.Rights) -> None:
        """Ask what our user may do; restart, and wait, without a right that no work can be done without."""
        try:
            await in_thread(mine.look_home)
            for cluster, sampler in self.by_cluster.items():
                topics, _ = self.engine.logs.needed_topics(cluster)
                entries = (e for es in self.engine.index.partitions.values() for e in es.values())
                groups = [e.group for e in entries if e.cluster == cluster]
                await in_thread(mine.look, cluster, sampler.admin, topics, groups)
        except (KafkaError, TimeoutError) as error:
            log.debug("rights are not known: %s", error)
        if mine.own:
            rights.begin_anew(" ".join(mine.sentences))
        mine.say()
