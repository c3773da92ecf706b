"""Captures groups from a live cluster: what ``__consumer_offsets`` holds of them, then what comes, and the log ends beside it.

The topic is compacted, so a group's membership may be older than any new record. The capture therefore begins with the last
record of each of the groups' keys, all with the time at which the live part begins.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event

from confluent_kafka import Consumer, Message

from kagent.capture.folder import EndsSample, RawRecord
from kagent.capture.folder_writer import FolderWriter
from kagent.errors import KafkaError
from kagent.groups import KnownRecords, apply, view
from kagent.kafka.admin import Admin
from kagent.kafka.offsets_topic import partitions, polled, reader
from kagent.lag.observation import TopicInfo
from kagent.offsets import DecodeError, decode
from kagent.text import counted
from kagent.worker.log_end_sampler import LogEndSample, Sampler

POLL_S = 0.2
REPORT_EVERY_S = 10.0
KEY_PREFIX = struct.Struct(">hh")
"""Every key begins with its record type and the length of the group's name, which follows."""

Report = Callable[[str], None]


@dataclass(slots=True)
class CapturedGroups:
    """The captured groups, by what their records say: which topics their log ends are needed of."""

    wanted: Callable[[str], bool]
    names: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    states: dict[str, KnownRecords | None] = field(default_factory=dict)
    _wanted: dict[bytes, bool] = field(default_factory=dict)

    def holds(self, key: bytes | None) -> bool:
        """Whether a record with this key belongs to a wanted group."""
        name = _group_bytes(key or b"")
        if name is None:
            return False
        # Cached by raw bytes: patterns are matched once a group, not for each of its records.
        known = self._wanted.get(name)
        if known is None:
            text = name.decode(errors="replace")
            known = self._wanted[name] = self.wanted(text)
            if known:
                self.names.add(text)
        return known

    def take(self, record: RawRecord) -> None:
        """Learn the topics that a record names."""
        try:
            decoded = decode(record.key, record.value)
        except DecodeError:
            return  # kept in the capture as it is: a newer kagent may read it
        if "topic" in decoded.key:
            self.committed.add(decoded.key["topic"])
        else:
            state = self.states.get(decoded.group)
            self.states[decoded.group] = apply(state, decoded, record.offset, record.written_ms)

    def topics(self, topic_names: dict[str, str]) -> tuple[set[str], bool]:
        """The topics that the groups commit to, read or hold, and whether a topic id has no name yet."""
        views = [view(state, topic_names, group) for group, state in self.states.items()]
        members = [member for group in views for member in group.members]
        subscribed = {topic for m in members for topic in (*m.subscriptions, *m.assigned)}
        return self.committed | subscribed, any(group.unresolved for group in views)


def _group_bytes(key: bytes) -> bytes | None:
    if len(key) < KEY_PREFIX.size:
        return None
    _, length = KEY_PREFIX.unpack_from(key)
    name = key[KEY_PREFIX.size : KEY_PREFIX.size + length]
    return name if length >= 0 and len(name) == length else None


