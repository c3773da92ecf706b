"""Log offsets of many partitions at once: one request per leader, its answer read as whole columns.

librdkafka has a future and an object per partition: 100,000 of them take seconds of a core, and the time grows faster than
the request. In ``ListOffsetsRequest.json`` version 2 (KIP-98, every broker since 0.11 has it) all partitions of a topic are
rows of one width, so numpy writes and reads them as they stand. Connections are aiokafka's.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from aiokafka.errors import for_code
from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.offset import OffsetRequest_v2, OffsetResponse_v2

from kagent.kafka.brokers import Brokers, NoAnswer, together
from kagent.kafka.descriptions import Key, Offsets, TopicDescription

Longs = npt.NDArray[np.int64]
UNKNOWN = -1
NOBODY = -1
"""The leader of a partition that has none, in Kafka's metadata."""
# ListOffsetsRequest.LATEST_TIMESTAMP and EARLIEST_TIMESTAMP.
END, START = -1, -2
"""The times of ``ListOffsets`` that stand for the log end and the log start."""
CHUNK = 20_000
"""Partitions a request: 240 kB out, 440 kB back, so that a broker's request thread is held for a moment only."""

NO_TOPIC, NO_PARTITION = "no such topic, or no right to see it", "no such partition"
NO_LEADER = "it has no leader"
MISSING = (NO_TOPIC, NO_PARTITION)
"""Why there are no offsets of what a commit names and the cluster has not."""

# Rows of the request's and the answer's partition arrays: https://github.com/apache/kafka/blob/trunk/clients/src/main/resources/common/message/ListOffsetsRequest.json
ASKED = np.dtype([("partition", ">i4"), ("time", ">i8")])
ANSWERED = np.dtype([("partition", ">i4"), ("error", ">i2"), ("time", ">i8"), ("offset", ">i8")])


@dataclass(frozen=True, slots=True)
class OffsetQuery:
    """One kind of offset: ``time`` END or START; with ``committed_only`` the last stable offset instead of the end."""

    time: int
    committed_only: bool = False


@dataclass(frozen=True, slots=True)
class OffsetSample:
    """Topic → the offset of each partition, UNKNOWN where it could not be had; when that was asked and answered.

    ``failed``: why, of partitions whose leader was asked; ``silent``: of those among them whose leader was waited for in vain.
    """

    asked_ms: int
    answered_ms: int
    offsets: dict[str, Longs]
    failed: dict[Key, str] = field(default_factory=dict)
    silent: frozenset[Key] = frozenset()


class ListOffsetsAnswer(OffsetResponse_v2):
    """``topics``: name → rows of ANSWERED."""

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> Any:
        """Read the answer. Raises struct.error or ValueError where it is cut short."""
        raw = data if isinstance(data, bytes) else data.read()
        throttle, count = struct.unpack_from(">ii", raw)
        at, topics = 8, {}
        for _ in range(count):
            (length,) = struct.unpack_from(">h", raw, at)
            name = raw[at + 2 : at + 2 + length].decode()
            at += 2 + length
            (rows,) = struct.unpack_from(">i", raw, at)
            topics[name] = np.frombuffer(raw, ANSWERED, rows, at + 4)
            at += 4 + rows * ANSWERED.itemsize
        return cls(throttle, topics)


# Version 2 is the first with an isolation level. Kafka 4 still has it (KIP-896 removed version 0), and flexible
# versions, from 6 on, end each row with tags, so that a row's width would not be fixed.
class ListOffsetsQuestion(RequestStruct):
    """``topics``: name → partition numbers."""

    API_KEY: ClassVar[int] = OffsetRequest_v2.API_KEY
    API_VERSION: ClassVar[int] = OffsetRequest_v2.API_VERSION
    RESPONSE_TYPE = ListOffsetsAnswer
    SCHEMA = OffsetRequest_v2.SCHEMA

    def __init__(self, wanted: OffsetQuery, topics: Mapping[str, Longs]) -> None:
        super().__init__(UNKNOWN, int(wanted.committed_only), topics)
        self._time = wanted.time

    def encode(self) -> bytes:
        """The request's body."""
        # Replica id (-1: a consumer), isolation level, number of topics.
        parts = [struct.pack(">ibi", UNKNOWN, self.isolation_level, len(self.topics))]
        for name, partitions in self.topics.items():
            rows = np.empty(len(partitions), ASKED)
            rows["partition"], rows["time"] = partitions, self._time
            text = name.encode()
            parts += [struct.pack(f">h{len(text)}si", len(text), text, len(rows)), rows.tobytes()]
        return b"".join(parts)


