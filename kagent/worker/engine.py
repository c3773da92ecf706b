"""The worker without Faust: events in, rows written, ticks judged, messages published. Everything outside is a port.

A message and the row that knows of it are put into the outbox without an await between them, so they are committed together: no incident
is opened twice, and none is forgotten. What another release published without its row is taken back as the row at the next start.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from kagent.contract.recommendation import Recommendation, State
from kagent.contract.redaction import Redaction
from kagent.detect.state import JudgeState
from kagent.incident.correlation import CorrelationState
from kagent.incident.evaluate import Judgement
from kagent.incident.session import EvaluationSession
from kagent.incident.stated import last_message
from kagent.lag.observation import Observation
from kagent.policy import Policies
from kagent.settings import Settings
from kagent.tables.declaration import Tables
from kagent.text import shown
from kagent.worker.beyond_log_end import BeyondLogEnd
from kagent.worker.cluster_logs import ClusterLogs
from kagent.worker.confirmations import AskCoordinators, Confirmations
from kagent.worker.context import WorkerContext
from kagent.worker.coverage_store import SourceCoverage
from kagent.worker.evaluator import GroupEvaluator
from kagent.worker.groups import Entry, Index, IndexStates
from kagent.worker.http.live_view import LiveView
from kagent.worker.ingest import Ingest, NotTaken
from kagent.worker.ingest_progress import Coverage
from kagent.worker.latency import Delays
from kagent.worker.mute_state import MuteState
from kagent.worker.partition_tick import PartitionTick
from kagent.worker.publisher import Publish, Publisher
from kagent.worker.restore import adopt
from kagent.worker.status import Summary, state_message
from kagent.worker.valid_judgements import ValidJudgements

log = logging.getLogger("kagent.worker")
# Not asyncio's own pool, in which pages wait too: a cluster that does not answer would hold all of its few threads. As many as questions may
# be asked at once, by the ticks of the partitions of one worker and by its timers; they wait, they do not compute.
_QUESTIONS = ThreadPoolExecutor(32, "kagent-question")
RESTATED_AFTER_MS = 10_000
"""Longer than a message waits for its flush and the end of its transaction."""


@dataclass(slots=True)
class GroupEngine:
    """The pieces of one worker process, put together, and what its pages and metrics read of them."""

    context: WorkerContext
    session: EvaluationSession
    states: IndexStates
    logs: ClusterLogs
    coverage_rows: SourceCoverage
    mutes: MuteState
    publisher: Publisher
    evaluator: GroupEvaluator
    ingest: Ingest
    ticks: PartitionTick
    summaries: dict[tuple[str, int], Summary] = field(default_factory=dict)
    """(cluster, partition) → the latest summary, of all workers; filled only at the owner of partition 0."""
    applied: Counter[str] = field(default_factory=Counter)
    """Plans of ``apply: auto`` groups, by outcome."""
    last_tick: float = 0.0
    """When a tick was last judged, in seconds since the epoch."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        tables: Tables,
        publish: Publish,
        ask: AskCoordinators,
        worker: str,
        clock: Callable[[], float] = time.time,
    ) -> GroupEngine:
        """An engine without groups, until :meth:`load`."""
        context = WorkerContext(settings, tables, worker, clock)
        states = IndexStates(context.index)
        session = EvaluationSession(context.policies, states)
        logs, coverage = ClusterLogs(context), SourceCoverage(context, session.recent)
        mutes, publisher = MuteState(), Publisher(context, publish)
        valid = ValidJudgements(context, logs, coverage, mutes)
        evaluator = GroupEvaluator(context, logs, coverage, mutes, session, states, publisher, valid)
        ingest = Ingest(context, logs, coverage, lambda key: evaluator.set_aside.pop(key, None))
        beyond = BeyondLogEnd(context, coverage)
        confirmations = Confirmations(ask, settings.worker.tick)
        ticks = PartitionTick(context, logs, coverage, evaluator, confirmations, publisher, beyond)
        return cls(context, session, states, logs, coverage, mutes, publisher, evaluator, ingest, ticks)

    def load(self, owned: Iterable[int], committed: Mapping[int, int | None]) -> None:
        """Own these partitions from now on; ``committed``: where the events topic is resumed in each."""
        partitions = sorted(owned)
        self.index.load(partitions)
        due = self.ingest.arrival.expected
        # Of a partition that another worker owned meanwhile, and committed further, its rows know more than this memory.
        self.coverage_rows.load(partitions, {p for p in due if (committed.get(p) or 0) <= due[p]})
        self.ingest.resume({partition: committed.get(partition) for partition in partitions})
        self.logs.load(partitions)
        known = {key for entries in self.index.partitions.values() for key in entries}
        # Groups of partitions that went away: their next owner judges them, and they must not be shown here.
        for key in self.set_aside.keys() - known:
            del self.set_aside[key]
        self.session.retain(known)
        # A message that was put into the outbox and not committed was not published; `adopt` reads what was.
        self.publisher.latest.clear()
        self.live.keep(set(partitions))
        log.info("this worker owns partitions %s with %d groups", partitions, self.group_count)

    def take(
        self, partition: int, offset: int, value: bytes | None, arrived_ms: int | None = None
    ) -> list[NotTaken]:
        """One message of the events topic: see :meth:`Ingest.take`."""
        return self.ingest.take(partition, offset, value, arrived_ms)

    def hears(self, partition: int) -> bool:
        """Whether progress of this partition's sources has come, and all of it lately."""
        coverage = self.coverage_rows.of(partition)
        return bool(coverage.sources) and not coverage.any_stale(self.now)

    def adopt(self, partition: int, published: Mapping[str, Any]) -> None:
        """Take what the recommendations topic holds of this partition's groups, where the rows know less."""
        self.publisher.continue_revisions(published)
        for key, entry in self.index.entries(partition).items():
            message = published.get(key)
            if not isinstance(message, Recommendation):
                continue
            try:
                self._adopt(partition, entry, message)
            except Exception as error:  # one message's surprise must not keep the others from being adopted
                self.refused["recommendation", "not_adopted"] += 1
                log.warning("the message published for %r cannot be withdrawn: %s", key, error)

    def _adopt(self, partition: int, entry: Entry, message: Recommendation) -> None:
        self.publisher.latest[entry.key] = message
        state = adopt(entry.judged, message)
        if state is not entry.judged and state is not None:
            self.index.judged(partition, entry, state)

    def restate(self, partition: int, published: Container[str], asked_ms: int) -> bool:
        """Publish open incidents again that the topic, read after ``asked_ms``, no longer holds under their keys; false if it is too
        early to tell of some."""
        complete = True
        for key, entry in self.index.entries(partition).items():
            incident = entry.judged.incident if entry.judged else None
            if incident is None or key in published:
                continue
            # A message of the last moments may wait in the outbox, or be in a transaction that has not ended.
            if incident.sent_at >= asked_ms - RESTATED_AFTER_MS:
                complete = False
                continue
            self.refused["recommendation", "gone"] += 1
            log.warning("the open incident of %s was gone from its topic: it is published again", shown(key))
            self.publisher.publish_again(partition, key, last_message(incident))
        return complete

    async def tick(self, partition: int, at: int) -> list[Summary]:
        """Judge this partition's groups as of ``at`` (ms); publish and write rows."""
        summaries = await self.ticks.run(partition, at)
        # By this worker's clock, not the tick's time: health asks when it last worked, not for what moment.
        self.last_tick = self.clock()
        return summaries

    def summarised(self, summary: Summary) -> None:
        """Take the summary of a worker, this one's or another's; only the owner of partition 0 receives them."""
        self.summaries[summary.cluster, summary.partition] = summary

    def state(self, cluster: str) -> State:
        """The state message of a cluster now."""
        settings = self.settings
        partitions, tick_s = settings.topics.partitions, settings.worker.tick
        return state_message(cluster, self.summaries.values(), partitions, self.now, tick_s)

    def judged_state(self, key: str) -> JudgeState | None:
        """What is remembered of a group, if this worker owns it."""
        for entries in self.index.partitions.values():
            if key in entries:
                return entries[key].judged
        return None

    def observe(self, partition: int, entry: Entry, at: int) -> Observation:
        """Everything that a judgement of this group at ``at`` (ms) rests on."""
        return self.evaluator.observe(partition, entry, at)

    # What pages and metrics read, wherever it is kept.

    @property
    def settings(self) -> Settings:
        return self.context.settings

    @property
    def tables(self) -> Tables:
        return self.context.tables

    @property
    def worker(self) -> str:
        return self.context.worker

    @property
    def clock(self) -> Callable[[], float]:
        return self.context.clock

    @property
    def now(self) -> int:
        return self.context.now

    @property
    def index(self) -> Index:
        return self.context.index

    @property
    def policies(self) -> Policies:
        return self.context.policies

    @property
    def redaction(self) -> Redaction:
        return self.context.redaction

    @property
    def live(self) -> LiveView:
        return self.context.live

    @property
    def counts(self) -> Counter[str]:
        return self.context.counts

    @property
    def refused(self) -> Counter[tuple[str, str]]:
        return self.context.refused

    @property
    def delays(self) -> Delays:
        return self.context.delays

    @property
    def coverage(self) -> dict[int, Coverage]:
        return self.coverage_rows.partitions

    @property
    def published(self) -> dict[str, Recommendation]:
        """The latest message of each group."""
        return self.publisher.latest

    @property
    def set_aside(self) -> dict[str, str]:
        return self.evaluator.set_aside

    @property
    def sampling_s(self) -> dict[str, float]:
        return self.logs.sampling_s

    @property
    def looks(self) -> dict[str, Judgement]:
        """The latest judgement of each group."""
        return self.session.judgements

    @property
    def dropped(self) -> Counter[str]:
        """Candidates that were not published, by reason."""
        return self.session.dropped

    @property
    def recent(self) -> dict[str, CorrelationState]:
        """Cluster → state of the correlation."""
        return self.session.recent

    @property
    def group_count(self) -> int:
        return self.index.group_count


async def in_thread(call: Callable[..., Any], *args: Any, limit: float = 30.0) -> Any:
    """A blocking call in a thread, with a deadline. Raises TimeoutError."""
    # The thread itself cannot be cancelled: the caller goes on, and the thread ends with its own deadlines.
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit):
            return await loop.run_in_executor(_QUESTIONS, call, *args)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no answer within {limit:g} s") from error  # asyncio's has no words
