"""What kagent would have published: history, or a dump of ``__consumer_offsets``, through the evaluation, one group per task."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from kagent.errors import InputError
from kagent.group_pattern import java_expression
from kagent.history.message_rows import SCHEMA, event_rows
from kagent.history.past_evaluation import ReplayedTick, Result, replay
from kagent.history.past_range import History, Range
from kagent.pipeline.build import Target, messages
from kagent.pipeline.sql_schema import columns, ddl
from kagent.policy import Policies, Policy
from kagent.text import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UP = 6 * 3_600_000
"""How long before the range the commits and log ends are read, in ms, so that its first tick knows the groups."""
TASKS_PER_CORE = 16
"""Groups differ widely in size, and a stage ends with its largest task. Smaller tasks also move the progress bar: with 4 a core, 60
groups of six hours showed nothing for half a minute at a time. For 12 small groups it costs 2.6 s more processor time, of 22."""
DUMP = {"key", "value", "partition", "offset", "timestamp"}
ENDS = {"topic", "partition", "time", "log_end"}
ROWS = pa.schema(
    [
        ("cluster", pa.string()),
        ("kind", pa.string()),
        ("time", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("committed", pa.int64()),
        ("source", pa.int32()),
        ("source_offset", pa.int64()),
        ("log_start", pa.int64()),
        ("log_end", pa.int64()),
        ("stable_end", pa.int64()),
        ("message", pa.string()),
    ]
)
"""One shape for the rows of all tables; what a table does not have is null."""
BROKEN = (
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE",
    "is not a Parquet file",
    "FileNotFoundException",
    "ParquetDecodingException",
)
RESULT = pa.schema(
    [
        ("cluster", pa.string()),
        ("group", pa.string()),
        ("policy", pa.string()),
        ("judged", pa.int64()),
        ("openings", pa.int64()),
        ("flaps", pa.int64()),
        ("by_itself", pa.int64()),
        ("skew_hours", pa.float64()),
        ("moves", pa.int64()),
        ("saved", pa.string()),
        ("dropped", pa.string()),
        ("messages", pa.string()),
        ("ticks", pa.string()),
    ]
)


def of_history(spark: SparkSession, history: History, cluster: str, within: Range) -> DataFrame:
    """The rows of a history that the range needs. Raises InputError where there is none or it cannot be read."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    try:
        found = {n: spark.read.format("delta").load(history.table(n)) for n in ("lag", "ends", "changes")}
    except AnalysisException as error:
        raise InputError(f"There is no history at {history.place}.") from error
    except (PySparkException, Py4JJavaError) as error:
        raise InputError(f"The history at {history.place} cannot be read.") from error
    since = f"cluster = '{cluster}' AND unix_millis(time) <= {within.end}"
    recent = f"{since} AND day >= to_date(timestamp_millis({within.start - WARM_UP})) AND unix_millis(time) >= {within.start - WARM_UP}"
    # The events topic is delivered at least once, so a commit may stand twice; its place in the source names it.
    lag = found["lag"].where(recent).dropDuplicates(["source", "source_offset"])
    # Membership from the beginning, not from the warm-up: a stable group's records may be weeks old.
    changes = found["changes"].where(since).dropDuplicates(["source", "source_offset"])
    return _together(
        lag.selectExpr(*_fitted(lag, "lag")),
        changes.withColumnRenamed("record", "message").selectExpr(*_fitted(changes, "changes", {"message"})),
        found["ends"].where(recent).selectExpr(*_fitted(found["ends"], "ends")),
    )


def _fitted(frame: DataFrame, kind: str, more: set[str] | None = None) -> list[str]:
    """Expressions that give the frame the columns of all rows."""
    known = set(frame.columns) | (more or set())
    types = dict(columns(ROWS))
    return [
        f"'{kind}' AS kind"
        if name == "kind"
        else "unix_millis(time) AS time"
        if name == "time"
        else f"CAST({f'`{name}`' if name in known else 'NULL'} AS {types[name]}) AS `{name}`"
        for name in ROWS.names
    ]


