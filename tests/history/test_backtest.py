"""Backtests on Spark: from a dump and from a history the same is found; what cannot be read is one sentence."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from kagent.commands import past as commands
from kagent.commands.backtest import command as backtest_command
from kagent.commands.calibrate import command as calibrate_command
from kagent.commands.report import command as report_command
from kagent.errors import KagentError
from kagent.history.backtest import backtest, of_dump, of_history
from kagent.history.delta_writer import create
from kagent.history.past_range import History, Range
from kagent.history.tables import SCHEMAS
from kagent.pipeline.sql_schema import columns
from kagent.policy import Policies

pytestmark = [pytest.mark.spark]
POLICIES = {"quick": Policies({"settle": 30})}


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


def asked(command: click.Command, *argv: str) -> str:
    """What the command prints, or the sentence of its error."""
    ran = CliRunner().invoke(command, list(argv))
    if isinstance(ran.exception, KagentError):
        return str(ran.exception)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.fixture
def on_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands take the session that is there, and policies that learn quickly."""
    monkeypatch.setattr(commands, "started", lambda *_: nullcontext(spark))
    monkeypatch.setenv("KAGENT_POLICY", '{"settle": 30}')


def span(past: Any, tick: int = 60) -> list[str]:
    stretch = (past.begin, past.begin + past.seconds * 1000)
    start, end = (datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in stretch)
    return ["--from", start, "--to", end, "--tick", str(tick)]


@pytest.mark.usefixtures("on_session")
def test_json_lines_are_read_too_and_without_ends_the_least_is_taken(tmp_path: Path, past: Any) -> None:
    well = past(seconds=1200)
    lines = [
        {**r, "key": r["key"].hex(), "value": r["value"].hex() if r["value"] else None}
        for r in well.records()
    ]
    (tmp_path / "dump.json").write_text("\n".join(map(json.dumps, lines)))

    said = asked(backtest_command, "--dump", str(tmp_path / "dump.json"), *span(well))

    assert "Without --ends" in said
    assert re.search(r"^ *orders +settings +0 ", said, re.MULTILINE)


@pytest.mark.usefixtures("on_session")
def test_a_threshold_is_proposed_from_the_past_and_the_report_shows_it(tmp_path: Path, past: Any) -> None:
    sick = past(seconds=3600, onset=1200)
    dump, ends = dumped(sick, tmp_path)
    about = ["--dump", dump, "--ends", ends, *span(sick)]

    proposal = json.loads(asked(calibrate_command, "--json", *about))
    said = asked(report_command, "-o", str(tmp_path / "page.html"), *about)

    assert proposal["group"] == "orders"
    assert len(proposal["tried"]) == 15
    assert proposal["chosen"]["openings"] == 1
    assert said.endswith("page.html: 1 group.\n")
    page = (tmp_path / "page.html").read_text()
    assert "<h2>orders</h2>" in page
    titles = re.findall("<h3>(.*?)</h3>", page)
    assert titles[:3] == ["Lag of each member", "Skew, threshold and incidents", "Lag by partition and time"]
    assert titles[3].startswith("Before and after: 2025-10-09")
    found = re.search(r"const figures = (.*);\n", page)
    assert found
    heat = json.loads(found[1])[2]["data"][0]
    assert heat["y"] == ["t-0", "t-1", "t-2", "t-3"]


@pytest.mark.usefixtures("on_session")
def test_what_cannot_be_replayed_is_one_sentence(spark: Any, tmp_path: Path, past: Any) -> None:
    quiet = past(seconds=60)
    dump, _ = dumped(quiet, tmp_path)
    pq.write_table(pa.table({"key": [b"x"], "offset": [1]}), tmp_path / "lacking.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is none")
    damage(tmp_path / "dump.parquet", tmp_path / "damaged.parquet")
    said = partial(asked, backtest_command)

    assert "damaged.parquet is broken" in said("--dump", str(tmp_path / "damaged.parquet"), *span(quiet))
    assert "lacks partition, timestamp, value" in said("--dump", str(tmp_path / "lacking.parquet"))
    assert "broken.parquet is no parquet" in said("--dump", str(tmp_path / "broken.parquet"))
    assert "there is no history to read" in said("--path", str(tmp_path / "none"))
    assert "nothing to replay" in said("--dump", dump, "--from", "1970-01-01", "--to", "1970-01-01T00:01")
    assert "no group that matches nobody has a commit" in said("nobody", "--dump", dump, *span(quiet))
    assert "The range is empty" in said("--dump", dump, "--from", "now", "--to", "1d")
    assert "'/(/' is no regular expression" in said("--dump", dump, "/(/")


@pytest.mark.usefixtures("on_session")
def test_a_broken_file_in_the_history_is_named(tmp_path: Path, past: Any) -> None:
    quiet = past(seconds=60)
    when = datetime.fromtimestamp(quiet.begin / 1000, UTC)
    types = {
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "int": pa.int32(),
        "bigint": pa.int64(),
    }
    row = {"day": when.date(), "cluster": "main", "time": when, "group": "g", "topic": "t", "partition": 0}
    for name in ("lag", "ends", "changes"):
        schema = pa.schema(
            [(column, types.get(kind, pa.string())) for column, kind in columns(SCHEMAS[name])]
        )
        table = pa.Table.from_pylist(
            [{c: row.get(c, 1 if k == "bigint" else None) for c, k in columns(SCHEMAS[name])}], schema
        )
        write_deltalake(str(tmp_path / name), table, partition_by=["day"])
    (data,) = (tmp_path / "lag").glob("day=*/*.parquet")
    damage(data, data)
    said = partial(asked, backtest_command, "--path", str(tmp_path), *span(quiet))

    assert re.search(r"/lag/day=\S+\.parquet is broken", said())
    (tmp_path / "lag" / "_delta_log" / "00000000000000000000.json").write_text("{")
    assert said() == f"The history at {tmp_path} cannot be read."


def damage(whole: Path, damaged: Path) -> None:
    """Overwrite the data pages of a Parquet file; its footer stays whole."""
    content = bytearray(whole.read_bytes())
    pages = slice(4, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    content[pages] = b"\xff" * (pages.stop - pages.start)
    damaged.write_bytes(content)
