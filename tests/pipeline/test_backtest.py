"""Backtests on Spark: from a dump and from a history the same is found; what cannot be read is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kagent.advice.policy import Policies
from kagent.errors import InputError
from kagent.pipeline.backtest import Range, backtest, of_dump, of_history
from kagent.pipeline.calibrate import grid, propose
from kagent.pipeline.history import create
from kagent.pipeline.tables import History

pytestmark = [pytest.mark.spark]
POLICIES = {"quick": Policies({"learn": 600, "settle": 30})}


def dumped(past: Any, folder: Path) -> tuple[str, str]:
    """A Parquet dump and its log ends."""
    records = past.records()
    for record in records:
        record["timestamp"] *= 1000
    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
        ]
    )
    pq.write_table(pa.Table.from_pylist(records, schema), folder / "dump.parquet")
    pq.write_table(pa.Table.from_pylist(past.ends()), folder / "ends.parquet")
    return str(folder / "dump.parquet"), str(folder / "ends.parquet")


def within(past: Any, tick: int = 30_000) -> Range:
    return Range(past.begin, past.begin + past.seconds * 1000, tick)


def told(found: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [
        (m["status"], m["verdict"], m["opened_at"]) for row in found for m in orjson.loads(row["messages"])
    ]


def test_dump_and_history_tell_the_same(spark: Any, tmp_path: Path, past: Any) -> None:
    sick = past(seconds=4200, onset=1200)
    dump, ends = dumped(sick, tmp_path)
    history = History(str(tmp_path / "history"))
    create(spark, history)
    rows = of_dump(spark, dump, ends, "main").persist()
    kept = {
        "lag": "kind = 'lag'",
        "ends": "kind = 'ends'",
        "changes": "kind = 'changes'",
    }
    for table, which in kept.items():
        made = (
            rows.where(which)
            .selectExpr("*", "timestamp_millis(time) AS _t")
            .drop("time")
            .withColumnRenamed("_t", "time")
        )
        dated = made.selectExpr("*", "to_date(time) AS day", "message AS record")
        columns = spark.read.format("delta").load(history.table(table)).columns
        dated.select(*[c for c in columns if c in dated.columns]).write.format("delta").mode("append").save(
            history.table(table)
        )

    from_dump = backtest(rows, POLICIES, within(sick))
    from_history = backtest(of_history(spark, history, "main", within(sick)), POLICIES, within(sick))

    assert len([t for t in told(from_dump) if t[0] == "open"]) == 1
    assert told(from_history) == told(from_dump)
    assert from_dump[0]["openings"] == 1
    assert from_dump[0]["skew_hours"] > 0
    rows.unpersist()


def test_json_lines_are_read_too_and_without_ends_the_least_is_taken(
    spark: Any, tmp_path: Path, past: Any
) -> None:
    well = past(seconds=1200)
    lines = [
        {**r, "key": r["key"].hex(), "value": r["value"].hex() if r["value"] else None}
        for r in well.records()
    ]
    (tmp_path / "dump.json").write_text("\n".join(map(json.dumps, lines)))

    found = backtest(of_dump(spark, str(tmp_path / "dump.json"), None, "main"), POLICIES, within(well))

    assert [(row["group"], row["openings"]) for row in found] == [("orders", 0)]


def test_a_threshold_is_proposed_from_the_past(spark: Any, tmp_path: Path, past: Any) -> None:
    sick = past(seconds=4200, onset=1200)
    rows = of_dump(spark, *dumped(sick, tmp_path), "main")
    base = Policies({"learn": 600, "settle": 30})

    (proposal,) = propose(backtest(rows, grid(base), within(sick, 60_000)), 4_200_000)

    assert proposal.group == "orders"
    assert len(proposal.tried) == 15
    assert proposal.chosen is not None
    assert proposal.chosen.openings == 1


def test_what_cannot_be_replayed_is_one_sentence(spark: Any, tmp_path: Path, past: Any) -> None:
    quiet = past(seconds=60)
    dump, _ = dumped(quiet, tmp_path)
    pq.write_table(pa.table({"key": [b"x"], "offset": [1]}), tmp_path / "lacking.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is none")

    damaged = bytearray((tmp_path / "dump.parquet").read_bytes())
    damaged[4 : len(damaged) // 2] = b"\xff" * (len(damaged) // 2 - 4)
    (tmp_path / "damaged.parquet").write_bytes(damaged)

    with pytest.raises(InputError, match=r"damaged.parquet is broken"):
        backtest(of_dump(spark, str(tmp_path / "damaged.parquet"), None, "main"), POLICIES, within(quiet))
    with pytest.raises(InputError, match=r"lacks partition, timestamp, value"):
        of_dump(spark, str(tmp_path / "lacking.parquet"), None, "main")
    with pytest.raises(InputError, match=r"broken.parquet"):
        of_dump(spark, str(tmp_path / "broken.parquet"), None, "main")
    with pytest.raises(InputError, match="There is no history"):
        of_history(spark, History(str(tmp_path / "none")), "main", within(quiet))
    with pytest.raises(InputError, match="nothing to replay"):
        backtest(of_dump(spark, dump, None, "main"), POLICIES, Range(0, 60_000))
