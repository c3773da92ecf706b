"""The stream as one pure DataFrame: read, collapse, decode, build events, write. No shuffle, no foreachBatch.

One group lives in one partition of the source, and ``coalesce`` keeps whole partitions together and in order, so that a
task sees all of a group. A Python task costs about a tenth of a second whatever it does: hence as many as cores.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.build import Target, messages
from kagent.pipeline.bundle import Bundling, Placed, bundled
from kagent.pipeline.compact import Collapser
from kagent.pipeline.no_pandas import arrow_alone, version_alone
from kagent.pipeline.sql_schema import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("records", pa.int32()),
        ("partition", pa.int32()),
    ]
)
ROWS_OUT = 1000
BYTES_OUT = 4 * 1024 * 1024
"""A batch stands in memory a few times, in Python and in Java: a thousand rows of the largest size would take half a GB each time."""

ANSWER_WITHIN_MS = 20_000
"""How long Spark waits for the end, and a task for records, of a partition whose leader is gone: by default 60 and 120 s, in which neither
can be stopped and the task holds its core. More than the three answers of a new connection take from a broker that needs 5 s for each."""


def source_options(security: Mapping[str, str], group: str, partitions: Collection[int]) -> dict[str, str]:
    """Options of the Kafka source, stream or batch: only what was committed, in large fetches.

    ``group``: of Spark's consumers, which are no members of it and commit nothing, and still wait at their start for its coordinator.
    """
    return {
        **security,
        # Not "subscribe": with what a partition without a leader does not answer, every batch would wait.
        "assign": json.dumps({OFFSETS_TOPIC: sorted(partitions)}),
        "kafka.group.id": group,
        # Transactions commit offsets to this topic, too (TxnOffsetCommit, KIP-98): read uncommitted, aborted ones look real.
        # https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging
        "kafka.isolation.level": "read_committed",
        # Measured against Kafka's default of 500: a catch-up is a third faster. Larger fetches gained nothing.
        "kafka.max.poll.records": "10000",
        # Spark asks for log start and end after each fetch, on the connection on which the consumer has sent its next fetch already: the
        # broker answers in order, so with Kafka's 500 ms a trigger took 20 s for 50 partitions with a few records each.
        "kafka.fetch.max.wait.ms": "10",
        "kafka.default.api.timeout.ms": str(ANSWER_WITHIN_MS),
        "kafkaConsumer.pollTimeoutMs": str(ANSWER_WITHIN_MS),
        # At the next one Spark would make a new consumer, which waits without end for a coordinator that is gone. The query is begun anew.
        "fetchOffset.numRetries": "1",
        "failOnDataLoss": "false",  # retention may delete old records; progress records report the gap
    }


def read_stream(
    spark: SparkSession,
    security: Mapping[str, str],
    group: str,
    max_offsets: int,
    places: Mapping[int, int],
    partitions: Collection[int],
) -> DataFrame:
    """The live topic, from the checkpoint, from these places (partition → offset) or from its beginning.

    ``group`` and ``partitions``: as in :func:`source_options`.
    """
    begin = (
        json.dumps({OFFSETS_TOPIC: {str(p): offset for p, offset in places.items()}})
        if places
        else "earliest"
    )
    options = {
        **source_options(security, group, partitions),
        # Only for a new checkpoint: Spark continues an existing one from its own offsets.
        "startingOffsets": begin,
        "maxOffsetsPerTrigger": str(max_offsets),
    }
    return spark.readStream.format("kafka").options(**options).load()


def to_messages(
    records: DataFrame, target: Target, cores: int, bundling: Bundling | None = None
) -> DataFrame:
    """Records of the source to rows ``topic, key, value, partition`` for the Kafka sink, counted under the name ``kagent``."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    columns = ["key", "value", "partition", "offset", "unix_millis(timestamp) AS time"]
    # A Python task takes 70 to 130 ms whatever it does, and the topic has 50 partitions by default: coalesced to the
    # cores, a trigger takes half as long. repartition would shuffle, and lose the order within a group.
    few = records.selectExpr(*columns).coalesce(cores)
    with version_alone():
        made = few.mapInArrow(per_task(target, bundling), ddl(SCHEMA))
    # Counted within the query: a second action over the rows would run the batch twice.
    return made.observe(
        "kagent",
        F.sum("records").alias("records"),
        F.count(F.lit(1)).alias("messages"),
        F.count_if(F.col("topic") == target.dead_letters).alias("dead"),
    )


def per_task(
    target: Target, bundling: Bundling | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that runs over all batches of one task."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_alone()
        collapser = Collapser()
        for batch in batches:
            collapser.add(batch)
            if collapser.full:
                yield from emitted(collapser.take())
        yield from emitted(collapser.take())

    def emitted(table: pa.Table | None) -> Iterator[pa.RecordBatch]:
        if table is not None:
            made = messages(table, target, int(time.time() * 1000))
            yield from _batches(bundled(made, bundling))

    return run


def _batches(rows: Iterator[Placed]) -> Iterator[pa.RecordBatch]:
    held: list[Placed] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[2])
        if len(held) >= ROWS_OUT or size >= BYTES_OUT:
            yield _batch(held)
            held, size = [], 0
    if held:
        yield _batch(held)


def _batch(rows: list[Placed]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
