"""A broker of these tests' own, one Spark session for all of them, and what they ask of both."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.events import Beat, GroupEvent, decode
from kagent.kafka.admin import Admin
from kagent.kafka.broker import Broker
from kagent.pipeline.run import Pipeline
from kagent.settings import Cluster, PipelineSettings, Settings, Topics

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark for all: its start takes as long as ten tests."""
    from kagent.pipeline.session import session

    running = session(PipelineSettings(master="local[2]"), delta=True)
    yield running
    running.stop()


@dataclass(slots=True)
class Kafka:
    """The broker, and the few things that tests do to it."""

    broker: Broker
    admin: AdminClient = field(init=False)
    asked: Admin = field(init=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        self.asked = Admin(Cluster(bootstrap=self.broker.bootstrap))

    def topic(self, name: str, partitions: int = 4) -> str:
        """A new topic of this name and a number."""
        whole = f"{name}-{next(numbers)}"
        self.admin.create_topics([NewTopic(whole, partitions, 1)])[whole].result(20)
        return whole

    def fill(self, topic: str, each: int, partitions: int = 4) -> None:
        """So many records into each partition."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for n in range(each * partitions):
            producer.produce(topic, b"x", partition=n % partitions)
        assert producer.flush(20) == 0

    def consumer(self, group: str, **more: Any) -> Consumer:
        """A consumer that commits when told."""
        config = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        return Consumer({**config, **more})

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Commit these offsets as a group without members."""
        consumer = self.consumer(group)
        consumer.commit(offsets=[TopicPartition(topic, p, o) for p, o in offsets.items()], asynchronous=False)
        consumer.close()

    def read(self, topic: str) -> list[Any]:
        """All records of a topic that is there now."""
        reader = self.consumer(f"reader-{next(numbers)}", **{"enable.partition.eof": True})
        partitions = self.asked.topic_names()[topic]
        reader.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        found, at_end = [], 0
        while at_end < partitions:
            message = reader.poll(10)
            assert message is not None, f"{topic} could not be read to its end"
            if message.error() is None:
                found.append(message)
            else:
                at_end += 1
        reader.close()
        return found


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker whose offsets topic holds what these tests wrote, and nothing else."""
    with Broker(tmp_path_factory.mktemp("pipeline-broker")) as running:
        made = Kafka(running)
        made.commit("first", made.topic("seed"), {0: 0})  # so that __consumer_offsets exists
        yield made


@dataclass(slots=True)
class Runs:
    """Runs of the pipeline with topics and checkpoint of their own."""

    spark: Any
    kafka: Kafka
    folder: Path
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        self.settings = Settings(
            clusters={"main": Cluster(bootstrap=self.kafka.broker.bootstrap)},
            topics=Topics(prefix=f"kagent{next(numbers)}-", partitions=3),
            pipeline=PipelineSettings(checkpoint=str(self.folder / "checkpoint")),
        )

    def pipeline(self, **options: Any) -> Pipeline:
        name, cluster = self.settings.cluster()
        return Pipeline(self.settings, name, cluster, **options)

    def catch_up(self, **options: Any) -> None:
        """Catch up and stop."""
        pipeline = self.pipeline(**({"available_now": True} | options))
        source = pipeline.prepared()
        assert source is not None
        pipeline.run_on(self.spark, source)

    def messages(self) -> list[tuple[str, GroupEvent | Beat]]:
        """Key and content of all that is in the events topic."""
        found = self.kafka.read(self.settings.topics.events)
        return [(m.key().decode(), made) for m in found if (made := decode(m.value())) is not None]

    def events(self) -> list[tuple[str, GroupEvent]]:
        return [(key, m) for key, m in self.messages() if isinstance(m, GroupEvent)]

    def beats(self) -> list[Beat]:
        return [m for _, m in self.messages() if isinstance(m, Beat)]

    def committed(self) -> dict[str, dict[tuple[str, int], int]]:
        """Group → (topic, partition) → offset, as the events tell; the newer source offset wins."""
        rows: dict[tuple[str, str, int], tuple[int, int | None]] = {}
        for _, event in self.events():
            for o in event.offsets:
                for p, offset, at in zip(o.partition, o.committed, o.source_offset, strict=True):
                    rows[event.group, o.topic, p] = max(
                        rows.get((event.group, o.topic, p), (-1, None)), (at, offset)
                    )
            for t in event.tombstones:
                for p, at in zip(t.partition, t.source_offset, strict=True):
                    if at >= rows.get((event.group, t.topic, p), (-1, None))[0]:
                        rows[event.group, t.topic, p] = (at, None)
        found: dict[str, dict[tuple[str, int], int]] = {}
        for (group, topic, partition), (_, offset) in rows.items():
            if offset is not None:
                found.setdefault(group, {})[topic, partition] = offset
        return found


@pytest.fixture
def runs(spark: Any, kafka: Kafka, tmp_path: Path) -> Callable[[], Runs]:
    """Makes pipelines of this test's own."""
    return lambda: Runs(spark, kafka, tmp_path / str(next(numbers)))


class Reader:
    """Reads the events topic as it grows: the newest commit of each group on topic ``t``."""

    def __init__(self, bootstrap: str, topic: str = "kagent-group-events", partitions: int = 8) -> None:
        self._reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
        self._reader.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        self.found: dict[str, int] = {}
        self._seen: set[tuple[str, int]] = set()
        self.duplicates = 0

    def until(self, holds: Callable[[dict[str, int]], bool], within: float = 90) -> None:
        """Read on until it holds."""
        end = time.monotonic() + within
        while not holds(self.found):
            assert time.monotonic() < end, self.found
            message = self._reader.poll(0.5)
            if message is None or message.error():
                continue
            event = decode(message.value())
            if isinstance(event, GroupEvent):
                self._take(event)

    def _take(self, event: GroupEvent) -> None:
        for o in event.offsets:
            key = (event.group, int(o.source_offset[-1]))
            self.duplicates += key in self._seen
            self._seen.add(key)
            self.found[event.group] = int(o.committed[-1])


@pytest.fixture
def kafka_reader() -> Callable[..., Reader]:
    """Makes readers of the events topic."""
    return Reader


@dataclass(slots=True)
class Past:
    """Raw records of a group with two members on four partitions, and the log ends beside them.

    ``slow`` reads a third of what comes in from ``onset`` seconds on; ``quick`` keeps up. Times in ms.
    """

    group: str = "orders"
    begin: int = 1_760_000_000_000
    seconds: int = 7200
    onset: int = 1800
    commit_every: int = 10
    inflow: int = 100
    slow: float = 1 / 3

    def records(self) -> list[dict[str, Any]]:
        """As they stood in ``__consumer_offsets``: key, value, partition, offset, timestamp (ms)."""
        raw = [(self.begin - 1000, *self.membership())]
        raw += [(self.begin, key, value) for key, value in self.commits(0)]
        for second in range(self.commit_every, self.seconds, self.commit_every):
            raw += [(self.begin + second * 1000, key, value) for key, value in self.commits(second)]
        return [
            {"key": key, "value": value, "partition": 1, "offset": n, "timestamp": time}
            for n, (time, key, value) in enumerate(raw)
        ]

    def ends(self) -> list[dict[str, Any]]:
        """The log ends every ten seconds, sampled a little after the commits."""
        return [
            {
                "topic": "t",
                "partition": p,
                "time": self.begin + s * 1000 + 300,
                "log_end": 1000 + self.inflow * s,
            }
            for s in range(0, self.seconds, 10)
            for p in range(4)
        ]

    def commits(self, second: int) -> Iterator[tuple[bytes, bytes]]:
        for partition in range(4):
            read = float(second)
            if partition < 2:
                read = min(second, self.onset) + self.slow * max(0, second - self.onset)
            key = struct.pack(">h", 1) + text(self.group) + text("t") + struct.pack(">i", partition)
            time_ms = self.begin + second * 1000
            value = (
                struct.pack(">hqi", 3, 1000 + int(self.inflow * read), -1)
                + text("")
                + struct.pack(">q", time_ms)
            )
            yield key, value

    def membership(self) -> tuple[bytes, bytes]:
        members = b"".join(
            text(f"{name}-id")
            + struct.pack(">h", -1)
            + text(name)
            + text("/10.0.0.1")
            + struct.pack(">ii", 60000, 45000)
            + sized(struct.pack(">hi", 0, 1) + text("t") + struct.pack(">i", -1))
            + sized(struct.pack(">hi", 0, 1) + text("t") + struct.pack(">iiii", 2, *held, -1))
            for name, held in (("slow", (0, 1)), ("quick", (2, 3)))
        )
        value = (
            struct.pack(">h", 3) + text("consumer") + struct.pack(">i", 1) + text("range") + text("slow-id")
        )
        value += struct.pack(">q", self.begin - 1000) + struct.pack(">i", 2) + members
        return struct.pack(">h", 2) + text(self.group), value


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.fixture(scope="session")
def past() -> type[Past]:
    """Makes pasts."""
    return Past
