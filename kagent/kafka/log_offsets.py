"""Log offsets of many partitions at once: one request per leader, its answer read as whole columns.

librdkafka has a future and an object per partition: 100,000 of them take seconds of a core, and the time grows faster than
the request. In ``ListOffsetsRequest.json`` version 2 (KIP-98, every broker since 0.11 has it) all partitions of a topic are
rows of one width, so numpy writes and reads them as they stand. Connections are aiokafka's.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.offset import OffsetRequest_v2, OffsetResponse_v2

Longs = npt.NDArray[np.int64]
UNKNOWN = -1
# ListOffsetsRequest.LATEST_TIMESTAMP and EARLIEST_TIMESTAMP.
END, START = -1, -2
"""The times of ``ListOffsets`` that stand for the log end and the log start."""
CHUNK = 20_000
"""Partitions a request: 240 kB out, 440 kB back, so that a broker's request thread is held for a moment only."""

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
    """Topic → the offset of each partition, UNKNOWN where it could not be had; when that was asked and answered."""

    asked_ms: int
    answered_ms: int
    offsets: dict[str, Longs]


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
    admin: AIOKafkaAdminClient, leaders: Mapping[str, Sequence[int]], wanted: Sequence[OffsetQuery]
) -> list[OffsetSample]:
    """What is wanted, one after the other. ``leaders``: topic → node id per partition.

    A leader that does not answer, or no longer leads, costs only its partitions.
    """
    columns = []
    for one in wanted:
        asked_ms = now_ms()
        offsets = await _listed(admin, leaders, one)
        columns.append(OffsetSample(asked_ms, now_ms(), offsets))
    return columns


def now_ms() -> int:
    return int(time.time() * 1000)


async def _listed(
    admin: AIOKafkaAdminClient, leaders: Mapping[str, Sequence[int]], wanted: OffsetQuery
) -> dict[str, Longs]:
    found = {topic: np.full(len(nodes), UNKNOWN, np.int64) for topic, nodes in leaders.items()}
    requests = [(node, chunk) for node, topics in _by_leader(leaders) for chunk in _chunks(topics)]
    # To all leaders at once: a broker that is slow to answer delays its own partitions only.
    answers = await asyncio.gather(
        *(admin._send_request(ListOffsets(wanted, chunk), node) for node, chunk in requests),
        return_exceptions=True,
    )
    for answer in answers:
        if isinstance(answer, KafkaError | TimeoutError):
            continue
        if isinstance(answer, BaseException):
            raise answer
        for topic, rows in answer.topics.items():
            # A partition whose leader has just moved answers NOT_LEADER_OR_FOLLOWER: unknown until the next sample.
            good = rows[(rows["error"] == 0) & (rows["offset"] >= 0)]
            found[topic][good["partition"]] = good["offset"]
    return found


def _by_leader(leaders: Mapping[str, Sequence[int]]) -> list[tuple[int, dict[str, Longs]]]:
    nodes: dict[int, dict[str, Longs]] = defaultdict(dict)
    for topic, of_partition in leaders.items():
        leader = np.asarray(of_partition, np.int64)
        # Node -1 is a partition without a leader.
        for node in np.unique(leader[leader >= 0]).tolist():
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
