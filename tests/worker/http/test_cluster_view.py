"""The workers' parts as one answer, and answers that are none."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from kagent.settings import WorkerSettings
from kagent.worker.http.cluster_view import WorkerReply, ask, merge, reached_at

PARTITIONS = 6


@given(st.lists(st.sets(st.integers(0, PARTITIONS - 1)), max_size=5))
def test_every_group_is_told_once_and_every_gap_is_named(held: list[set[int]]) -> None:
    parts = [WorkerReply(f"w{n}", {p: [{"group": f"g{p}"}] for p in has}) for n, has in enumerate(held)]

    whole = merge(parts, PARTITIONS)

    known = set().union(*held) if held else set()
    assert sorted(g["group"] for g in whole.groups) == sorted(f"g{p}" for p in known)
    assert whole.missing == sorted(set(range(PARTITIONS)) - known)
    assert whole.complete == (known == set(range(PARTITIONS)))
    assert all(WorkerReply.from_json(part.to_json()) == part for part in parts)


def test_a_worker_without_partitions_that_is_silent_leaves_nothing_out() -> None:
    whole = merge([WorkerReply("w", {0: []})], 1, {"http://b:1": "no answer in time"})

    assert whole.to_json() == {
        "complete": True,
        "workers": ["w"],
        "unanswered": [{"worker": "http://b:1", "why": "no answer in time"}],
        "missing_partitions": [],
        "groups": [],
    }


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"worker": "w", "partitions": []}', '{"worker": "w", "partitions": {"x": 1}}']
)
async def test_an_answer_that_cannot_be_read_is_no_answer(body: str) -> None:
    async def said(_: web.Request) -> web.Response:
        return web.Response(text=body)

    application = web.Application()
    application.router.add_get("/api/own", said)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        url = str(server.make_url("/"))
        parts, silent = await ask(session, [url], {})

    assert (parts, silent) == ([], {url: "its answer cannot be read"})


@pytest.mark.parametrize(
    ("said", "bootstrap", "host"),
    [
        ({"advertised_host": "kagent-0.kagent"}, "a:1", "kagent-0.kagent"),
        ({"web_host": "127.0.0.2"}, "a:1", "127.0.0.2"),
        ({"web_host": "::1"}, "a:1", "[::1]"),
        ({}, "127.0.0.1:9092,b:1", "127.0.0.1"),
    ],
)
def test_where_a_worker_is_reached(said: dict[str, Any], bootstrap: str, host: str) -> None:
    assert reached_at(WorkerSettings(**said), bootstrap) == host
