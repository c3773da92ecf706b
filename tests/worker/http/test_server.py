"""The worker's pages, asked over HTTP of the worker's own web application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest
from aiohttp.test_utils import TestClient
from click.testing import CliRunner
from yarl import URL

from kagent.contract.events import GroupEvent, MembershipRecord, TopicOffsets, encode
from kagent.detect.state import JudgeState
from kagent.errors import KafkaError
from kagent.offsets import Record
from kagent.settings import Cluster, Settings, Topics
from kagent.testing import memory_tables
from tests.worker.http.scene import opened

if TYPE_CHECKING:
    from kagent.worker.process import Worker

CLUSTERS = {"main": Cluster(bootstrap="127.0.0.1:1")}
EVIL = "<script>alert(1)</script>\x1b[2J"
NOW = 1_700_000_000_000


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")


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


def made(settings: Settings, partition: int = 0, names: Sequence[str] = (EVIL, "plain")) -> Worker:
    """A worker that knows these groups on one partition; no broker is asked for anything."""
    from kagent.worker.engine import GroupEngine
    from kagent.worker.process import Worker

    tables: Any = memory_tables()
    worker = Worker(settings, "main")
    worker.desk = GroupEngine.of(
        settings, tables, worker.publish, worker.clusters.ask, f"here-{partition}", clock=lambda: NOW / 1000
    )
    for at, name in enumerate(names):
        commit = TopicOffsets("orders", None, [0, 1], [40, 50], [NOW, NOW], [1, 2])
        worker.desk.take(partition, at, encode(GroupEvent("main", name, 0, NOW, [commit])))
    if "plain" in names:
        records = [MembershipRecord(9, NOW, membership())]
        event = GroupEvent("main", "plain", 0, NOW, (), (), records)
        worker.desk.take(partition, len(names), encode(event))
    zero, end = np.zeros(2, np.int64), np.array([100, 50])
    sample = SimpleNamespace(
        topic="orders", topic_id=None, asked=NOW, seen=NOW, start=zero, end=end, stable=end
    )
    worker.desk.logs.sampled("main", [sample], {}, {})
    worker.ownership.ready, worker.ownership.loaded = True, {partition}
    return worker


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Opens the pages of a worker."""
    async with AsyncExitStack() as stack:

        async def open_(worker: Worker) -> TestClient[Any, Any]:
            return await opened(stack, worker)

        yield open_


@pytest.fixture
async def pages(serve: Any) -> Callable[..., Any]:
    """Opens the pages of a worker with these settings."""

    async def open_(**said: Any) -> Any:
        return await serve(made(Settings(clusters=CLUSTERS, topics=Topics(partitions=1), **said)))

    return open_


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


async def test_a_worker_that_has_not_caught_up_is_not_ready(serve: Any) -> None:
    worker = made(Settings(clusters=CLUSTERS, topics=Topics(partitions=1)))
    worker.ownership.ready = False
    client = await serve(worker)

    assert (await client.get("/readyz")).status == 503
    assert (await client.get("/healthz")).status == 503
    assert (await (await client.get("/api/groups")).json())["missing_partitions"] == [0]


@pytest.mark.slow
async def test_whichever_worker_is_asked_answers_for_all_and_says_who_did_not(serve: Any) -> None:
    settings = Settings(clusters=CLUSTERS, topics=Topics(partitions=3))
    workers = [made(settings, 0, ["a", "plain"]), made(settings, 1, ["b/x"]), made(settings, 2, [EVIL])]
    clients = [await serve(worker) for worker in workers]
    for worker, client in zip(workers, clients, strict=True):
        worker.app.conf.canonical_url = client.make_url("/")
    everybody: Any = {str(c.make_url("/")): {"kagent-group-events": [n]} for n, c in enumerate(clients)}
    for worker in workers:
        assignor: Any = worker.app.assignor
        assignor.external_topic_distribution = everybody

    said = [await (await client.get("/api/groups")).json() for client in clients]
    assert said[0] == said[1] == said[2]
    assert (said[0]["complete"], said[0]["workers"]) == (True, ["here-0", "here-1", "here-2"])
    assert [g["group"] for g in said[0]["groups"]] == [
        "a",
        "plain",
        "b/x",
        "<script>alert(1)</script>\\x1b[2J",
    ]
    for name in ("plain", "b%2Fx", quote("<script>alert(1)</script>\\x1b[2J", safe=""), quote(EVIL, safe="")):
        found = [
            await (await client.get(URL(f"/api/groups/{name}", encoded=True))).json() for client in clients
        ]
        assert [len(f["groups"]) for f in found] == [1, 1, 1]
        assert all(f["groups"][0]["partitions"] for f in found)

    await clients[2].close()
    left = await clients[0].get("/api/groups")
    part = await left.json()
    assert (part["complete"], part["missing_partitions"]) == (False, [2])
    assert [g["group"] for g in part["groups"]] == ["a", "plain", "b/x"]
    assert [u["worker"] for u in part["unanswered"]] == [list(everybody)[2]]
    assert (await clients[0].get("/api/groups/plain")).status == 200
    assert (await clients[0].get("/api/groups/gone")).status == 503  # it may be one of the silent worker's