class ListOffsets(Request[ListOffsetsQuestion]):
    """Asks one broker for the offsets of partitions that it leads."""

    API_KEY = OffsetRequest_v2.API_KEY

    def __init__(self, wanted: OffsetQuery, topics: Mapping[str, Longs]) -> None:
        self._wanted, self._topics = wanted, topics

    def build(self, request_struct_class: type[ListOffsetsQuestion]) -> ListOffsetsQuestion:
        """The request in the version that the broker knows."""
        return request_struct_class(self._wanted, self._topics)


async def listed(
    brokers: Brokers, leaders: Mapping[str, Sequence[int]], wanted: Sequence[OffsetQuery]
) -> list[OffsetSample]:
    """What is wanted, one after the other. ``leaders``: topic → node id per partition.

    A leader that does not answer, or no longer leads, costs only its partitions.
    """
    return [await _listed(brokers, leaders, one) for one in wanted]


def now_ms() -> int:
    return int(time.time() * 1000)


async def _listed(
    brokers: Brokers, leaders: Mapping[str, Sequence[int]], wanted: OffsetQuery
) -> OffsetSample:
    asked_ms = now_ms()
    found = {topic: np.full(len(nodes), UNKNOWN, np.int64) for topic, nodes in leaders.items()}
    failed: dict[Key, str] = {}
    silent: set[Key] = set()
    requests = [(node, chunk) for node, topics in _by_leader(leaders) for chunk in _chunks(topics)]
    # To all leaders at once: a broker that is slow to answer delays its own partitions only.
    answers = await together(brokers.ask(ListOffsets(wanted, chunk), node) for node, chunk in requests)
    for (_, chunk), answer in zip(requests, answers, strict=True):
        if isinstance(answer, NoAnswer):
            without = dict.fromkeys(_keys(chunk), str(answer))
            failed |= without
            silent |= without.keys() if answer.silent else set()
        elif not isinstance(answer, Exception):
            failed |= _take(found, answer.topics)
    return OffsetSample(asked_ms, now_ms(), found, failed, frozenset(silent))


def _keys(topics: Mapping[str, Longs]) -> Iterator[Key]:
    return ((topic, number) for topic, numbers in topics.items() for number in numbers.tolist())


def _take(found: dict[str, Longs], answered: Mapping[str, Any]) -> dict[Key, str]:
    """Note a leader's offsets; why there are none, by partition."""
    failed: dict[Key, str] = {}
    for topic, rows in answered.items():
        good = rows[(rows["error"] == 0) & (rows["offset"] >= 0)]
        found[topic][good["partition"]] = good["offset"]
        # A partition whose leader has just moved answers NOT_LEADER_OR_FOLLOWER.
        for number, code in rows[rows["error"] != 0][["partition", "error"]].tolist():
            failed[topic, number] = for_code(code).message or for_code(code).__name__
    return failed


def leaders_of(topics: Mapping[str, TopicDescription], wanted: Iterable[Key]) -> dict[str, list[int]]:
    """Topic → the node to ask per partition: NOBODY for those that are not wanted."""
    leaders = {name: [NOBODY] * topic.partitions for name, topic in topics.items()}
    for name, number in wanted:
        if name in topics and number < topics[name].partitions:
            leaders[name][number] = topics[name].leaders[number]
    return leaders


def note(
    answers: Offsets, sample: OffsetSample, topics: Mapping[str, TopicDescription], wanted: Iterable[Key]
) -> set[Key]:
    """Take a sample in; those partitions that may have an answer in a moment."""
    unsettled: set[Key] = set()
    for key in wanted:
        name, number = key
        answers.failed.pop(key, None)
        if name not in topics:
            answers.failed[key] = NO_TOPIC
        elif number >= topics[name].partitions:
            answers.failed[key] = NO_PARTITION
        elif (offset := int(sample.offsets[name][number])) != UNKNOWN:
            answers.found[key] = offset
        else:
            answers.failed[key] = sample.failed.get(key, NO_LEADER)
            unsettled |= set() if key in sample.silent else {key}
    return unsettled


def _by_leader(leaders: Mapping[str, Sequence[int]]) -> list[tuple[int, dict[str, Longs]]]:
    nodes: dict[int, dict[str, Longs]] = defaultdict(dict)
    for topic, of_partition in leaders.items():
        leader = np.asarray(of_partition, np.int64)
        for node in np.unique(leader[leader != NOBODY]).tolist():
            nodes[node][topic] = np.flatnonzero(leader == node)
    return list(nodes.items())


def _chunks(topics: Mapping[str, Longs]) -> list[dict[str, Longs]]:
    """Whole topics, CHUNK partitions at a time; a topic alone may have more."""
    chunks: list[dict[str, Longs]] = []
    size = CHUNK
    for topic, partitions in topics.items():
        if size + len(partitions) > CHUNK:
            chunks.append({})
            size = 0
        chunks[-1][topic] = partitions
        size += len(partitions)
    return chunks
