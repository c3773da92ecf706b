"""``/api/v1`` and the page's files, asked over HTTP of the worker's own web application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import jsonschema
import orjson
import pytest
from aiohttp.test_utils import TestClient

from kagent.contract.recommendation import (
    Action,
    ActionType,
    Basis,
    GroupKind,
    MemberWork,
    Move,
    Recommendation,
    Resolution,
    Severity,
    Skew,
    Status,
    Verdict,
)
from kagent.detect.state import Useful
from kagent.settings import Settings, Topics
from kagent.strategies import STRATEGIES
from tests.worker.http.scene import opened
from tests.worker.http.test_server import CLUSTERS, EVIL, NOW, made


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")


def settings(partitions: int = 1, **more: Any) -> Settings:
    return Settings(clusters=CLUSTERS, topics=Topics(partitions=partitions), **more)


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Opens the pages of a worker whose groups were judged once."""
    async with AsyncExitStack() as stack:

        async def open_(worker: Any, partition: int = 0) -> TestClient[Any, Any]:
            await worker.desk.tick(partition, NOW)
            return await opened(stack, worker)

        yield open_


def message(group: str, status: Status = Status.OPEN, **more: Any) -> Recommendation:
    return Recommendation(
        id="01J",
        cluster="main",
        group=group,
        status=status,
        verdict=Verdict.REBALANCE,
        severity=Severity.TICKET,
        confidence="high",
        reason=f"billing-west has most of the lag {EVIL}",
        group_kind=GroupKind.CLASSIC_JAVA,
        opened_at=NOW - 60_000,
        as_of=NOW,
        valid_until=NOW + 60_000,
        skew=Skew(now=2.0),
        members=[MemberWork(member="pod-0", partitions=1, work_after=30.0)],
        moves=[
            Move.model_validate({"topic": "orders", "partition": 0, "from": "x", "to": "pod-0", "lag": 60})
        ],
        move_count=1,
        basis=Basis(generation=4, digest="d"),
        **more,
    )


async def get(client: Any, path: str, **params: str) -> Any:
    answer = await client.get(path, params=params)
    assert answer.status == 200, await answer.text()
    return await answer.json()


async def test_the_status_names_what_is_judged_blind_and_open(serve: Any) -> None:
    worker = made(settings())
    worker.desk.published["main/plain"] = message("plain")
    said = await get(await serve(worker), "/api/v1/status")

    assert (said["complete"], said["workers"]) == (True, ["here-0"])
    cluster = said["clusters"][0]
    assert (cluster["cluster"], cluster["status"], cluster["blind"], cluster["open"]) == (
        "main",
        "blind",
        2,
        0,
    )
    assert "kagent pipeline" in cluster["reason"]
    assert cluster["advice"].startswith("Start the pipeline")
    assert [row["group"] for row in said["open"]] == ["plain"]  # blind does not hide what is open
    assert "\x1b" not in orjson.dumps(said).decode()


async def test_groups_are_filtered_counted_and_cut_into_pages(serve: Any) -> None:
    names = [f"group-{n:03}" for n in range(30)]
    client = await serve(made(settings(), names=names))

    page = await get(client, "/api/v1/groups", limit="10", offset="20")
    one = await get(client, "/api/v1/groups", search="GROUP-007")

    assert page["total"] == 30
    assert [row["group"] for row in page["groups"]] == names[20:]
    assert page["facets"]["condition"] == {"blind": 30}
    assert {row["seconds_behind"] for row in page["groups"]} == {None}
    assert [row["group"] for row in one["groups"]] == ["group-007"]
    assert one["groups"][0]["lag_records"] == 60
    assert (await get(client, "/api/v1/groups", condition="open"))["total"] == 0


@pytest.mark.parametrize("params", [{"limit": "0"}, {"limit": "501"}, {"offset": "-1"}, {"limit": "x"}])
async def test_a_wrong_parameter_is_told_in_a_sentence(serve: Any, params: dict[str, str]) -> None:
    client = await serve(made(settings()))

    answer = await client.get("/api/v1/groups", params=params)

    assert answer.status == 400
    assert next(iter(params)) in (await answer.json())["error"]


@pytest.mark.parametrize(
    ("params", "known"),
    [
        ({"condition": "bad"}, "open, suspect, blind, no_members, healthy"),
        ({"verdict": "skewed"}, "balanced, rebalance"),
        ({"severity": "page"}, "search, verdict, condition"),
    ],
)
async def test_a_filter_that_there_is_not_is_refused_with_those_that_there_are(
    serve: Any, params: dict[str, str], known: str
) -> None:
    client = await serve(made(settings()))

    answer = await client.get("/api/v1/groups", params=params)

    assert answer.status == 400
    said = (await answer.json())["error"]
    assert said.startswith(next(iter(params)))
    assert known in said