def _together(lag: DataFrame, changes: DataFrame, ends: DataFrame) -> DataFrame:
    """All rows, those of the log ends once for every group that commits to the topic."""
    # groupBy below sends a task one group's rows only, so the log ends are repeated for each group that reads the topic.
    readers = lag.select("cluster", "group", "topic").distinct()
    return lag.unionByName(changes).unionByName(
        ends.drop("group").join(readers, ["cluster", "topic"]).select(*ROWS.names)
    )


def of_dump(spark: SparkSession, path: str, ends: str | None, cluster: str) -> DataFrame:
    """The rows of a raw dump (Parquet or JSON lines: key, value, partition, offset, timestamp).

    Key and value: binary in Parquet, hex in JSON; timestamp: a timestamp or ms. ``ends``: log ends beside it (topic,
    partition, time, log_end); without, the highest commit of any group stands for the log end, which is the least it
    can have been: a group that is alone on its topic then shows no lag. Raises InputError naming what is missing.
    """
    dump = _read(spark, path, DUMP)
    raw = dump.selectExpr(
        *(_bytes(dump, name) for name in ("key", "value")), "partition", "offset", _ms(dump, "timestamp")
    )
    rows = raw.mapInArrow(_decoded(cluster), ddl(SCHEMA))
    lag, changes = (rows.where(f"kind = '{kind}'") for kind in ("lag", "changes"))
    stretch = ", ".join(f"CAST(NULL AS bigint) AS {name}" for name in ("log_start", "log_end", "stable_end"))
    shaped = [f.selectExpr("*", *stretch.split(", ")).select(*ROWS.names) for f in (lag, changes)]
    return _together(shaped[0], shaped[1], _given_ends(spark, ends, cluster) if ends else _least_ends(lag))


def _read(spark: SparkSession, path: str, wanted: set[str]) -> DataFrame:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    # Without a suffix: a folder of part files, as Spark writes Parquet.
    kind = "parquet" if PurePath(path.rstrip("/")).suffix in ("", ".parquet") else "json"
    try:
        found = spark.read.format(kind).load(path)
        missing = wanted - set(found.columns)
    except AnalysisException as error:
        raise InputError(f"{path} cannot be read as {kind}: {str(error).splitlines()[0][:150]}.") from error
    except (PySparkException, Py4JJavaError) as error:
        raise InputError(f"{path} is no {kind} that can be read.") from error
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(sorted(missing))}: wanted are {', '.join(sorted(wanted))}."
        )
    return found


def _bytes(frame: DataFrame, name: str) -> str:
    return (
        f"unhex({name}) AS {name}"
        if dict(frame.dtypes)[name] == "string"
        else f"CAST({name} AS binary) AS {name}"
    )


def _ms(frame: DataFrame, name: str) -> str:
    numeric = dict(frame.dtypes)[name] in ("bigint", "int", "double")
    return f"CAST({name} AS bigint) AS time" if numeric else f"unix_millis(CAST({name} AS timestamp)) AS time"


