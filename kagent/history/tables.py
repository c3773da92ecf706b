"""The history's Delta tables: their columns.

All have ``day`` (UTC date of the row's time, by which they are partitioned) and ``cluster``. Times are UTC timestamps with
milliseconds. A row that came from a record of ``__consumer_offsets`` names it by ``source`` (its partition) and
``source_offset``: events are delivered at least once, so a reader who counts drops doubles of these two.

| table | a row is | columns beside day, cluster |
|---|---|---|
| lag | the last commit of a partition within a write | time, group, topic, topic_id, partition, committed (null: removed), log_start, log_end, lag, sampled_at, source, source_offset |
| ends | a partition's log, whenever it changed | time, topic, topic_id, partition, log_start, log_end, stable_end |
| changes | one membership record | time, group, source, source_offset, record (JSON, as `kagent decode` prints it, without the hex of blobs that are decoded beside it) |
| recommendations | one message on the recommendation topic | time, key, id, group, status, verdict, severity, skew, message (JSON, whole) |
"""

from __future__ import annotations

import pyarrow as pa

from kagent.pipeline.sql_schema import TIMESTAMP

SCHEMAS: dict[str, pa.Schema] = {
    "lag": pa.schema(
        [
            ("day", pa.date32()),
            ("cluster", pa.string()),
            ("time", TIMESTAMP),
            ("group", pa.string()),
            ("topic", pa.string()),
            ("topic_id", pa.string()),
            ("partition", pa.int32()),
            ("committed", pa.int64()),
            ("log_start", pa.int64()),
            ("log_end", pa.int64()),
            ("lag", pa.int64()),
            ("sampled_at", TIMESTAMP),
            ("source", pa.int32()),
            ("source_offset", pa.int64()),
        ]
    ),
    "ends": pa.schema(
        [
            ("day", pa.date32()),
            ("cluster", pa.string()),
            ("time", TIMESTAMP),
            ("topic", pa.string()),
            ("topic_id", pa.string()),
            ("partition", pa.int32()),
            ("log_start", pa.int64()),
            ("log_end", pa.int64()),
            ("stable_end", pa.int64()),
        ]
    ),
    "changes": pa.schema(
        [
            ("day", pa.date32()),
            ("cluster", pa.string()),
            ("time", TIMESTAMP),
            ("group", pa.string()),
            ("source", pa.int32()),
            ("source_offset", pa.int64()),
            ("record", pa.string()),
        ]
    ),
    "recommendations": pa.schema(
        [
            ("day", pa.date32()),
            ("cluster", pa.string()),
            ("time", TIMESTAMP),
            ("key", pa.string()),
            ("id", pa.string()),
            ("group", pa.string()),
            ("status", pa.string()),
            ("verdict", pa.string()),
            ("severity", pa.string()),
            ("skew", pa.float64()),
            ("message", pa.string()),
        ]
    ),
}
"""Table → its columns. Readers of other languages rely on them: columns are added, never renamed."""
