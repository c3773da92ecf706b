"""The history's Delta tables: their columns, and their place.

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

from dataclasses import dataclass

COLUMNS = {
    "lag": (
        "day date, cluster string, time timestamp, `group` string, topic string, topic_id string, partition int, "
        "committed bigint, log_start bigint, log_end bigint, lag bigint, sampled_at timestamp, source int, source_offset bigint"
    ),
    "ends": (
        "day date, cluster string, time timestamp, topic string, topic_id string, partition int, "
        "log_start bigint, log_end bigint, stable_end bigint"
    ),
    "changes": "day date, cluster string, time timestamp, `group` string, source int, source_offset bigint, record string",
    "recommendations": (
        "day date, cluster string, time timestamp, key string, id string, `group` string, status string, "
        "verdict string, severity string, skew double, message string"
    ),
}


@dataclass(frozen=True, slots=True)
class History:
    """The folder or URL of a history; each table is a folder in it."""

    place: str

    def table(self, name: str) -> str:
        """Where the table is."""
        return f"{self.place.rstrip('/')}/{name}"


def columns(name: str) -> list[tuple[str, str]]:
    """Name and SQL type of each of a table's columns."""
    pairs = (part.strip().split(" ", 1) for part in COLUMNS[name].split(","))
    return [(column.strip("`"), kind) for column, kind in pairs]