def _decoded(cluster: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rows of raw records; what cannot be read is passed over, as the pipeline's dead letters are."""
    # "\x00" in the place of kagent's own group, which is left out otherwise: no group is called so.
    target, now_ms = Target(cluster, "events", "letters", "\x00"), int(time.time() * 1000)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = messages(pa.Table.from_batches([batch]), target, 0)
            events = [value for topic, _, value, _ in made if topic == "events"]
            rows = [row for value in events for row in event_rows(value, now_ms)]
            yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    return run


def _least_ends(lag: DataFrame) -> DataFrame:
    """The highest commit of any group so far, by partition and minute, as the log end."""
    highest = "max(committed) OVER (PARTITION BY topic, partition ORDER BY minute) AS log_end"
    # At the end of the commit's minute: only then are all commits of the minute known to have been made.
    by_minute = lag.where("committed IS NOT NULL").selectExpr("*", "(time div 60000 + 1) * 60000 AS minute")
    newest = by_minute.groupBy("cluster", "topic", "partition", "minute").agg({"committed": "max"})
    named = newest.withColumnRenamed("max(committed)", "committed").selectExpr("*", highest)
    return named.selectExpr("cluster", "topic", "partition", "minute AS time", "log_end", *_shape("log_end"))


def _given_ends(spark: SparkSession, path: str, cluster: str) -> DataFrame:
    given = _read(spark, path, ENDS)
    return given.selectExpr(
        f"'{cluster}' AS cluster",
        "topic",
        "CAST(partition AS int) AS partition",
        _ms(given, "time"),
        "log_end",
        *_shape("log_end"),
    )


def _shape(end: str) -> list[str]:
    return [
        "'ends' AS kind",
        "CAST(NULL AS string) AS topic_id",
        "CAST(NULL AS bigint) AS committed",
        "CAST(NULL AS int) AS source",
        "CAST(NULL AS bigint) AS source_offset",
        "CAST(0 AS bigint) AS log_start",
        f"{end} AS stable_end",
        "CAST(NULL AS string) AS message",
    ]


def backtest(
    rows: DataFrame,
    policies: Mapping[str, Policies],
    within: Range,
    only: str | None = None,
    keep_every: int = 0,
) -> list[dict[str, Any]]:
    """A row per group and policy (see RESULT), worst first. ``only``: a pattern of groups' names. Raises InputError without any."""
    picked = rows if only is None else rows.where(rows["group"].rlike(java_expression(only)))
    tasks = TASKS_PER_CORE * rows.sparkSession.sparkContext.defaultParallelism
    # By our own number of partitions: groupBy alone would make 200 Python tasks (spark.sql.shuffle.partitions).
    grouped = picked.repartition(tasks, "cluster", "group").groupBy("cluster", "group")
    judged = grouped.applyInArrow(_one_group(policies, within, keep_every), ddl(RESULT))
    with readable():
        found = judged.toArrow().to_pylist()
    if not found:
        who = "no group" if only is None else f"no group that matches {shown(only)}"
        raise InputError(f"There is nothing to replay: {who} has a commit in this range.")
    return sorted(found, key=lambda r: (-r["openings"], -r["skew_hours"], r["group"], r["policy"]))


@contextmanager
def readable() -> Iterator[None]:
    """Turns Spark's complaint about a broken file into InputError; anything else is passed on."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        # Spark has one exception type for all failed jobs; only its text tells a broken file from a fault of ours.
        if not any(sign in str(error) for sign in BROKEN):
            raise
        named = re.search(r"file:\S+|s3a?://\S+|hdfs://\S+", str(error))
        raise InputError(
            f"{named[0].rstrip('.,;:') if named else 'A file'} is broken or cannot be read."
        ) from error


def _one_group(
    policies: Mapping[str, Policies], within: Range, keep_every: int
) -> Callable[[pa.Table], pa.Table]:
    def run(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        cluster, group = rows[0]["cluster"], rows[0]["group"]
        chosen: dict[str, Policy] = {name: of(group) for name, of in policies.items()}
        judged = {name: policy for name, policy in chosen.items() if not policy.ignore}
        results = replay(cluster, group, rows, judged, within.start, within.end, within.tick, keep_every)
        return _table([_row(cluster, group, result) for result in results if result.judged])

    return run


def _row(cluster: str, group: str, result: Result) -> list[Any]:
    messages = [m.model_dump(mode="json", by_alias=True) for m in result.messages]
    return [
        cluster,
        group,
        result.policy,
        result.judged,
        len(result.openings),
        result.flaps,
        result.by_itself,
        result.skewed_ms / 3_600_000,
        result.moves,
        orjson.dumps(result.saved).decode(),
        orjson.dumps(result.dropped).decode(),
        orjson.dumps(messages).decode(),
        orjson.dumps([_plain(t) for t in result.ticks]).decode(),
    ]


def _plain(tick: ReplayedTick) -> dict[str, Any]:
    return {
        "time": tick.time,
        "skew": tick.skew,
        "behind": tick.behind,
        "lag": tick.lag,
        "work": dict(tick.work),
    }


def _table(rows: Sequence[Sequence[Any]]) -> pa.Table:
    values = [[row[at] for row in rows] for at in range(len(RESULT))]
    return pa.table([pa.array(c, f.type) for c, f in zip(values, RESULT, strict=True)], schema=RESULT)