async def test_an_empty_filter_asks_for_nothing(serve: Any) -> None:
    client = await serve(made(settings(), names=["one", "two"]))

    assert (await get(client, "/api/v1/groups", condition="", verdict=""))["total"] == 2


async def test_a_group_is_shown_as_a_map_with_its_moves_and_its_past(serve: Any) -> None:
    worker = made(settings())
    worker.desk.published["main/plain"] = message("plain")
    said = await get(await serve(worker), "/api/v1/group", group="plain", cluster="main")

    names = [m["name"] for m in said["members"]]
    assert sorted(m["lag_records"] for m in said["members"]) == [0, 60]
    assert said["map"]["lag_records"] == [60, 0]
    assert said["map"]["partition"] == [0, 1]
    assert [names[at] for at in said["map"]["moves_to"] if at >= 0] == ["pod-0"]
    assert next(m for m in said["members"] if m["name"] == "pod-0")["work_after"] == 30.0
    assert [e["what"] for e in said["timeline"]] == ["confirmed", "opened"]
    assert said["recommendation"]["moves"][0]["from"] == "x"
    assert said["row"]["incident"]["severity"] == "ticket"
    assert any(line.startswith("plain: ") for line in said["story"])
    assert "\x1b" not in orjson.dumps(said).decode()


@pytest.mark.parametrize("useful", [None, Useful(1, "spread", 100.0)])
async def test_how_many_members_would_help_is_a_number_that_scalers_read(
    serve: Any, useful: Useful | None
) -> None:
    worker = made(settings())
    client = await serve(worker)
    entry = worker.desk.index.entries(0)["main/plain"]
    assert entry.judged is not None
    entry.judged = replace(entry.judged, useful=useful)
    await worker.desk.tick(0, NOW)

    row = (await get(client, "/api/v1/group", group="plain"))["row"]
    old = await (await client.get("/api/groups/plain")).json()

    assert row["useful_members"] == (useful and {"now": 2, "useful": 1, "why_not_more": "spread"})
    assert old["groups"][0]["useful_members"] == row["useful_members"]


@pytest.mark.parametrize("name", [EVIL, "<script>alert(1)</script>\\x1b[2J"])
async def test_a_hostile_name_is_found_as_it_is_and_as_it_is_shown(serve: Any, name: str) -> None:
    said = await get(await serve(made(settings())), "/api/v1/group", group=name)

    assert said["row"]["group"] == "<script>alert(1)</script>\\x1b[2J"


async def test_a_published_message_is_seen_before_the_next_tick(serve: Any) -> None:
    worker = made(settings())
    client = await serve(worker)
    first = await client.get("/api/v1/status")
    tag = first.headers["ETag"]
    again = await client.get("/api/v1/status", headers={"If-None-Match": tag})
    assert (again.status, await again.read()) == (304, b"")

    worker.desk.live.published(0, "main/plain", message("plain"))
    answer = again
    async with asyncio.timeout(20):  # the answers of one moment are shared by all who ask
        while answer.status == 304:
            answer = await client.get("/api/v1/status", headers={"If-None-Match": tag})
    said = await answer.json()
    assert said["open"][0]["incident"]["id"] == "01J"


@pytest.mark.parametrize(
    ("feasible", "told"),
    [
        (["no", "unknown", "yes"], "c"),
        (["no", "unknown", "unknown"], "b"),
        (["no", "no", "no"], None),
        ([], None),
    ],
)
async def test_the_list_says_of_an_incident_what_to_do_first(
    serve: Any, feasible: list[Any], told: str | None
) -> None:
    worker = made(settings())
    actions = [
        Action(type=ActionType.WAIT, how=how, feasible=f) for how, f in zip("abc", feasible, strict=False)
    ]
    client = await serve(worker)
    worker.desk.live.published(0, "main/plain", message("plain", actions=actions))

    said = await get(client, "/api/v1/status")

    assert said["open"][0]["incident"]["advice"] == told


async def test_a_resolved_incident_leaves_the_list_and_stays_in_the_past(serve: Any) -> None:
    worker = made(settings())
    client = await serve(worker)
    worker.desk.live.published(0, "main/plain", message("plain"))
    resolved = message("plain", Status.RESOLVED, resolution=Resolution.FOLLOWED)
    worker.desk.published["main/plain"] = resolved
    worker.desk.live.published(0, "main/plain", resolved)

    said = await get(client, "/api/v1/group", group="plain")

    assert said["row"]["incident"] is None
    assert [e["what"] for e in said["timeline"]] == ["confirmed", "opened", "resolved"]
    assert said["timeline"][2]["text"].startswith("followed: ")


