"""Summaries that no worker sends are counted and not added up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kagent.contract.admission import INT64, MAX_AHEAD_MS
from kagent.worker.status import Summary, state_message
from kagent.worker.tick_reader import TickReader
from tests.worker.test_engine import NOW, desk

FORGED = {"unknown_cluster": ("elsewhere", 0), "out_of_bounds": ("main", 999)}


def reader(refused: list[Any]) -> TickReader:
    async def refuse(what: str, message: Any, error: Any) -> None:
        refused.append((what, error.reason))

    unused: Any = None
    letters: Any = SimpleNamespace(refuse=refuse)
    return TickReader(desk(), unused, unused, letters, unused, unused)


def message(cluster: str, partition: int, time: int = NOW) -> Any:
    summary = Summary(cluster, partition, "w:1", time, "watching", None, None, judged=10**9, open=10**9)
    return SimpleNamespace(value=orjson.dumps({"type": "summary", "summary": summary.to_json()}))


@pytest.mark.parametrize("reason", FORGED)
async def test_a_summary_of_what_is_not_there_is_not_counted_for_ever(reason: str) -> None:
    refused: list[Any] = []
    made = reader(refused)

    await made.take(message("main", 1))
    await made.take(message(*FORGED[reason]))

    assert refused == ([("tick", reason)] if reason == "out_of_bounds" else [])
    assert set(made.engine.summaries) == {("main", 1)}


@pytest.mark.parametrize("time", [NOW + MAX_AHEAD_MS + 1, INT64])
async def test_a_summary_of_a_time_to_come_does_not_hide_for_ever_that_its_partition_has_no_worker(
    time: int,
) -> None:
    made = reader([])

    await made.take(message("main", 1, time))

    [found] = made.engine.summaries.values()
    state = state_message("main", [found], 2, NOW + 60_000, 1.0)
    assert (state.status, state.workers) == ("blind", 0)
