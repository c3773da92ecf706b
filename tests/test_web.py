"""The worker's pages, asked over HTTP of the worker's own web application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer

from kagent.events import GroupEvent, MembershipRecord, TopicOffsets, encode
from kagent.offsets import Record
from kagent.settings import Cluster, Settings

EVIL = "<script>alert(1)</script>\x1b[2J"
NOW = 1_700_000_000_000


def membership() -> dict[str, Any]:
    """The record of a classic group whose two members share the topic."""
    members = [
        {
            "memberId": f"{client}-7f3a",
            "groupInstanceId": instance,
            "clientId": client,
            "clientHost": "/10.1.2.3",
            "sessionTimeout": 10_000,
            "subscription_decoded": {
                "version": 1,
                "topics": ["orders"],
                "userData": None,
                "ownedPartitions": [],
            },
            "assignment_decoded": {"assignedPartitions": [{"topic": "orders", "partitions": [at]}]},
        }
        for at, (client, instance) in enumerate((("billing-west", None), ("billing-east", "pod-0")))
    ]
    value = {
        "protocolType": "consumer",
        "generation": 4,
        "protocol": "range",
        "leader": "",
        "members": members,
    }
    return Record("GroupMetadata", 2, 3, {"group": "plain"}, value).to_json()


def made(settings: Settings) -> Any:
    """A worker that knows two groups; no broker is asked for anything."""
    from kagent.app import Worker, wire
    from kagent.worker.desk import Desk

    tables: Any = SimpleNamespace(members={}, lag={}, verdicts={}, coverage={}, ends={})
    worker = Worker(settings, "main")
    worker.desk = Desk(worker.settings, tables, worker.publish, worker.ask, "here", clock=lambda: NOW / 1000)
    for at, name in enumerate((EVIL, "plain")):
        commit = TopicOffsets("orders", None, [0, 1], [40, 50], [NOW, NOW], [1, 2])
        worker.desk.take(0, at, encode(GroupEvent("main", name, 0, NOW, [commit])))
    records = [MembershipRecord(9, NOW, membership())]
    worker.desk.take(0, 2, encode(GroupEvent("main", "plain", 0, NOW, (), (), records)))
    zero, end = np.zeros(2, np.int64), np.array([100, 50])
    sample = SimpleNamespace(
        topic="orders", topic_id=None, asked=NOW, seen=NOW, start=zero, end=end, stable=end
    )
    worker.desk.sampled("main", [sample], {}, {})
    app = wire(worker)
    app.finalize()
    app.web.init_server()
    return app.web.web_app


@pytest.fixture
async def pages(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """Opens the pages of a worker with these settings."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "unused:1")
    async with AsyncExitStack() as stack:

        async def open_(**said: Any) -> TestClient[Any, Any]:
            settings = Settings(clusters={"main": Cluster(bootstrap="unused:1")}, **said)
            return await stack.enter_async_context(TestClient(TestServer(made(settings))))

        yield open_


@pytest.fixture
async def client(pages: Any) -> Any:
    return await pages()


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


async def test_hidden_hosts_and_client_ids_appear_on_no_page(pages: Any) -> None:
    hidden = await pages(redact=["host", "client_id"], redact_salt="pepper")
    said = [
        await (await hidden.get(path)).text() for path in ("/metrics", "/api/groups", "/api/groups/plain")
    ]

    for text in said:
        assert "10.1.2.3" not in text
        assert "billing" not in text
    names = [
        m["member"] for m in (await (await hidden.get("/api/groups/plain")).json())["groups"][0]["members"]
    ]
    assert len(set(names)) == 2
    assert "pod-0" in names  # an instance id is a name that its owner chose
    assert all(f'member="{name}"' in said[0] for name in names)


def test_a_dead_letter_of_a_kagent_that_hides_names_says_only_where_the_event_lies() -> None:
    from kagent.web import dead_letter

    message = SimpleNamespace(topic="t", partition=1, offset=2, key=b"main/g", value=b'"host":"10.1.2.3"')

    letter = dead_letter(message, KeyError("10.1.2.3"), True)

    assert letter == {"from": "t-1@2", "why": "KeyError", "kind": "KeyError", "key_hex": b"main/g".hex()}
    assert "value_hex" in dead_letter(message, KeyError("k"), False)
