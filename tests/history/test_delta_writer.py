"""The history has every message once, whatever is killed when, and any Delta reader can read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kagent.errors import KafkaError, SettingsError
from kagent.history import history_service as keepers
from kagent.history.delta_writer import Writer, create, maintain
from kagent.history.history_service import Keeper
from kagent.history.past_range import History, place_of
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class PowerCut(Exception):
    """As if the process had ended here."""


def keeper(run: Any, history: Path) -> Keeper:
    name, cluster = run.settings.cluster()
    return Keeper(run.settings, name, cluster, History(str(history)), available_now=True)


def rows(history: Path, table: str) -> list[dict[str, Any]]:
    """Read without Spark."""
    found = list(DeltaTable(str(history / table)).to_pyarrow_table().to_pylist())
    return sorted(found, key=lambda row: row.get("source_offset") or 0)


def recommend(run: Any, key: str, message: dict[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": run.kafka.broker.bootstrap})
    producer.produce(run.settings.topics.recommendations, json.dumps(message), key=key)
    assert producer.flush(PATIENCE_S) == 0


def test_the_history_has_every_message_once_though_killed_between_tables(
    runs: Callable[[], Any], kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, history = runs(), tmp_path / "history"
    topic = kafka.topic("kept")
    kafka.fill(topic, 30)
    for n in range(4):
        kafka.commit(f"kept-{n}", topic, {p: n + p for p in range(4)})
    run.catch_up()
    recommend(run, "main/kept-1", {"id": "i1", "status": "open", "skew": {"now": 2.5}})
    recommend(run, "main", {"status": "watching"})

    def cut(table: str) -> None:
        if table == "ends":
            raise PowerCut

    def broken(*args: Any) -> Writer:
        return partial(Writer, after_table=cut)(*args)

    with monkeypatch.context() as patch:
        patch.setattr(keepers, "Writer", broken)
        with pytest.raises(KafkaError):
            keeper(run, history).run_on(run.spark)
    assert rows(history, "lag")
    assert rows(history, "changes") == []
    keeper(run, history).run_on(run.spark)
    kafka.commit("kept-0", topic, {0: 9})
    run.catch_up()
    keeper(run, history).run_on(run.spark)

    events = [e for _, e in run.events()]
    commits = {
        (e.source, at): (e.group, o.topic, p, c)
        for e in events
        for o in e.offsets
        for p, c, at in zip(o.partition, o.committed, o.source_offset, strict=True)
    }
    lag = rows(history, "lag")
    written = {
        (r["source"], r["source_offset"]): (r["group"], r["topic"], r["partition"], r["committed"])
        for r in lag
    }
    assert {k: v for k, v in written.items() if v[3] is not None} == commits
    assert len(written) == len(lag)
    changes = rows(history, "changes")
    assert sorted((r["source"], r["source_offset"]) for r in changes) == sorted(
        (e.source, r.source_offset) for e in events for r in e.records
    )
    mine = {(r["group"], r["partition"]): r for r in lag if r["topic"] == topic and r["group"] == "kept-2"}
    assert {key: (r["log_end"], r["lag"]) for key, r in mine.items()} == {
        ("kept-2", p): (30, 30 - 2 - p) for p in range(4)
    }
    assert [(r["group"], r["id"], r["skew"]) for r in rows(history, "recommendations")] == [
        ("kept-1", "i1", 2.5)
    ]
    ends = [(r["partition"], r["log_end"]) for r in rows(history, "ends") if r["topic"] == topic]
    assert set(ends) == {(p, 30) for p in range(4)}


def test_old_days_are_dropped_and_small_files_joined(spark: Any, tmp_path: Path) -> None:
    history = History(str(tmp_path / "history"))
    create(spark, history)
    for number, day in enumerate(("2020-01-01", "2100-01-01", "2100-01-01")):
        spark.sql(
            f"INSERT INTO delta.`{history.table('changes')}` VALUES (date'{day}', 'main', timestamp'{day}', 'g', 0, {number}, '')"
        )

    files = maintain(spark, history, keep_days=30)

    kept = rows(tmp_path / "history", "changes")
    assert [(str(r["day"]), r["source_offset"]) for r in kept] == [("2100-01-01", 1), ("2100-01-01", 2)]
    assert files == {"lag": 0, "ends": 0, "changes": 1, "recommendations": 0}


def test_mistakes_about_the_place_are_one_sentence(runs: Callable[[], Any], tmp_path: Path) -> None:
    run = runs()
    run.pipeline().prepared()
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match="cannot be used"):
        keeper(run, tmp_path / "file" / "below").run_on(run.spark)
    with pytest.raises(SettingsError, match="No history is kept"):
        place_of(run.settings, None)