async def test_without_the_topic_the_open_incidents_are_not_said_to_be_none(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: Any) -> None:
        raise KafkaError("127.0.0.1:1 cannot be reached.")

    monkeypatch.setattr("kagent.worker.http.endpoints.current", unreadable)

    answer = await client.get("/api/recommendations")

    assert answer.status == 503
    assert "127.0.0.1:1" in (await answer.json())["error"]


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
    from kagent.worker.dead_letters import dead_letter

    message = SimpleNamespace(topic="t", partition=1, offset=2, key=b"main/g", value=b'"host":"10.1.2.3"')

    letter = dead_letter(message, KeyError("10.1.2.3"), True)

    assert letter == {"from": "t-1@2", "why": "KeyError", "kind": "KeyError", "key_hex": b"main/g".hex()}
    assert "value_hex" in dead_letter(message, KeyError("k"), False)


async def explained(client: Any, tmp_path: Path, *words: str) -> tuple[int, str]:
    """`kagent explain` in a process's own thread, with a cluster that cannot be reached."""
    from kagent.cli import root

    config = tmp_path / "kagent.yaml"
    config.write_text("clusters: {main: {bootstrap: '127.0.0.1:1'}}")
    arguments = ["--config", str(config), "explain", *words, "--worker", str(client.make_url("/"))]
    result = await asyncio.to_thread(CliRunner().invoke, root, arguments)
    return result.exit_code, result.output or str(result.exception)


async def test_a_story_that_cannot_be_told_costs_itself_and_is_named(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kagent.worker.http import server

    def failing(*_: Any) -> dict[str, Any]:
        raise ValueError("partition -1 cannot be")

    monkeypatch.setattr(server, "explain", failing)
    client = await serve(made(Settings(clusters=CLUSTERS, topics=Topics(partitions=1))))

    answer = await client.get("/api/groups/plain")

    assert answer.status == 200
    (group,) = (await answer.json())["groups"]
    assert group["lag"] == 60
    assert "partition -1 cannot be" in group["set_aside"]


async def test_the_worker_tells_the_story_of_a_group_with_its_past(serve: Any, tmp_path: Path) -> None:
    worker = made(Settings(clusters=CLUSTERS, topics=Topics(partitions=1)))
    for entry in worker.desk.index.entries(0).values():
        worker.desk.index.judged(
            0,
            entry,
            JudgeState(first_seen=NOW - 7_200_000, cooldown_until=NOW + 600_000, track={"opened": 2}),
        )
    client = await serve(worker)
    metrics = await (await client.get("/metrics")).text()
    assert 'kagent_incidents{cluster="main",what="opened"} 4.0' in metrics

    code, output = await explained(client, tmp_path, "plain", "--json")

    assert code == 0, output
    story = json.loads(output)
    assert (story["group"], story["known_since"], story["track"]) == ("plain", NOW - 7_200_000, {"opened": 2})
    assert [(t["topic"], t["lag"]) for t in story["topics"]] == [("orders", 60)]
    assert len(story["members"]) == 2

    code, output = await explained(client, tmp_path, EVIL)
    assert code == 0
    assert "\x1b" not in output
    assert "In cooldown for another 10 min" in output
    assert "Incidents so far: 2 opened." in output
    assert f"As the worker at {client.make_url('/')} judged it at " in output


async def test_a_group_that_the_named_worker_does_not_know_is_not_looked_for_elsewhere(
    client: Any, tmp_path: Path
) -> None:
    code, output = await explained(client, tmp_path, "nobody")

    assert code != 0
    assert "does not know the group nobody" in output


def test_without_a_worker_there_the_cluster_itself_is_looked_at() -> None:
    from kagent.commands.explain import AskedGroup, worker_story, worker_url
    from kagent.embedded.broker import free_port
    from kagent.settings import WorkerSettings

    url = worker_url(Settings(clusters=CLUSTERS, worker=WorkerSettings(web_port=free_port())))

    assert url.startswith("http://127.0.0.1:")
    assert worker_story(url, AskedGroup("plain", "main"), 1, False) is None
    with pytest.raises(KafkaError, match="cannot be reached"):
        worker_story(url, AskedGroup("plain", "main"), 1, True)


async def test_an_ignored_group_says_so_and_is_not_listed(pages: Any) -> None:
    client = await pages(ignore=["plain"])

    answer = await client.get("/api/groups/plain")

    assert answer.status == 200
    assert (await answer.json())["groups"][0]["ignored"] is True
    assert "plain" not in {g["group"] for g in (await (await client.get("/api/groups")).json())["groups"]}