async def test_every_worker_answers_for_all_and_names_who_is_silent(serve: Any) -> None:
    common = settings(3)
    workers = [made(common, 0, ["a", "plain"]), made(common, 1, ["b/x"]), made(common, 2, [EVIL])]
    clients = [await serve(worker, at) for at, worker in enumerate(workers)]
    for worker, client in zip(workers, clients, strict=True):
        worker.app.conf.canonical_url = client.make_url("/")
    everybody: Any = {str(c.make_url("/")): {"kagent-group-events": [n]} for n, c in enumerate(clients)}
    for worker in workers:
        assignor: Any = worker.app.assignor
        assignor.external_topic_distribution = everybody

    listed = [await get(client, "/api/v1/groups") for client in clients]
    found = [await get(client, "/api/v1/group", group="b/x") for client in clients]
    assert listed[0] == listed[1] == listed[2]
    assert listed[0]["total"] == 4
    assert listed[0]["complete"]
    assert all(f["row"]["group"] == "b/x" for f in found)

    await clients[2].close()
    workers[0].desk.live.version += 1
    left = await get(clients[0], "/api/v1/groups", search="a")
    assert (left["complete"], left["missing_partitions"]) == (False, [2])
    assert [u["worker"] for u in left["unanswered"]] == [list(everybody)[2]]
    assert (await clients[0].get("/api/v1/group", params={"group": "gone"})).status == 503