@dataclass(slots=True)
class Recorder:
    """One capture. ``duration_s``: of the live part; ``stop``: ends it early. ``failures``: samples that could not be had."""

    admin: Admin
    groups: CapturedGroups
    folder: FolderWriter
    duration_s: float
    stop: Event
    report: Report
    sample_every_s: float = 5.0
    failures: int = 0
    live_s: float = 0.0
    _sampler: Sampler = field(init=False)
    _pending: Future[list[LogEndSample]] | None = None
    _next_sample: float = 0.0
    _next_report: float = 0.0

    def __post_init__(self) -> None:
        self._sampler = Sampler(self.admin)

    def run(self) -> None:
        """Read what the topic holds, then capture until the time is over or ``stop`` is set. Raises KafkaError."""
        count = partitions(self.admin)
        # librdkafka then reports the end of each partition, which tells when all that the topic held has been read.
        options = {"enable.partition.eof": True}
        with (
            # One thread: samples must not overtake each other, and librdkafka's admin client is shared.
            ThreadPoolExecutor(1) as threads,
            reader(self.admin.cluster, count, True, **options) as consumer,
        ):
            held = self._held(consumer, count)
            if not self.stop.is_set():
                # All at one time: a replay must know them from its first tick on, whenever they were written.
                self._write(replace(record, read_ms=_now_ms()) for record in held)
                self._live(consumer, threads)

    def _held(self, consumer: Consumer, count: int) -> list[RawRecord]:
        """The last record of each key of the groups, in the order of the log."""
        latest: dict[bytes | None, RawRecord] = {}
        ended: set[int] = set()
        read = 0
        while len(ended) < count and not self.stop.is_set():
            for message in polled(consumer, POLL_S, ended):
                read += 1
                if self.groups.holds(message.key()):
                    # By key, as compaction would: the topic may hold thousands of older commits of each partition.
                    latest[message.key()] = _raw(message)
            self._tell(
                f"reading what the topic holds: {len(ended)} of {counted(count, 'partition')}, {counted(read, 'record')}"
            )
        return sorted(latest.values(), key=lambda record: (record.partition, record.offset))

    def _live(self, consumer: Consumer, threads: ThreadPoolExecutor) -> None:
        began = time.monotonic()
        self._next_report = began
        while self.live_s < self.duration_s and not self.stop.is_set():
            self._sample(threads)
            messages = polled(consumer, POLL_S)
            self._write(_raw(message) for message in messages if self.groups.holds(message.key()))
            if self._tell(
                f"{self.live_s:.0f} of {self.duration_s:.0f} s: {counted(len(self.groups.names), 'group')}, "
                f"{counted(self.folder.records, 'record')}, {counted(self.folder.samples, 'sample')} of the log ends"
            ):
                self.folder.flush()
            self.live_s = time.monotonic() - began
        if self._pending is not None:
            self._take_sample(self._pending)

    def _write(self, records: Iterable[RawRecord]) -> None:
        for record in records:
            self.groups.take(record)
            self.folder.record(record)

    def _sample(self, threads: ThreadPoolExecutor) -> None:
        """Ask for the log ends beside the reading: an answer that takes long must not delay a record's time."""
        if self._pending is not None and self._pending.done():
            self._take_sample(self._pending)
            self._pending = None
        if self._pending is None and time.monotonic() >= self._next_sample:
            # Monotonic: a step of the wall clock must neither stop the samples nor bring them all at once.
            self._next_sample = time.monotonic() + self.sample_every_s
            self._pending = threads.submit(self._ask, *self.groups.topics(self._sampler.names()))

    def _ask(self, topics: set[str], unresolved: bool) -> list[LogEndSample]:
        self._sampler.describe(topics, unresolved)
        return self._sampler.sample(topics)

    def _take_sample(self, answer: Future[list[LogEndSample]]) -> None:
        try:
            samples = answer.result()
        except KafkaError as error:
            self.failures += 1
            self.report(f"The log ends could not be read: {error}")
            return
        if samples:
            infos = self._sampler.infos()
            topics: dict[str, TopicInfo] = {s.topic: infos[s.topic] for s in samples if s.topic in infos}
            self.folder.sample(_ends(samples), topics)

    def _tell(self, progress: str) -> bool:
        """Report the progress if it is time to."""
        now = time.monotonic()
        if now < self._next_report:
            return False
        self._next_report = now + REPORT_EVERY_S
        self.report(progress)
        return True


def _raw(message: Message) -> RawRecord:
    place = (message.partition() or 0, message.offset() or 0, message.timestamp()[1], _now_ms())
    return RawRecord(*place, message.key(), message.value())


def _ends(samples: list[LogEndSample]) -> EndsSample:
    return EndsSample(
        min(sample.asked for sample in samples),
        max(sample.seen for sample in samples),
        {sample.topic: sample.start.tolist() for sample in samples},
        {sample.topic: sample.end.tolist() for sample in samples},
        {sample.topic: sample.stable.tolist() for sample in samples},
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
