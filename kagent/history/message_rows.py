"""Messages of kagent's topics to rows of the history. Pure: Arrow batches in, Arrow batches out.

Input: ``topic`` (string), ``value`` (binary, null for a tombstone), ``key`` (binary), ``time`` (int64 ms).
Output: one shape for all tables, ``kind`` saying which one a row is for; what a table does not have is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from kagent.contract.admission import decode_all
from kagent.contract.event_times import limited
from kagent.contract.events import GroupEvent

# Rows are handed over in parts: a batch of large events would otherwise stand in memory twice, as dicts and as Arrow.
ROWS_OUT = 50_000
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("cluster", pa.string()),
        ("time", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("committed", pa.int64()),
        ("source", pa.int32()),
        ("source_offset", pa.int64()),
        ("key", pa.string()),
        ("message", pa.string()),
    ]
)
Row = dict[str, Any]


def unpacked(events: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for mapInArrow. ``events``: name of the events topic; every other topic holds recommendations."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        for batch in batches:
            for message in batch.to_pylist():
                # A tombstone on the compacted topic: the incident's rows are in the history already.
                if message["value"] is None:
                    continue
                if message["topic"] == events:
                    rows += event_rows(message["value"], message["time"])
                else:
                    rows += recommendation_rows(message["key"], message["value"], message["time"])
                if len(rows) >= ROWS_OUT:
                    yield pa.RecordBatch.from_pylist(rows, SCHEMA)
                    rows = []
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    return run


def event_rows(value: bytes, arrived_ms: int) -> Iterator[Row]:
    """The rows of a message's events; progress has none. What is no event (another program wrote it) is passed over.

    ``arrived_ms``: when the broker got it. No row is of a later time: Spark raises on one that no calendar has, at each start.
    """
    for event in decode_all(value):
        if isinstance(event, GroupEvent):
            found = limited(event, arrived_ms)
            assert isinstance(found, GroupEvent)
            yield from _rows_of(found)


def _rows_of(event: GroupEvent) -> Iterator[Row]:
    base: Row = {"cluster": event.cluster, "group": event.group, "source": event.source}
    for o in event.offsets:
        about = {**base, "kind": "lag", "topic": o.topic, "topic_id": o.topic_id}
        for p, committed, time, at in zip(o.partition, o.committed, o.time, o.source_offset, strict=True):
            yield {**about, "partition": p, "committed": committed, "time": time, "source_offset": at}
    for t in event.tombstones:
        about = {**base, "kind": "lag", "topic": t.topic, "time": event.time}
        for p, at in zip(t.partition, t.source_offset, strict=True):
            yield {**about, "partition": p, "source_offset": at}
    for record in event.records:
        yield {
            **base,
            "kind": "changes",
            "time": record.time,
            "source_offset": record.source_offset,
            # Not orjson, which raises on the integers beyond 64 bits that a foreign event may hold: the stream would end at each start.
            "message": msgspec.json.encode(record.record).decode(),
        }


def recommendation_rows(key: bytes | None, value: bytes, time: int) -> Iterator[Row]:
    """The row of one message on the recommendation topic; the state message of a cluster is none."""
    name = (key or b"").decode(errors="replace")
    cluster, slash, group = name.partition("/")
    # Keys are <cluster>/<group>; the state message of a cluster has its name alone.
    if not slash:
        return
    yield {
        "kind": "recommendations",
        "cluster": cluster,
        "group": group,
        "time": time,
        "key": name,
        "message": value.decode(errors="replace"),
    }
