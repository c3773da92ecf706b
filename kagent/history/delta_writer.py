"""The history: a stream of its own from kagent's topics to Delta tables, so that a slow disk never delays an event.

Each write carries the stream's id and the number of its batch, and Delta passes over a batch that it has already: a batch
that was cut short is done again as a whole, and every table has every message once. The stream's id is made with the
checkpoint, since a new checkpoint counts its batches from 0 again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from kagent.errors import KafkaError
from kagent.history.message_rows import SCHEMA, unpacked
from kagent.history.past_range import History
from kagent.history.tables import SCHEMAS
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Offsets
from kagent.pipeline.sql_schema import columns, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("kagent.history")

ENDS_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("log_start", pa.int64()),
        ("log_end", pa.int64()),
        ("stable_end", pa.int64()),
        ("asked", pa.int64()),
    ]
)
EndsRow = tuple[str, str, int, int, int, int, int]


@dataclass(slots=True)
class Ends:
    """Samples the logs of the topics that groups commit to; remembers what it wrote last."""

    admin: Admin
    topics: set[str] = field(default_factory=set)
    _last: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)

    def sample(self) -> list[EndsRow]:
        """A row for every partition of every known topic. Empty when the cluster cannot be asked: a hole in history."""
        asked = int(time.time() * 1000)
        try:
            found = self.admin.topics(self.topics)
            keys = [(name, p) for name, topic in found.items() for p in range(topic.partitions)]
            start, stable, end = self._offsets(keys)
        except KafkaError as error:
            log.warning("The log ends are missing from the history for now: %s", error)
            return []
        return [
            (t, found[t].id, p, start.found[t, p], end.found[t, p], stable.found[t, p], asked)
            for t, p in keys
            if all((t, p) in answer.found for answer in (start, stable, end))
        ]

    def _offsets(self, keys: list[tuple[str, int]]) -> tuple[Offsets, Offsets, Offsets]:
        # The log end last: it may have grown since, but never lies below the stable end that is written beside it.
        start, stable = self.admin.log_start(keys), self.admin.log_end(keys, committed_only=True)
        return start, stable, self.admin.log_end(keys)

    def changed(self, rows: Iterable[EndsRow]) -> list[EndsRow]:
        """Those that differ from what was written last of the partition."""
        return [row for row in rows if self._last.get((row[0], row[2])) != (row[3], row[4], row[5])]

    def written(self, rows: Iterable[EndsRow]) -> None:
        """These are in the history now."""
        self._last.update({(row[0], row[2]): (row[3], row[4], row[5]) for row in rows})


@dataclass(slots=True)
class Writer:
    """Writes one batch of the stream into the tables. ``stream``: the id made with the checkpoint."""

    history: History
    cluster: str
    events: str
    stream: str
    ends: Ends
    after_table: Callable[[str], None] | None = None
    _began: bool = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        """The function for foreachBatch."""
        rows = batch.selectExpr("topic", "key", "value", "unix_millis(timestamp) AS time")
        # Persisted: four queries read the batch, and each would fetch and unpack it anew.
        made = (
            rows.mapInArrow(unpacked(self.events), ddl(SCHEMA)).where(f"cluster = '{self.cluster}'").persist()
        )
        try:
            spark = made.sparkSession
            self.ends.topics |= {
                r[0] for r in made.where("kind = 'lag'").select("topic").distinct().collect()
            }
            sampled = self.ends.sample()
            ends, changed = _frame(spark, sampled), _frame(spark, self.ends.changed(sampled))
            self._append("lag", _lag(made, ends), number)
            self._append(
                "ends", changed.selectExpr(f"'{self.cluster}' AS cluster", "*", "asked AS time"), number
            )
            if self._began:  # the first batch may be one that Delta has already, with other ends
                self.ends.written(sampled)
            self._append(
                "changes", made.where("kind = 'changes'").withColumnRenamed("message", "record"), number
            )
            self._append("recommendations", _recommendations(made), number)
            self._began = True
        finally:
            made.unpersist()

    def _append(self, name: str, rows: DataFrame, number: int) -> None:
        # Delta would commit an empty version, a file in its log for every trigger of an idle cluster.
        if rows.isEmpty():
            return
        stamped = (
            rows.selectExpr("*", "timestamp_millis(time) AS _at")
            .drop("time")
            .withColumnRenamed("_at", "time")
        )
        dated = stamped.selectExpr("*", "to_date(time) AS day")
        fitted = dated.selectExpr(
            *(f"CAST(`{column}` AS {kind}) AS `{column}`" for column, kind in columns(SCHEMAS[name]))
        )
        # One file a table and batch: small files are what makes a Delta table slow, and `maintain` only joins them later.
        writer = fitted.coalesce(1).write.format("delta").mode("append").partitionBy("day")
        # foreachBatch is at least once; Delta drops a batch whose (txnAppId, txnVersion) it has:
        # https://github.com/delta-io/delta/blob/master/PROTOCOL.md#transaction-identifiers
        writer = writer.option("txnAppId", f"{self.stream}-{name}").option("txnVersion", str(number))
        writer.save(self.history.table(name))
        if self.after_table:
            self.after_table(name)


def _frame(spark: SparkSession, rows: list[EndsRow]) -> DataFrame:
    names = ENDS_SCHEMA.names
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], ENDS_SCHEMA)
    return spark.createDataFrame(table)


def _lag(rows: DataFrame, ends: DataFrame) -> DataFrame:
    """The newest commit of each partition in this batch, beside its log as it was right after."""
    # One row a partition and batch, as the events themselves keep only the last commit of a trigger.
    newest = "row_number() OVER (PARTITION BY `group`, topic, partition ORDER BY source_offset DESC) = 1 AS _newest"
    latest = rows.where("kind = 'lag'").selectExpr("*", newest).where("_newest").drop("_newest")
    about = ends.withColumnRenamed("topic_id", "_id").withColumnRenamed("asked", "_asked")
    joined = latest.join(about, ["topic", "partition"], "left")
    lag = "greatest(log_end - greatest(committed, log_start), 0)"
    # A commit to the topic that was deleted has no lag in the log of the new one (KIP-516).
    same = "topic_id IS NULL OR _id IS NULL OR topic_id = _id"
    return joined.selectExpr(
        "*",
        f"CASE WHEN committed IS NOT NULL AND ({same}) THEN {lag} END AS lag",
        "timestamp_millis(_asked) AS sampled_at",
    )


def _recommendations(rows: DataFrame) -> DataFrame:
    fields = {"id": "$.id", "status": "$.status", "verdict": "$.verdict", "severity": "$.severity"}
    picked = [f"get_json_object(message, '{path}') AS {name}" for name, path in fields.items()]
    skew = "CAST(get_json_object(message, '$.skew.now') AS double) AS skew"
    return rows.where("kind = 'recommendations'").selectExpr("*", *picked, skew)


def create(spark: SparkSession, history: History) -> None:
    """Make the tables that are not there yet, so that a reader finds all of them from the first moment."""
    for name in SCHEMAS:
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS delta.`{history.table(name)}` ({ddl(SCHEMAS[name])}) USING delta PARTITIONED BY (day)"
        )


def known_topics(spark: SparkSession, history: History) -> set[str]:
    """The topics that the history has seen."""
    path = history.table("lag")
    return {row[0] for row in spark.read.format("delta").load(path).select("topic").distinct().collect()}


def maintain(
    spark: SparkSession, history: History, keep_days: int, vacuum_hours: int = 168
) -> dict[str, int]:
    """Join small files, drop days older than ``keep_days``, remove files that no version needs. Table → files now."""
    found = {}
    for name in SCHEMAS:
        path = f"delta.`{history.table(name)}`"
        # In this order: what is deleted need not be joined, and only VACUUM takes files off the disk. It keeps a week of them for
        # readers of older versions; Delta refuses less unless its check is switched off.
        spark.sql(f"DELETE FROM {path} WHERE day < date_sub(current_date(), {keep_days})")
        spark.sql(f"OPTIMIZE {path}")
        spark.sql(f"VACUUM {path} RETAIN {vacuum_hours} HOURS")
        found[name] = int(spark.sql(f"DESCRIBE DETAIL {path}").select("numFiles").collect()[0][0])
    return found
