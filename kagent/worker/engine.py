"""The worker without Faust: events in, rows written, ticks judged, messages published. Everything outside is a port.

A message and the row that knows of it are put into the outbox without an await between them, so they are committed together: no incident
is opened twice, and none is forgotten. What another release published without its row is taken back as the row at the next start.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from aiokafka.errors import KafkaError as ClientError

from kagent.active_mutes import by_pattern
from kagent.contract import admission
from kagent.contract.admission import MAX_AHEAD_MS, Refused, checked, not_ahead
from kagent.contract.events import Beat, GroupEvent, TopicOffsets
from kagent.contract.mute import MuteRecord, is_pattern
from kagent.contract.mute import from_bytes as mute_from_bytes
from kagent.contract.recommendation import Recommendation, State, Status, Verdict, to_bytes
from kagent.contract.redaction import Redaction
from kagent.detect.state import JudgeState
from kagent.errors import KafkaError
from kagent.group_key import group_key
from kagent.incident.correlation import Population, Recent
from kagent.incident.evaluate import Candidate, Judgement
from kagent.incident.lifecycle import expired
from kagent.incident.session import EvaluationSession
from kagent.lag.log_end_coverage import unread
from kagent.lag.log_ends import PAUSE, EndHistory
from kagent.lag.observation import UNKNOWN_CLUSTER, Mute, Observation, TopicInfo
from kagent.policy import Policies
from kagent.settings import Settings
from kagent.tables import coverage as coverage_table
from kagent.tables import ends as ends_table
from kagent.text import shown
from kagent.worker.coordinator_check import Answer, contradiction, refreshed
from kagent.worker.group_state import GroupState, group_state, learned_by_ms
from kagent.worker.groups import Entry, Index, IndexStates, Tables
from kagent.worker.http.group_columns import glance
from kagent.worker.http.live_view import LiveView
from kagent.worker.ingest_progress import Coverage
from kagent.worker.latency import Delays
from kagent.worker.offset_gaps import Arrival
from kagent.worker.restore import adopt
from kagent.worker.status import Summary, state_message

log = logging.getLogger("kagent.worker")
KEEP_ENDS_EVERY_MS = 60_000
BLIND_AFTER = 60_000

Publish = Callable[[int, str, bytes | None, Callable[[], None] | None], None]
"""Send a message under this key to the recommendations topic, with the rows of the partition of its group; call when it is committed."""
Built = TypeVar("Built")
Fresh = Callable[[Entry], Awaitable[Answer | None]]
"""Ask the coordinator about a group now; None if it could not be asked."""


@dataclass(slots=True)
class Desk:
    """What one worker process knows and does. Times in ms unless a name says otherwise."""

    settings: Settings
    tables: Tables
    publish: Publish
    fresh: Fresh
    worker: str
    clock: Callable[[], float] = time.time
    policies: Policies = field(init=False)
    redaction: Redaction = field(init=False)
    index: Index = field(init=False)
    states: IndexStates = field(init=False)
    session: EvaluationSession = field(init=False)
    arrival: Arrival = field(default_factory=Arrival)
    coverage: dict[int, Coverage] = field(default_factory=dict)
    ends: dict[tuple[str, str], EndHistory] = field(default_factory=dict)
    infos: dict[str, dict[str, TopicInfo]] = field(default_factory=dict)
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    mutes: dict[str, Mute] = field(default_factory=dict)
    mute_patterns: dict[str, MuteRecord] = field(default_factory=dict)
    published: dict[str, Recommendation] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    """Key → revision of the latest message under it."""
    summaries: dict[tuple[str, int], Summary] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(what, reason) → records that were not let in."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """Group → why it cannot be judged, until its data changes."""
    counts: Counter[str] = field(default_factory=Counter)
    applied: Counter[str] = field(default_factory=Counter)
    """Plans of ``apply: auto`` groups, by what came of them."""
    delays: Delays = field(default_factory=Delays)
    live: LiveView = field(default_factory=LiveView)
    last_tick: float = 0.0
    _patience: int = field(init=False)
    """Without a sample of the log ends for so long, what a group committed then waits for its next commit."""
    _blind_after: int = field(init=False)
    """Without one for so long, kagent is blind."""
    _tool_options: dict[str, str] = field(init=False)
    """Cluster → how Kafka's own tools reach it, for commands in advice."""
    _sampled_at: dict[str, int] = field(default_factory=dict)
    """Cluster → when its log ends were last read, or when we began."""
    sampling_s: dict[str, float] = field(default_factory=dict)
    """Cluster → how long its last sample of the log ends took, in seconds."""
    _recent_at: dict[str, int] = field(default_factory=dict)
    _ends_kept: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        s = self.settings
        self.policies = Policies(s.policy, s.groups, (*s.ignore, s.topics.prefix.rstrip("-")))
        self.redaction = Redaction.of(s.redact, s.salt())
        self.index = Index(self.tables, self.redaction)
        self.states = IndexStates(self.index)
        self.session = EvaluationSession(self.policies, self.states)
        self._tool_options = {name: cluster.tool_options() for name, cluster in s.clusters.items()}
        interval = s.worker.sample * 1000
        self._patience, self._blind_after = max(PAUSE, int(3 * interval)), max(BLIND_AFTER, int(6 * interval))

    @property
    def now(self) -> int:
        return int(self.clock() * 1000)

    @property
    def looks(self) -> dict[str, Judgement]:
        """The latest judgement of each group."""
        return self.session.judgements

    @property
    def dropped(self) -> Counter[str]:
        """Candidates that were not published, by reason."""
        return self.session.dropped

    @property
    def recent(self) -> dict[str, Recent]:
        """Per cluster, the state of the correlation."""
        return self.session.recent

    def load(self, owned: Iterable[int], committed: Mapping[int, int | None]) -> None:
        """These partitions are ours now; ``committed``: where the events topic is resumed in each."""
        partitions = sorted(owned)
        self.index.load(partitions)
        self._load_coverage(partitions)
        self.arrival.expected.clear()
        for partition in partitions:
            self.arrival.resume(partition, committed.get(partition))
        for row in self.tables.ends.values():
            if row.partition in self.coverage and (row.cluster, row.topic) not in self.ends:
                history = self._row("ends", partial(EndHistory.from_row, row.history))
                if history is not None:
                    self.ends[row.cluster, row.topic] = history
        known = {key for entries in self.index.partitions.values() for key in entries}
        self.set_aside = {key: why for key, why in self.set_aside.items() if key in known}
        self.session.retain(known)
        self.published.clear()  # what was put and not committed was not published: `adopt` knows what was
        for cluster in self.settings.clusters:
            self._sampled_at.setdefault(cluster, self.now)
        self.live.keep(set(partitions))
        log.info("looking after partitions %s with %d groups", partitions, self.group_count)

    def _load_coverage(self, partitions: Iterable[int]) -> None:
        """What is known of retained partitions stands, and is written anew: rows that were not committed are dropped."""
        self.session.recent.clear()
        self._recent_at.clear()
        before, self.coverage = self.coverage, {}
        for partition in partitions:
            row = self._coverage(partition)
            self.coverage[partition] = before.get(partition, row)
        for partition in before.keys() & self.coverage.keys():
            self._keep_coverage(partition)

    def _coverage(self, partition: int) -> Coverage:
        row = self.tables.coverage.get(str(partition))
        found = None if row is None else self._row("coverage", partial(_coverage, row.state))
        if found is None:
            return Coverage()
        coverage, common = found
        for cluster, (at, recent) in common.items():
            if at > self._recent_at.get(cluster, 0):
                self._recent_at[cluster], self.recent[cluster] = at, recent
        return coverage

    def _row(self, table: str, build: Callable[[], Built]) -> Built | None:
        """What a row says; None, counted and logged, where it cannot be read."""
        try:
            return checked(build)
        except Refused as error:
            self.index.refused[table, error.reason] += 1
            log.warning("a row of table %s cannot be read and is left out: %s", table, error)
            return None

    @property
    def group_count(self) -> int:
        return sum(len(entries) for entries in self.index.partitions.values())

    def take(self, partition: int, offset: int, value: bytes | None, arrived: int | None = None) -> None:
        """One message of the events topic, which its broker got at ``arrived`` (ms) if that is known; it may hold many events.

        Raises Refused, once the rest is applied, for what is not let in, wholly or in part: it goes to the dead letters.
        """
        coverage = self.coverage.setdefault(partition, Coverage())
        if self.arrival.lost(partition, offset):
            log.warning(
                "events of partition %d before offset %d are gone: blind until a replay", partition, offset
            )
            coverage.lose()
            self._keep_coverage(partition)
        now = self.now if arrived is None else arrived
        refused = [
            error
            for message in admission.decode_all(value or b"")
            if (error := self._taken(partition, coverage, message, now)) is not None
        ]
        if refused:
            raise refused[0]

    def _taken(
        self, partition: int, coverage: Coverage, message: GroupEvent | Beat | Refused | None, now: int
    ) -> Refused | None:
        """Apply one event or progress record; the reason if it is not let in, wholly or in part."""
        self.counts["events"] += 1
        if message is None or isinstance(message, Refused):
            return message
        if message.cluster not in self.settings.clusters:
            return Refused("unknown_cluster", f"the settings have no cluster {message.cluster!r}")
        mended = _mended(message, now)
        try:
            if isinstance(mended, Beat):
                self._beat(partition, coverage, mended)
            elif self._wanted(partition, mended):
                self._event(partition, mended)
        except Refused as error:
            return error
        if mended is message:
            return None
        return Refused(
            "time_ahead", "a time lies ahead of the broker's clock: it was taken as of its arrival"
        )

    def _event(self, partition: int, event: GroupEvent) -> None:
        self.set_aside.pop(group_key(event.cluster, event.group), None)
        names = self.names.setdefault(event.cluster, {})
        for o in event.offsets:
            if o.topic_id:
                names.setdefault(
                    o.topic_id, o.topic
                )  # the sampler's word on a topic's id stands above an event's
        self._clocked(self.index.take(partition, event), event)

    def _clocked(self, entry: Entry, event: GroupEvent) -> None:
        now = self.now
        if event.offsets:
            newest = max((max(o.time) for o in event.offsets if len(o.time)), default=now)
            self.delays.add("event", now - int(newest))
        if entry.unjudged_since is None:
            entry.unjudged_since = now

    def _beat(self, partition: int, coverage: Coverage, beat: Beat) -> None:
        changed = [coverage.progress(progress) for progress in beat.each()]
        if any(changed):
            self._keep_coverage(partition)

    def _keep_coverage(self, partition: int) -> None:
        common = {cluster: [self.now, recent.to_row()] for cluster, recent in self.recent.items()}
        coverage = self.coverage.setdefault(partition, Coverage())
        row = coverage_table.CoverageRow(partition=partition, state={**coverage.to_row(), "common": common})
        self.tables.coverage[str(partition)] = row

    def _wanted(self, partition: int, event: GroupEvent) -> bool:
        """Whether there is room for the group; known ones always have."""
        known = group_key(event.cluster, event.group) in self.index.entries(partition)
        if known or self.group_count < self.settings.worker.max_groups:
            return True
        self.counts["groups_over_limit"] += 1
        return False

    def topics(self, cluster: str) -> tuple[set[str], bool]:
        """The topics of this cluster whose log ends are needed, and whether some topic id has no name yet."""
        names = self.names.get(cluster, {})
        wanted: set[str] = set()
        unresolved = False
        for entries in self.index.partitions.values():
            for entry in entries.values():
                if entry.cluster == cluster and not self.policies(entry.group).ignore:
                    wanted |= entry.topics(names)
                    unresolved |= entry.roster(names).unresolved
        return wanted, unresolved

    def muted(self, key: str, record: bytes | None) -> None:
        """A record of the mutes topic; a tombstone takes the mute back.

        Raises Refused for what cannot be read: it mutes nobody.
        """
        if record is None:
            self.mutes.pop(key, None)
            self.mute_patterns.pop(key, None)
            return
        said = admission.mute(record)
        self.mutes[key] = Mute(said.until, said.why, said.by)
        self._mute_pattern(key, record)

    def _mute_pattern(self, key: str, record: bytes) -> None:
        """A pattern is kept apart: it holds for groups that came after it was set."""
        if is_pattern(key.partition("/")[2]):
            self.mute_patterns[key] = mute_from_bytes(record)

    def mute_of(self, entry: Entry, now: int) -> Mute | None:
        """The mute of a group: its own while it holds, else a pattern's."""
        own = self.mutes.get(entry.key)
        if (own is not None and now < own.until) or not self.mute_patterns:
            return own
        found = by_pattern(self.mute_patterns, entry.cluster, entry.group, now)
        return own if found is None else Mute(found.until, found.why, found.by)

    def sampled(
        self, cluster: str, samples: Iterable[Any], names: Mapping[str, str], infos: Mapping[str, TopicInfo]
    ) -> None:
        """Take the sampler's answers in."""
        self._sampled_at[cluster] = self.now
        self.names.setdefault(cluster, {}).update(names)
        self.infos[cluster] = dict(infos)
        for s in samples:
            try:
                checked(lambda s=s: self._sampled(cluster, s))  # type: ignore[misc]
            except Refused as error:
                self.refused["sample", error.reason] += 1
                log.warning("the log ends of %r are left out: %s", s.topic, error)

    def _sampled(self, cluster: str, s: Any) -> None:
        history = self.ends.setdefault((cluster, s.topic), EndHistory(len(s.end), s.topic_id))
        history.add(s.asked, s.seen, s.start, s.end, s.stable, s.topic_id)

    def adopt(self, partition: int, published: Mapping[str, Any]) -> None:
        """What the recommendations topic says of this partition's groups, where the rows know less."""
        for key, message in published.items():
            if isinstance(message, Recommendation):
                self.revisions[key] = max(message.revision, self.revisions.get(key, 0))
        for key, entry in self.index.entries(partition).items():
            message = published.get(key)
            if not isinstance(message, Recommendation):
                continue
            try:
                self._adopt(partition, entry, message)
            except Exception as error:  # one message's surprise must not keep the others from being adopted
                self.refused["recommendation", "not_adopted"] += 1
                log.warning("what is published of %r cannot be taken back: %s", key, error)

    def _adopt(self, partition: int, entry: Entry, message: Recommendation) -> None:
        self.published[entry.key] = message
        state = adopt(entry.judged, message)
        if state is not entry.judged and state is not None:
            self.index.judged(partition, entry, state)

    def without_commits(self) -> list[tuple[int, Entry]]:
        """The groups a lag row of which could not be read, with their partitions: ask their coordinators."""
        return [
            (partition, entry)
            for partition, entries in self.index.partitions.items()
            for entry in entries.values()
            if "lag" in entry.unreadable
        ]

    def rebuilt(self, partition: int, entry: Entry, committed: Mapping[tuple[str, int], int]) -> None:
        """The coordinator's committed offsets in place of a row that could not be read.

        When they were committed is not known: now. Any record of the source is newer than source offset -1.
        """
        topics: dict[str, list[tuple[int, int]]] = {}
        for (topic, number), offset in sorted(committed.items()):
            topics.setdefault(topic, []).append((number, offset))
        offsets = [
            TopicOffsets(
                topic,
                None,
                [n for n, _ in rows],
                [o for _, o in rows],
                [self.now] * len(rows),
                [-1] * len(rows),
            )
            for topic, rows in topics.items()
        ]
        self.index.take(partition, GroupEvent(entry.cluster, entry.group, entry.source, self.now, offsets))
        entry.unreadable.discard("lag")

    def _unsampled(self, cluster: str) -> str | None:
        """Why lags of this cluster's groups are unknown, if its log ends can not be read."""
        age = self.now - self._sampled_at.get(cluster, self.now)
        if age <= self._blind_after:
            return None
        return f"the log ends of the cluster were last read {age / 1000:.0f} s ago"

    def sampling_took(self, cluster: str, took_s: float) -> None:
        """Note how long a sample of the cluster's log ends took; say when that becomes too long, and when no longer."""
        was, self.sampling_s[cluster] = self._slow_sampling(cluster), took_s
        now = self._slow_sampling(cluster)
        if now and not was:
            log.warning("%s: %s.", cluster, now)
        if was and not now:
            log.info("%s: the log ends are sampled in time again.", cluster)

    def _slow_sampling(self, cluster: str) -> str | None:
        """Why lags are older than they should be, if sampling takes longer than its interval."""
        took_s, interval_s = self.sampling_s.get(cluster, 0.0), self.settings.worker.sample
        if took_s <= interval_s:
            return None
        return (
            f"a sample of the log ends takes {took_s:.0f} s, worker.sample is {interval_s:g} s: lags are that much older; "
            "raise worker.sample, or give the worker and the brokers more processor time"
        )

    async def tick(self, partition: int, at: int) -> list[Summary]:
        """Judge this partition's groups as of the tick's time; publish what is to be said. Writes rows."""
        summaries = {c: self._summary(partition, c) for c in self._clusters(partition)}
        counts: Counter[tuple[str, str]] = Counter()
        candidates: list[tuple[Entry, Candidate]] = []
        for entry in list(self.index.entries(partition).values()):
            found = await self._judge(partition, entry, at, counts)
            if found is not None:
                candidates.append((entry, found))
        self._correlate(partition, candidates, at)
        for entry, candidate in candidates:
            try:
                await self._confirm(partition, entry, candidate, at)
            except (KafkaError, ClientError, TimeoutError):
                raise
            except Exception as error:
                self.aside(entry, error)
        self._close_gone(partition, at)
        self._keep_ends(partition, at)
        self._retire(partition, at)
        for key in self.index.forget(partition, at, self.published):
            self.session.forget(key)
            self.set_aside.pop(key, None)
            self.counts["forgotten"] += 1
        self.last_tick = self.clock()
        opened = Counter(
            e.cluster for e in self.index.entries(partition).values() if e.judged and e.judged.incident
        )
        told = [
            replace(
                summary,
                judged=counts[cluster, "judged"] + counts[cluster, "learning"] + counts[cluster, "muted"],
                blind=counts[cluster, "blind"],
                ignored=counts[cluster, "ignored"],
                learning=counts[cluster, "learning"],
                learning_until=counts[cluster, "learning_until"] or None,
                muted=counts[cluster, "muted"],
                muted_until=counts[cluster, "muted_until"] or None,
                blind_reason=self.live.blind_reason(partition, cluster) if counts[cluster, "blind"] else None,
                set_aside=counts[cluster, "set_aside"],
                set_aside_reason=self._why_aside(partition, cluster),
                open=opened[cluster],
            )
            for cluster, summary in summaries.items()
        ]
        self.live.ticked(partition, told, self.index.entries(partition))
        return told

    def _correlate(self, partition: int, candidates: list[tuple[Entry, Candidate]], at: int) -> None:
        """Publish what many groups have in common; each group's own candidate stands beside it."""
        for cluster in self._clusters(partition):
            mine = [c for e, c in candidates if e.cluster == cluster]
            before = self.recent.get(cluster, Recent())
            if not mine and before == Recent():
                continue
            found = self.session.correlate(cluster, mine, self._population(cluster), at)
            try:
                for message in found.messages:
                    key = group_key(cluster, message.group)
                    self.publish(partition, key, to_bytes(self._numbered(key, message)), None)
            except BaseException:  # not published, so not to be remembered as published
                self.session.recent[cluster] = before
                raise
            if found.recent != before:
                self._keep_coverage(partition)

    def _population(self, cluster: str) -> Population:
        """How many of this worker's groups read each topic and from each broker."""
        topics: Counter[str] = Counter()
        brokers: Counter[int] = Counter()
        infos, count = self.infos.get(cluster, {}), 0
        for entries in self.index.partitions.values():
            for entry in entries.values():
                if entry.cluster == cluster:
                    count += 1
                    topics.update(entry.commits.keys())
                    brokers.update({b for t in entry.commits if t in infos for b in infos[t].leaders})
        return Population(count, topics, brokers)

    def _clusters(self, partition: int) -> set[str]:
        heard = self.coverage.get(partition, Coverage()).clusters()
        return (
            heard | {e.cluster for e in self.index.entries(partition).values()} | set(self.settings.clusters)
        )

    def _summary(self, partition: int, cluster: str) -> Summary:
        coverage, now = self.coverage.get(partition, Coverage()), self.now
        status, reason = coverage.status(cluster, now)
        if not any(c == cluster for c, _ in coverage.sources):
            status, reason = (
                "blind",
                "no progress of the pipeline has come yet: is `kagent pipeline` running?",
            )
        unsampled = self._unsampled(cluster)
        if unsampled is not None and status != "blind":
            status, reason = "blind", unsampled
        reason = reason or self._slow_sampling(cluster)
        return Summary(cluster, partition, self.worker, now, status, reason, coverage.oldest(cluster))

    async def _judge(
        self, partition: int, entry: Entry, at: int, counts: Counter[tuple[str, str]]
    ) -> Candidate | None:
        """Judge one group; one that makes the judgement raise is set aside alone."""
        try:
            return await self._judge_one(partition, entry, at, counts)
        except (KafkaError, ClientError, TimeoutError):
            raise  # the broker's trouble, not the group's
        except Exception as error:
            self.aside(entry, error)
            counts[entry.cluster, "blind"] += 1
            counts[entry.cluster, "set_aside"] += 1
            return None

    def aside(self, entry: Entry, error: Exception) -> None:
        """Judge this group no more until its data changes, and say why."""
        if entry.key not in self.set_aside:
            log.error("the group %r is set aside until its data changes", entry.key, exc_info=error)
            self.counts["judgements_failed"] += 1
        self.set_aside[entry.key] = f"its judgement failed ({type(error).__name__}: {error})"[:500]

    def _why_aside(self, partition: int, cluster: str) -> str | None:
        """One of the partition's groups that are set aside, and why."""
        for key, entry in self.index.entries(partition).items():
            if entry.cluster == cluster and key in self.set_aside:
                return f"{shown(entry.group)}: {self.set_aside[key]}"
        return None

    def _can_be_judged(self, entry: Entry) -> bool:
        if "members" in entry.unreadable:
            self.set_aside[entry.key] = (
                "its row of members could not be read: until it rebalances, or a replay"
            )
        self._limit_partitions(entry)
        return entry.key not in self.set_aside

    def _limit_partitions(self, entry: Entry) -> None:
        """Set a group aside while it has more partitions than one group may have."""
        limit, count = (
            self.settings.worker.max_partitions_per_group,
            sum(len(c.partition) for c in entry.commits.values()),
        )
        if count > limit:
            self.set_aside[entry.key] = (
                f"it has {count} partitions, and worker.max_partitions_per_group is {limit}"
            )

    def _judged(self, seen: Observation, entry: Entry) -> Judgement:
        """The judgement; where what is remembered of the group is in its way, with what the topic says instead."""
        try:
            return self.session.judge(seen)
        except Exception:
            if entry.judged is None:
                raise
            remembered, message = entry.judged, self.published.get(entry.key)
            entry.judged = adopt(None, message) if message else None
            try:
                found = self.session.judge(seen)
            except Exception:
                entry.judged = remembered
                raise
            log.warning(
                "what was remembered of %r could not be used and is left out", entry.key, exc_info=True
            )
            self.refused["memory", "not_judged"] += 1
            return found

    async def _judge_one(
        self, partition: int, entry: Entry, at: int, counts: Counter[tuple[str, str]]
    ) -> Candidate | None:
        policy = self.policies(entry.group)
        if policy.ignore:
            counts[entry.cluster, "ignored"] += 1
            return None
        if not self._can_be_judged(entry):
            counts[entry.cluster, "blind"] += 1
            counts[entry.cluster, "set_aside"] += 1
            return None
        seen = self.observe(partition, entry, at)
        found = self._judged(seen, entry)
        self._count_state(entry, seen, found, counts)
        if entry.unjudged_since is not None:
            self.delays.add("verdict", self.now - entry.unjudged_since)
            entry.unjudged_since = None
        self._say_and_keep(partition, entry, found)
        quiet, said = found.model is None and seen.blind is None, self.published.get(entry.key)
        self.live.judged(partition, entry.key, at, quiet, lambda: glance(seen, found, policy), said)
        return found.candidate

    def _count_state(
        self, entry: Entry, seen: Observation, found: Judgement, counts: Counter[tuple[str, str]]
    ) -> None:
        """Count the group in its one state, for the state message."""
        cluster, first_seen = entry.cluster, entry.judged.first_seen if entry.judged else seen.now
        state = group_state(
            ignored=False,
            blind=seen.blind is not None or found.suppressed_by == "unwatched",
            muted=seen.muted,
            first_seen_ms=first_seen,
            now_ms=seen.now,
        )
        counts[cluster, state] += 1
        ends = {
            GroupState.LEARNING: learned_by_ms(first_seen),
            GroupState.MUTED: seen.mute.until if seen.mute else 0,
        }
        if state in ends:
            counts[cluster, f"{state}_until"] = max(ends[state], counts[cluster, f"{state}_until"])

    def observe(self, partition: int, entry: Entry, at: int) -> Observation:
        """All that a judgement of this group rests on now."""
        names = self.names.get(entry.cluster, {})
        coverage = self.coverage.get(partition, Coverage())
        topics, now = entry.topics(names), self.now
        ends = {t: self.ends[entry.cluster, t] for t in topics if (entry.cluster, t) in self.ends}
        blind = coverage.why_blind(entry.cluster, entry.source, now) or self._unsampled(entry.cluster)
        return Observation(
            cluster=entry.cluster,
            group=entry.group,
            now=at,
            roster=entry.roster(names),
            commits=entry.commits,
            ends=ends,
            topics=self.infos.get(entry.cluster, {}),
            as_of=coverage.as_of(entry.cluster, entry.source),
            blind=blind or unread(entry.commits, ends, self._blind_after, now),
            mute=self.mute_of(entry, at),
            patience=self._patience,
            tool_options=self._tool_options.get(entry.cluster, UNKNOWN_CLUSTER),
        )

    async def _confirm(self, partition: int, entry: Entry, candidate: Candidate, at: int) -> None:
        """Ask the coordinator; publish only what still holds."""
        try:
            answer = await self.fresh(entry)
        except (KafkaError, TimeoutError) as error:
            log.warning("a finding about %r is held back: %s", entry.key, error)
            answer = None
        seen = self.observe(partition, entry, at)
        storm = candidate.verdict == Verdict.UNSTABLE  # that it is not stable is what is to be said
        reason = "unconfirmed" if answer is None else None if storm else contradiction(answer, seen)
        fresh = reason or "unconfirmed" if answer is None or reason else refreshed(seen, answer)
        self._say_and_keep(partition, entry, self.session.confirm(candidate, fresh))

    def _say_and_keep(self, partition: int, entry: Entry, found: Judgement) -> None:
        """Publish, then write the row, without an await between them: a row never says more than the topic."""
        try:
            self._say(partition, entry, found.messages)
        except BaseException:
            self.states.drop(entry.key)
            raise
        self.states.write(entry.key)

    def _say(self, partition: int, entry: Entry, messages: Iterable[Recommendation]) -> None:
        for made in messages:
            message, began = self._numbered(entry.key, self.redaction.checked(made)), self.now
            delivered = partial(self._delivered, began, message.as_of)
            self.publish(partition, entry.key, to_bytes(message), delivered)
            self.published[entry.key] = message
            self.live.said(partition, entry.key, message)
            self.counts[f"said_{message.status.value}"] += 1
            log.info("%s %s: %s", message.status.value, entry.key, message.reason)

    def _numbered(self, key: str, message: Recommendation) -> Recommendation:
        self.revisions[key] = self.revisions.get(key, 0) + 1
        return message.model_copy(update={"revision": self.revisions[key]})

    def _delivered(self, began: int, as_of: int) -> None:
        self.delays.add("publish", self.now - began)
        self.delays.add("whole", self.now - as_of)

    def _keep_ends(self, partition: int, at: int) -> None:
        """Write the histories of the log ends, coarse, once a minute."""
        if at - self._ends_kept.get(partition, 0) < KEEP_ENDS_EVERY_MS:
            return
        self._ends_kept[partition] = at
        wanted = {
            (e.cluster, t)
            for e in self.index.entries(partition).values()
            for t in e.topics(self.names.get(e.cluster, {}))
        }
        for cluster, topic in wanted:
            history = self.ends.get((cluster, topic))
            if history is not None and history.samples:
                self.tables.ends[ends_table.key(partition, cluster, topic)] = ends_table.EndsRow(
                    cluster=cluster, topic=topic, partition=partition, history=history.to_row()
                )

    def _close_gone(self, partition: int, at: int) -> None:
        """Close the incident of a group of which nothing is left: every open has its close."""
        for entry in self.index.entries(partition).values():
            if entry.gone and entry.judged is not None and entry.judged.incident is not None:
                state, message = expired(entry.judged, at)
                self._say(partition, entry, [message] if message is not None else [])
                self.index.judged(partition, entry, state)

    def _retire(self, partition: int, at: int) -> None:
        """Take resolved recommendations off the topic when they are old."""
        limit = at - int(self.settings.worker.keep_resolved_hours * 3_600_000)
        for key in list(self.index.entries(partition)):
            message = self.published.get(key)
            if message is not None and message.status is Status.RESOLVED and message.as_of < limit:
                self.publish(partition, key, None, None)
                del self.published[key]
                self.revisions.pop(key, None)

    def summarised(self, summary: Summary) -> None:
        """A summary of a worker, ours or another's; only the owner of partition 0 hears them."""
        self.summaries[summary.cluster, summary.partition] = summary

    def state(self, cluster: str) -> State:
        """What is to be told of a cluster now."""
        summaries = self.summaries.values()
        return state_message(
            cluster, summaries, self.settings.topics.partitions, self.now, self.settings.worker.tick
        )

    def judged_state(self, key: str) -> JudgeState | None:
        """What is remembered of a group, if it is ours."""
        for entries in self.index.partitions.values():
            if key in entries:
                return entries[key].judged
        return None


