"""A history whose disk fills up loses nothing, holds up no event, and is good for a report afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from kagent.commands import past as commands
from kagent.commands.report import command as report_command
from kagent.errors import KafkaError
from kagent.history.history_service import Keeper
from kagent.history.past_range import History
from tests.fixtures.small_disk import filled, small_disk

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "1m") as place:
        yield place


def test_a_full_disk_is_one_sentence_and_nothing_is_lost_or_held_up(
    runs: Callable[[], Any],
    kafka: Any,
    disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, topic = runs(), kafka.topic("disk")
    name, cluster = run.settings.cluster()
    kafka.fill(topic, 40)
    place = History(str(disk / "history"))

    def write() -> None:
        Keeper(run.settings, name, cluster, place, available_now=True).run_on(run.spark)

    kafka.commit("disk", topic, dict.fromkeys(range(4), 1))
    run.catch_up()
    write()
    with filled(disk):
        kafka.commit("disk", topic, {p: 20 + p for p in range(4)})
        run.catch_up()
        with pytest.raises(
            KafkaError, match="The disk is full: free some space; the stream has kept its place"
        ):
            write()
        kafka.commit("disk", topic, {p: 30 + p for p in range(4)})
        run.catch_up()

        assert run.committed()["disk"] == {(topic, p): 30 + p for p in range(4)}
    write()
    rows = DeltaTable(place.table("lag")).to_pyarrow_table().to_pylist()
    mine = sorted((r["partition"], r["committed"]) for r in rows if r["group"] == "disk")
    # what was written in one batch is one row a partition, the newest; so the commits on the full disk may be superseded
    assert set(mine) >= {(p, c) for p in range(4) for c in (1, 30 + p)}
    assert len(mine) == len(set(mine))
    assert {(r["partition"], r["lag"]) for r in rows if r["committed"] == 33} >= {(3, 7)}

    monkeypatch.setattr(commands, "started", lambda *_: nullcontext(run.spark))
    page = tmp_path / "page.html"
    asked = ["--path", place.place, "--from", "1h", "--group", "disk", "-o", str(page)]
    ran = CliRunner().invoke(report_command, asked)
    assert ran.stdout.endswith("page.html: 1 group.\n"), ran.output
    html = page.read_text()
    assert "<h2>disk</h2>" in html
    figures = re.search(r"const figures = (.*);\n", html)
    assert figures
    heat = json.loads(figures[1])[-1]["data"][0]
    assert heat["y"] == [f"{topic}-{p}" for p in range(4)]
    assert [row[-1] for row in heat["z"]] == [10 - p for p in range(4)]
