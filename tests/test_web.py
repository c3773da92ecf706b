"""The worker's pages, asked over HTTP of the worker's own web application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from kagent.events import GroupEvent, TopicOffsets, encode
from kagent.settings import Cluster, Settings

EVIL = "<script>alert(1)</script>\x1b[2J"
NOW = 1_700_000_000_000


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """The pages of a worker that knows two groups; no broker is asked for anything."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "unused:1")
    from kagent.app import Worker, wire
    from kagent.worker.desk import Desk

    tables: Any = SimpleNamespace(members={}, lag={}, verdicts={}, coverage={}, ends={})
    worker = Worker(Settings(clusters={"main": Cluster(bootstrap="unused:1")}), "main")
    worker.desk = Desk(worker.settings, tables, worker.publish, worker.ask, "here", clock=lambda: NOW / 1000)
    for at, name in enumerate((EVIL, "plain")):
        commit = TopicOffsets("orders", None, [0, 1], [40, 50], [NOW, NOW], [1, 2])
        worker.desk.take(0, at, encode(GroupEvent("main", name, 0, NOW, [commit])))
    zero, end = np.zeros(2, np.int64), np.array([100, 50])
    sample = SimpleNamespace(
        topic="orders", topic_id=None, asked=NOW, seen=NOW, start=zero, end=end, stable=end
    )
    worker.desk.sampled("main", [sample], {}, {})
    app = wire(worker)
    app.finalize()
    app.web.init_server()
    async with TestClient(TestServer(app.web.web_app)) as asking:
        yield asking


async def test_metrics_speak_of_every_group_under_a_harmless_name(client: Any) -> None:
    answer = await client.get("/metrics")
    text = await answer.text()

    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert (
        'kafka_consumergroup_current_offset{cluster="main",consumergroup="plain",partition="1",topic="orders"} 50.0'
        in text
    )
    assert 'kagent_group_blind{cluster="main",group="plain"} 1.0' in text
    assert "\x1b" not in text


async def test_groups_are_listed_and_shown_one_by_one(client: Any) -> None:
    listed = await (await client.get("/api/groups")).json(content_type=None)
    one = await (await client.get("/api/groups/plain")).json(content_type=None)

    assert {g["group"] for g in listed["groups"]} == {"<script>alert(1)</script>\\x1b[2J", "plain"}
    assert [(p["partition"], p["committed"]) for p in one["groups"][0]["partitions"]] == [(0, 40), (1, 50)]
    assert [p["lag"] for p in one["groups"][0]["partitions"]] == [60, 0]
    assert (await client.get("/api/groups/nobody")).status == 404


async def test_a_worker_that_has_not_caught_up_is_not_ready(client: Any) -> None:
    assert (await client.get("/readyz")).status == 503
    assert (await client.get("/healthz")).status == 503