def _coverage(state: Mapping[str, Any]) -> tuple[Coverage, dict[str, tuple[int, Recent]]]:
    common = {
        cluster: (int(at), Recent.from_row(recent))
        for cluster, (at, recent) in state.get("common", {}).items()
    }
    return Coverage.from_row(state), common


def _mended(message: GroupEvent | Beat, now: int) -> GroupEvent | Beat:
    """The message, no time of it ahead of the broker's clock; the same object if none was."""
    if _newest(message) <= now + MAX_AHEAD_MS:
        return message
    if isinstance(message, Beat):
        return replace(message, time=now)
    offsets = [replace(o, time=not_ahead(o.time, now)) for o in message.offsets]
    records = [replace(r, time=not_ahead([r.time], now)[0]) for r in message.records]
    return replace(message, time=min(message.time, now), offsets=offsets, records=records)


def _newest(message: GroupEvent | Beat) -> int:
    if isinstance(message, Beat):
        return message.time
    columns = (max(o.time, default=0) for o in message.offsets)
    return max((message.time, *columns, *(r.time for r in message.records)))


async def in_thread(call: Callable[..., Any], *args: Any, limit: float = 30.0) -> Any:
    """A blocking call in a thread, with a deadline. Raises TimeoutError."""
    async with asyncio.timeout(limit):
        return await asyncio.to_thread(call, *args)