async def test_the_series_of_a_group_begin_with_its_first_judgement(serve: Any) -> None:
    said = await get(await serve(made(settings())), "/api/v1/group/series", group="plain")

    assert said["group"]["time_s"] == [NOW // 1000]
    # blind: no number may be taken for one
    assert (said["group"]["lag"], said["group"]["seconds_behind"]) == ([None], [None])


@pytest.mark.slow
async def test_a_what_if_is_what_plan_and_assign_answer(serve: Any) -> None:
    from click.testing import CliRunner

    from kagent.cli import root

    client = await serve(made(settings()))
    line = {
        "id": "g",
        "partitions_per_topic": {"orders": 6},
        "members": [
            {"id": f"m{n}", "topics": ["orders"], "owned": [["orders", n], ["orders", n + 3]]}
            for n in range(3)
        ],
        "lags": {"orders": [[p, (p + 1) ** 3 * 10] for p in range(6)]},
        "assumed": [],
    }
    for strategy in STRATEGIES:
        for members, moves in ((0, None), (2, 1), (-1, 3)):
            asked = {"line": line, "members": members, "max_moves": moves, "strategy": strategy}
            answer = await client.post("/api/v1/what-if", json=asked)
            assert answer.status == 200, await answer.text()
            said = await answer.json()
            text = orjson.dumps(said["line"]).decode()
            bound = [] if moves is None else ["--max-moves", str(moves)]
            planned = CliRunner().invoke(root, ["plan", "--json", *bound], input=text)
            assigned = CliRunner().invoke(root, ["assign", "--json", "--strategy", strategy], input=text)
            assert said["plan"] == orjson.loads(planned.stdout)
            expected = orjson.loads(assigned.stdout)
            if said["assign"]["error"] is None:
                assert said["assign"] == expected
            assert (said["assign"]["error"] is None) == (expected["error"] is None)
            assert len(said["line"]["members"]) == 3 + members


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "JSON"),
        (b"[]", "line"),
        (b'{"line": {}, "strategy": "best"}', "strategy"),
        (b'{"line": {}, "members": 1.5}', "members"),
        (b'{"line": {"members": [{"id": "a"}]}, "members": -1}', "no member would be left"),
        (b'{"line": {"partitions_per_topic": {"t": 200000}}}', "partitions_per_topic"),
    ],
)
async def test_a_what_if_that_cannot_be_answered_says_why(serve: Any, body: bytes, named: str) -> None:
    client = await serve(made(settings()))

    answer = await client.post("/api/v1/what-if", data=body)

    assert answer.status == 400
    assert named in (await answer.json())["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "named"),
    [
        ("GET", "/api/v1/nothing", 404, "openapi.json"),
        ("POST", "/api/v1/status", 405, "use GET"),
        ("DELETE", "/api/v1/what-if", 405, "use POST"),
    ],
)
async def test_what_aiohttp_refuses_is_json_too(
    serve: Any, method: str, path: str, status: int, named: str
) -> None:
    client = await serve(made(settings()))

    answer = await client.request(method, path)

    assert (answer.status, answer.content_type) == (status, "application/json")
    assert named in (await answer.json())["error"]
    assert "Content-Security-Policy" in answer.headers


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/groups"])
async def test_an_unexpected_error_is_json_and_its_traceback_is_in_the_log_alone(
    serve: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    worker = made(settings())
    client = await serve(worker)
    for part in ("live", "index"):  # a defect: every answer about groups fails
        monkeypatch.setattr(type(worker.desk), part, None)

    answer = await client.get(path)

    assert (answer.status, answer.content_type) == (500, "application/json")
    assert "the worker's log has its traceback" in (await answer.json())["error"]
    assert "Traceback" in caplog.text


async def test_every_answer_is_what_the_openapi_document_says(serve: Any) -> None:
    worker = made(settings())
    worker.desk.published["main/plain"] = message("plain")
    client = await serve(worker)
    document = await get(client, "/api/v1/openapi.json")
    asked = {
        "/api/v1/status": {},
        "/api/v1/groups": {},
        "/api/v1/group": {"group": "plain"},
        "/api/v1/group/series": {"group": "plain"},
    }

    for path, params in asked.items():
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        whole = {**schema, "components": document["components"]}
        jsonschema.validate(await get(client, path, **params), whole, jsonschema.Draft202012Validator)
    assert set(document["paths"]) == {
        *asked,
        "/api/v1/group/scenario",
        "/api/v1/what-if",
        "/api/v1/openapi.json",
    }


async def test_the_page_is_served_at_its_links_under_a_strict_policy(serve: Any) -> None:
    client = await serve(made(settings()))
    html = {"Accept": "text/html"}

    for path, base in (
        ("/", "./"),
        ("/ui", "./"),
        ("/ui/", "../"),
        ("/ui/groups", "../"),
        ("/ui/group", "../"),
    ):
        answer = await client.get(path, headers=html)
        text = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert f'<base href="{base}">' in text
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert (await client.get("/ui/app.js")).headers["Content-Type"].startswith("text/javascript")
    assert (await client.get("/ui/../app.py")).status == 404


async def test_programs_that_ask_for_the_root_are_told_ok_only_while_the_cluster_is_watched(
    serve: Any,
) -> None:
    worker = made(settings())
    client = await serve(worker)
    seen = worker.desk.live.summaries["main", 0]

    worker.desk.live.summaries["main", 0] = replace(seen, status="watching", reason=None)
    assert await (await client.get("/")).json() == {"status": "OK"}
    worker.desk.live.summaries["main", 0] = replace(seen, status="blind", reason="no progress")
    assert await (await client.get("/")).json() == {"status": "blind", "reason": "no progress"}


TOKEN = {"login": "token", "token": "s3cret"}


async def test_without_the_token_there_is_no_data(serve: Any) -> None:
    client = await serve(made(settings(worker={"http": TOKEN})))

    for path in ("/api/v1/status", "/api/groups", "/metrics", "/api/own", "/api/own/v1/status", "/table/"):
        assert (await client.get(path)).status == 401, path
        wrong = await client.get(path, headers={"Authorization": "Bearer s3cre"})
        assert wrong.status == 401, path
    right = await client.get("/api/v1/status", headers={"Authorization": "Bearer s3cret"})
    assert right.status == 200
    assert (await client.get("/readyz")).status == 200
    assert (await client.get("/ui/", headers={"Accept": "text/html"})).status == 200


async def test_whom_the_proxy_has_logged_in_is_let_in(serve: Any) -> None:
    client = await serve(made(settings(worker={"http": {"login": "proxy", "proxy_header": "X-User"}})))

    assert (await client.get("/api/v1/status")).status == 401
    assert (await client.get("/api/v1/status", headers={"X-User": "anna"})).status == 200


async def test_workers_with_a_login_answer_each_other(serve: Any) -> None:
    common = settings(2, worker={"http": TOKEN})
    workers = [made(common, 0, ["a"]), made(common, 1, ["b"])]
    clients = [await serve(worker, at) for at, worker in enumerate(workers)]
    for worker, client in zip(workers, clients, strict=True):
        worker.app.conf.canonical_url = client.make_url("/")
        everybody: Any = {str(c.make_url("/")): {"kagent-group-events": [n]} for n, c in enumerate(clients)}
        assignor: Any = worker.app.assignor
        assignor.external_topic_distribution = everybody

    answer = await clients[0].get("/api/v1/groups", headers={"Authorization": "Bearer s3cret"})
    old = await clients[0].get("/api/groups", headers={"Authorization": "Bearer s3cret"})

    assert [row["group"] for row in (await answer.json())["groups"]] == ["a", "b"]
    assert (await old.json())["complete"]
