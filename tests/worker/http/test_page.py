"""The page in a real Chromium, shown by a real worker's web application (``make browser`` installs what this needs)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from aiohttp import ClientConnectorCertificateError, ClientConnectorError, ClientError, ClientSession, web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner
from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from kagent.cli import root
from kagent.history import report
from kagent.history.past_range import Range
from tests.worker.conftest import Kagent
from tests.worker.http.scene import POLICY, Load, Scene, made

pytestmark = [pytest.mark.slow]

ROOT = Path(__file__).parents[3]
AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 120_000
EVIL = '<img src="http://evil.example/x" onerror="alert(1)">\u202egro\x1b[2J'
LONG = "l" * 10_000


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")
    expect.set_options(timeout=PATIENCE_MS)


def loads() -> list[Load]:
    """A skewed group, one with a partition that stands still, healthy ones, and names that nobody would wish for."""
    skewed = [270.0 if p < 6 else 40.0 for p in range(24)]
    return [
        Load("orders", 4, [*skewed[:2], 560.0, *skewed[3:]], capacity=1200),
        Load("payments", 3, [30.0] * 9, stuck=4),
        Load("reports", 2, [5.0, 3.0]),
        Load(EVIL, 2, [1.0, 2.0]),
        Load(LONG, 1, [1.0]),
    ]


async def watched(groups: list[Load], minutes: float = 20, **more: Any) -> Scene:
    scene = made(groups, minutes, **more)
    for _ in range(int(minutes * 6)):
        await scene.step()
    return scene


@pytest.fixture(scope="module")
def once() -> Scene:
    """Twenty minutes of all groups; nobody changes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")
        return asyncio.run(
            watched(loads(), worker={"tick": 60})
        )  # judged once: this page is not old for four minutes


@pytest.fixture
def seen(once: Scene) -> Scene:
    return once.shown_anew()


async def assert_nobody_is_kept_out(page: Page, about: Any = "") -> None:
    """axe-core finds nothing, and nothing has to be scrolled sideways."""
    assert AXE.exists(), "axe-core is not there: run make browser"
    await page.evaluate("() => { for (const d of document.querySelectorAll('details')) d.open = true; }")
    await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run()")
    broken = [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found["violations"]]
    assert broken == [], about
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, about


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "there is no chromium: run make browser"
    async with async_playwright() as playwright:
        yield await playwright.chromium.launch(executable_path=chromium, args=FLAGS)


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Serves a scene's worker; the answer is its address."""
    async with AsyncExitStack() as stack:

        async def open_(scene: Scene) -> TestServer:
            from kagent.app import wire
            from kagent.worker.http.pages import application

            app = wire(scene.worker)
            app.finalize()
            app.web.init_server()
            stack.push_async_callback(app.http_client.close)
            shown: Any = TestServer(application(app))
            return await stack.enter_async_context(shown)

        yield open_


@pytest.fixture
async def look(browser: Browser) -> Callable[..., Any]:
    """Opens a page; what it says on the console, and whom else it asks, ends up in ``page.strange``."""

    async def open_(url: Any, width: int = 1280, height: int = 900, **options: Any) -> Page:
        context = await browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        strange: list[str] = []
        page.strange = strange  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: strange.append(f"error: {error}"))
        page.on("dialog", lambda dialog: strange.append(f"dialog: {dialog.message}"))
        page.on("console", lambda m: strange.append(m.text) if "Content Security Policy" in m.text else None)
        host = str(url).split("/")[2]
        page.on("request", lambda r: strange.append(f"asked {r.url}") if host not in r.url else None)
        await page.goto(str(url))
        return page

    return open_


async def test_from_the_first_page_to_what_to_do(serve: Any, look: Any, seen: Scene) -> None:
    server = await serve(seen)
    page = await look(server.make_url("/"))

    await expect(page.get_by_text("2 incidents open")).to_be_visible()
    await expect(page.get_by_text("5 groups judged")).to_be_visible()
    await expect(page.locator(".incident", has_text="orders-1 holds")).to_contain_text("What to do: ")
    await page.get_by_role("link", name="orders", exact=True).click()
    await expect(page.get_by_role("heading", name="Recommendation")).to_be_visible()
    await expect(page.locator(".recommendation .reason")).to_contain_text("orders-1 holds")
    await expect(page.locator(".action").first).to_contain_text("can be done")
    await expect(page.locator(".map-row")).to_have_count(4)
    await expect(page.locator(".map-row").first).to_contain_text("orders-1")
    await expect(page.locator(".arrows path.tip").first).to_be_visible()
    await expect(page.locator(".chart canvas")).to_have_count(4)
    await expect(page.locator(".timeline")).to_contain_text("opened")
    widths = await page.locator(".fill").evaluate_all("all => all.map(e => parseFloat(e.style.width))")
    await page.get_by_label("after the moves").check()
    await page.wait_for_function(
        "n => parseFloat(document.querySelector('.fill').style.width) < n", arg=widths[0]
    )
    assert page.strange == []


async def test_the_groups_are_searched_and_filtered_and_the_view_is_an_address(
    serve: Any, look: Any, seen: Scene
) -> None:
    server = await serve(seen)
    page = await look(server.make_url("/ui/groups"))

    rows = page.locator("table.groups tbody tr")
    await expect(rows).to_have_count(5)
    for at, name in enumerate(["payments", "orders"]):  # of two open tickets, who is minutes further behind
        await expect(rows.nth(at).get_by_role("link")).to_have_text(name)
        await expect(rows.nth(at)).to_have_class("open")
    await page.get_by_label("Search").fill("REP")
    await expect(rows).to_have_count(1)
    await page.get_by_label("Search").fill("")
    await page.get_by_label("Verdict").select_option("stalled")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("payments")
    again = await look(page.url)
    await expect(again.locator("table.groups tbody tr")).to_have_count(1)


async def test_a_group_that_nobody_reads_looks_healthy_nowhere(serve: Any, look: Any) -> None:
    stopped, goes_on = Load("orders", 2, [18.0, 18.0]), Load("payments", 2, [18.0, 18.0])
    scene = made([stopped, goes_on], 25, worker={"tick": 60})
    for load in scene.loads:
        scene.join(load, int(scene.clock_s * 1000))
    for at in range(150):
        if at == 60:
            stopped.has_left = True
            scene.join(stopped, int(scene.clock_s * 1000))
        await scene.step()
    server = await serve(scene)
    page = await look(server.make_url("/ui/groups?condition=no_members"))

    (row,) = await page.locator("table.groups tbody tr").all()
    await expect(row).to_contain_text("no members, records wait")
    await expect(row).to_contain_text("15 min")
    await assert_nobody_is_kept_out(page)
    await row.get_by_role("link").click()
    await expect(page.get_by_label("Recommendation")).to_contain_text("No members for 15 min; 32,")
    await expect(page.get_by_label("Recommendation")).not_to_contain_text("Nothing to do")
    await page.goto(str(server.make_url("/ui/")))
    await expect(page.locator(".tiles")).to_contain_text("without members, records wait")


async def test_a_stalled_partition_is_marked_where_it_is(serve: Any, look: Any, seen: Scene) -> None:
    server = await serve(seen)
    page = await look(server.make_url("/ui/group?cluster=main&group=payments"))

    await expect(page.locator(".map-row").first).to_contain_text("payments-2")
    await expect(page.locator(".piece", has_text="■").first).to_have_attribute(
        "title", re.compile("payments-topic-4.*no progress")
    )
    await page.get_by_role("button", name="Copy the command").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    member = page.get_by_role("region", name="Table of the members").locator("tr", has_text="payments-2")
    await expect(member).to_contain_text("payments-topic-4 makes no progress")


async def test_the_work_after_the_moves_is_of_the_work_that_there_is_now(serve: Any, look: Any) -> None:
    """Minutes after the recommendation: what it foretold then, beside the work of now, would promise far too much."""
    rarely = {**POLICY, "update_every": 86_400}
    server = await serve(await watched(loads()[:1], worker={"tick": 60}, policy=rarely))
    page = await look(server.make_url("/ui/group?cluster=main&group=orders"))
    answer = await page.request.get(str(server.make_url("/api/v1/group?cluster=main&group=orders")))
    told = await answer.json()
    spread = told["map"]
    after = [0.0] * len(told["members"])
    for work, member, to in zip(spread["work"], spread["member"], spread["moves_to"], strict=True):
        after[to if to >= 0 else member] += work

    first = page.get_by_role("region", name="Table of the members").locator("tbody tr").first

    assert told["members"][0]["work_after"] < after[0] / 2
    await expect(first).to_contain_text(re.compile(rf"orders-1.* → {after[0] / 60:.0f} min"))


SETTING = "partition.assignment.strategy=org.apache.kafka.clients.consumer."


async def test_what_is_copied_is_exact_whatever_the_clients_call_themselves(serve: Any, look: Any) -> None:
    rates = [270.0 if p < 6 else 40.0 for p in range(24)]
    hostile = "x` `kagent mute all` kafka-evil.sh --a=b"
    groups = [Load("checkout", 6, rates, capacity=700), Load(hostile, 4, rates, capacity=1000)]
    server = await serve(await watched(groups, 8))
    page = await look(
        server.make_url("/ui/group?cluster=main&group=checkout"),
        permissions=["clipboard-read", "clipboard-write"],
    )

    await expect(page.get_by_role("button", name="Copy the setting")).to_have_count(2)
    assert await copied(page) == [
        f"{SETTING}RoundRobinAssignor,org.apache.kafka.clients.consumer.RangeAssignor",
        f"{SETTING}RoundRobinAssignor",
        "Run 12 members instead of 6.",
        "kagent assignor --consumer",
        "kagent explain checkout",
    ]
    await page.goto(str(server.make_url("/ui/group").with_query(cluster="main", group=hostile)))
    await expect(page.get_by_role("button", name="Copy the command")).to_have_count(1)
    assert await copied(page) == [
        f"{SETTING}RoundRobinAssignor,org.apache.kafka.clients.consumer.RangeAssignor",
        f"{SETTING}RoundRobinAssignor",
        "Run 8 members instead of 4.",
        "kagent assignor --consumer",
        f"kagent explain '{hostile}'",
    ]


async def copied(page: Page) -> list[str]:
    """What each copy button puts on the clipboard, in their order."""
    found = []
    for button in await page.locator("button.copy").all():
        await button.click()
        await expect(button).to_have_text("Copied")
        found.append(await page.evaluate("navigator.clipboard.readText()"))
    return found


async def test_of_advice_that_no_longer_applies_nothing_is_left_to_do(serve: Any, look: Any) -> None:
    load = Load("orders", 2, [400.0, 400.0, 50.0, 50.0], capacity=700)
    scene = await watched([load], 20)
    load.capacity = 1400
    for _ in range(30):
        await scene.step()
        sent = [json.loads(value) for _, value in scene.sent if value and b"orders" in value]
        if sent[-1]["status"] == "superseded":
            break
    server = await serve(scene)
    page = await look(server.make_url("/ui/group?cluster=main&group=orders"))

    assert sent[-1]["status"] == "superseded"
    await expect(page.locator(".recommendation .notice")).to_contain_text("This advice no longer applies")
    await expect(page.locator(".action")).to_have_count(0)
    await page.goto(str(server.make_url("/")))
    await expect(page.locator(".incident")).to_contain_text("Its advice no longer applies")
    await expect(page.locator(".incident")).not_to_contain_text("What to do")


async def test_lines_that_ended_with_the_lateness_say_since_when(serve: Any, look: Any) -> None:
    load = Load("orders", 2, [400.0, 400.0, 50.0, 50.0], capacity=700)
    scene = await watched([load], 4)
    load.capacity = 20_000
    for _ in range(24):
        await scene.step()
    server = await serve(scene)
    page = await look(server.make_url("/ui/group?cluster=main&group=orders"))

    await expect(page.get_by_text("it has not been late since")).to_be_visible()
    await expect(page.locator(".chart canvas")).to_have_count(5)
    await expect(page.get_by_text("Lag of the group, in records")).to_be_visible()


async def test_hot_partitions_and_open_transactions_are_marked_where_they_are(serve: Any, look: Any) -> None:
    groups = [
        Load("hot", 3, [700.0, *[20.0] * 8], capacity=600),
        Load("waiting", 2, [30.0] * 4, open_transaction=1),
    ]
    server = await serve(await watched(groups, 10))
    page = await look(server.make_url("/ui/group?cluster=main&group=hot"))

    await expect(page.locator(".piece", has_text="▲").first).to_have_attribute(
        "title", re.compile(r"hot-topic-0:.*hot: more work than a member's share")
    )
    await expect(page.locator(".piece", has_text="▲")).to_have_count(1)
    await page.goto(str(server.make_url("/ui/group?cluster=main&group=waiting")))
    await expect(page.locator(".piece", has_text="‖").first).to_have_attribute(
        "title", re.compile(r"waiting-topic-1:.*waits for an open transaction")
    )
    await expect(page.get_by_role("button", name="Copy the command")).to_have_count(2)  # look, then abort
    await assert_nobody_is_kept_out(page)


async def test_hostile_names_are_text_and_nothing_else(serve: Any, look: Any) -> None:
    server = await serve(await watched(loads(), 3))
    page = await look(server.make_url("/ui/groups"))

    link = page.get_by_role("link", name='<img src="http://evil.example/x"')
    await expect(link).to_contain_text("\\u202egro\\x1b[2J")
    await link.click()
    await expect(page.locator("h1")).to_contain_text("onerror")
    await expect(page.locator(".map-row")).to_have_count(2)
    assert await page.locator("main img").count() == 0
    await page.goto(str(server.make_url("/ui/groups")))
    shown = await page.get_by_role("link", name="lllll").inner_text()
    assert len(shown) == 255
    assert page.strange == []


async def test_a_muted_incident_is_marked_and_its_members_are_told_apart(serve: Any, look: Any) -> None:
    name = "payments-settlement-reconciliation-processor-eu-central-1-v2"
    scene = await watched([Load(name, 4, [270.0] * 6 + [40.0] * 18, capacity=1200)], 20)
    until_ms = int(scene.clock_s * 1000) + 3_600_000
    mute = json.dumps({"until": until_ms, "why": "migration", "by": "ada"}).encode()
    scene.worker.desk.mutes.take(f"main/{name}", mute)
    await scene.step()
    server = await serve(scene)
    page = await look(server.make_url("/"))

    await expect(page.locator(".incident-head")).to_contain_text("muted until")
    await page.get_by_role("link", name=name).click()
    await expect(page.locator(".legend.lines li").first).to_contain_text("…-1")
    await page.get_by_role("link", name="Groups", exact=True).first.click()
    await expect(page.locator("table.groups tbody tr")).to_contain_text("muted until")


async def test_a_sentence_of_before_says_how_old_it_is_beside_the_number_of_now(
    serve: Any, look: Any
) -> None:
    scene = await watched(loads()[:1], 20)
    server = await serve(scene)
    page = await look(server.make_url("/"))
    row = json.loads(await page.evaluate("fetch('/api/v1/status').then(a => a.text())"))["open"][0]
    sent = json.loads(next(value for _, value in reversed(scene.sent) if value and b"orders" in value))

    assert row["incident"]["as_of_ms"] == sent["as_of"]
    assert time.time() - sent["as_of"] / 1000 > 120, "the group was found late minutes ago"
    await expect(page.locator(".incident .reason").first).to_have_text(
        re.compile(r"\(text from \d+ min ago\)$")
    )


async def test_calm_and_blind_cannot_be_mistaken_for_each_other(serve: Any, look: Any) -> None:
    scene = await watched([Load("reports", 2, [5.0, 3.0])], 5)
    server = await serve(scene)
    page = await look(server.make_url("/"))
    await expect(page.get_by_text("Nothing is open")).to_be_visible()
    await expect(page.get_by_text("1 group judged. It is being learned until")).to_be_visible()
    assert await page.get_by_role("alert").count() == 0

    scene.heard = False
    for _ in range(30):
        await scene.step()

    await expect(page.get_by_role("alert")).to_contain_text("Blind on main")
    await expect(page.get_by_role("alert")).to_contain_text("kagent pipeline")
    await expect(page.get_by_text("Nothing is open")).to_have_count(0)
    await page.get_by_role("link", name="Groups").click()
    await expect(page.locator("table.groups tbody tr")).to_contain_text("blind")
    await expect(page.get_by_role("alert")).to_contain_text("Blind on main")
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        await assert_nobody_is_kept_out(page, scheme)


async def test_a_finding_comes_to_the_screen_by_itself(serve: Any, look: Any) -> None:
    scene = await watched(loads()[:1], 2.5)
    server = await serve(scene)
    page = await look(server.make_url("/"))
    await expect(page.get_by_text("1 group judged")).to_be_visible()

    while not scene.sent:
        await scene.step()

    await expect(page.get_by_text("1 incident open")).to_be_visible()
    await expect(page.locator(".incident .reason").first).not_to_contain_text("text from")


async def test_a_worker_that_dies_is_seen_and_the_last_answer_is_dated(serve: Any, look: Any) -> None:
    server = await serve(await watched(loads(), 3))
    page = await look(server.make_url("/"))
    await expect(page.get_by_text("5 groups judged")).to_be_visible()

    await server.close()

    await expect(page.get_by_role("alert")).to_contain_text("does not answer")
    await expect(page.get_by_role("alert")).to_contain_text("as of")
    await expect(page.get_by_text("5 groups judged")).to_be_visible()
    await assert_nobody_is_kept_out(page)


@pytest.fixture
async def hanging() -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker's web application in a process of its own, which has judged one healthy group."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.worker.http.serve_scene", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    yield process
    process.send_signal(signal.SIGKILL)  # also ends what is stopped
    await process.wait()


async def test_a_worker_that_hangs_cannot_be_mistaken_for_a_healthy_one(look: Any, hanging: Any) -> None:
    assert hanging.stdout is not None
    url = (await hanging.stdout.readline()).decode().strip()
    cluster, groups, group = [
        await look(url + path) for path in ("", "ui/groups", "ui/group?cluster=main&group=reports")
    ]
    await expect(cluster.get_by_text("Nothing is open")).to_be_visible()
    await expect(groups.locator(".badge.healthy")).to_have_count(1)
    await expect(group.get_by_text("Nothing to do")).to_be_visible()

    hanging.send_signal(signal.SIGSTOP)

    for page in (cluster, groups, group):  # bounded by how long the page waits for an answer: 8 s
        await expect(page.get_by_role("alert").first).to_contain_text("does not answer")
        await expect(page.locator(".badge.healthy, .calm, .calmbox")).to_have_count(0)
        await assert_nobody_is_kept_out(page)
    await expect(cluster.get_by_text("Not known now")).to_be_visible()
    await expect(groups.get_by_text("was healthy")).to_be_visible()
    await expect(group.get_by_role("alert").last).to_contain_text("as of")

    hanging.send_signal(signal.SIGCONT)

    await expect(cluster.get_by_text("Nothing is open")).to_be_visible()
    await expect(groups.locator(".badge.healthy")).to_have_count(1)
    await expect(group.get_by_text("Nothing to do")).to_be_visible()


@pytest.mark.kafka
async def test_a_running_worker_speaks_tls_to_clients_and_browsers(
    broker: str, tmp_path: Path, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``kagent worker`` with a certificate: who trusts its authority is answered, plain HTTP is not."""
    data = Path(__file__).parents[2] / "alert" / "data"
    pem = str(data / "here.pem")
    running = Kagent(
        tmp_path,
        SimpleNamespace(bootstrap=broker),  # type: ignore[arg-type]
        worker_settings={"http": {"cert_file": pem, "key_file": pem, "ca_file": str(data / "ca.pem")}},
        topic_settings={"prefix": "tls-"},
    )
    monkeypatch.delenv("KAGENT_BOOTSTRAP")
    running.configure()
    address = f"127.0.0.1:{yaml.safe_load(running.config.read_text())['worker']['web_port']}"
    trusting = ssl.create_default_context(cafile=str(data / "ca.pem"))
    running.start_worker()
    try:
        async with ClientSession() as session, asyncio.timeout(180):
            while True:
                try:
                    async with session.get(f"https://{address}/api/v1/status", ssl=trusting) as answer:
                        said = await answer.json()
                    assert answer.status == 200, (said, running.ends())
                    if said["complete"]:
                        break
                except ClientConnectorError:
                    assert not running.ended("worker"), running.ends()
                await asyncio.sleep(0.2)
            with pytest.raises(ClientConnectorCertificateError):
                await session.get(f"https://{address}/api/v1/status")
            with pytest.raises(ClientError):
                await session.get(f"http://{address}/api/v1/status")
        page = await look(f"https://{address}/", ignore_https_errors=True)
        await expect(page.get_by_role("alert")).to_contain_text("kagent pipeline")  # there is none here
        assert page.strange == []
    finally:
        running.end()


async def test_behind_a_proxy_with_a_path_prefix_everything_is_found(
    serve: Any, look: Any, seen: Scene
) -> None:
    server = await serve(seen)
    async with ClientSession() as session, AsyncExitStack() as stack:

        async def passed(request: web.Request) -> web.Response:
            url = server.make_url("/" + request.raw_path.removeprefix("/ops/kagent/"))
            async with session.get(url, headers={"Accept": request.headers.get("Accept", "")}) as answer:
                kept = ("Content-Type", "Content-Security-Policy", "ETag")
                headers = {name: answer.headers[name] for name in kept if name in answer.headers}
                return web.Response(status=answer.status, body=await answer.read(), headers=headers)

        application = web.Application()
        application.router.add_get("/ops/kagent/{rest:.*}", passed)
        proxy = await stack.enter_async_context(TestServer(application))
        for path in ("/ops/kagent/", "/ops/kagent/ui/groups"):
            page = await look(proxy.make_url(path))
            await page.get_by_role("link", name="orders", exact=True).click()
            await expect(page.locator(".map-row")).to_have_count(4)
            assert "/ops/kagent/ui/group?" in page.url
            await page.reload()
            await expect(page.locator(".map-row")).to_have_count(4)
            await page.go_back()
            await expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
            assert page.strange == []


async def test_with_a_token_the_page_asks_for_it(serve: Any, look: Any) -> None:
    server = await serve(await watched(loads(), 3, worker={"http": {"login": "token", "token": "s3cret"}}))
    page = await look(server.make_url("/"))

    await page.get_by_label("Token").wait_for()
    await assert_nobody_is_kept_out(page)
    await page.get_by_label("Token").fill("s3cret")
    await page.keyboard.press("Enter")

    await expect(page.get_by_text("5 groups judged")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("5 groups judged")).to_be_visible()


async def test_the_keyboard_alone_leads_everywhere(serve: Any, look: Any, seen: Scene) -> None:
    server = await serve(seen)
    page = await look(server.make_url("/"))
    await expect(page.get_by_text("2 incidents open")).to_be_visible()

    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    focused = "document.activeElement.textContent.trim()"
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await page.evaluate(focused) == "orders":
            break
    await page.keyboard.press("Enter")

    await expect(page.locator("h1")).to_have_text("orders")
    assert await page.evaluate("document.activeElement.id") == "main"


async def test_search_filter_copy_and_map_need_no_mouse(serve: Any, look: Any, seen: Scene) -> None:
    server = await serve(seen)
    page = await look(server.make_url("/ui/groups"))
    rows = page.locator("table.groups tbody tr")
    await expect(rows).to_have_count(5)

    await tab_to(page, "Search")
    await page.keyboard.type("pay")
    await expect(rows).to_have_count(1)
    for _ in "pay":
        await page.keyboard.press("Backspace")
    await expect(rows).to_have_count(5)
    await tab_to(page, "Verdict")
    await page.keyboard.type("une")  # a list is chosen from by its first letters
    await expect(rows).to_have_count(1)
    await tab_to(page, "orders")
    await page.keyboard.press("Enter")

    await expect(page.locator("h1")).to_have_text("orders")
    await expect(page.locator(".map-row")).to_have_count(4)
    width = await page.locator(".fill").first.evaluate("e => parseFloat(e.style.width)")
    await tab_to(page, "Copy the command")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Copied")).to_be_focused()
    await tab_to(page, "now")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_label("after the moves")).to_be_checked()
    await page.wait_for_function(
        "n => parseFloat(document.querySelector('.fill').style.width) < n", arg=width
    )
    await tab_to(page, "The map as a table")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name="Partitions")).to_be_visible()
    assert page.strange == []


async def tab_to(page: Page, name: str, most: int = 60) -> None:
    """Press Tab until what has this name has the focus."""
    named = """name => { const e = document.activeElement, label = e.labels?.[0];
        return [e.getAttribute('aria-label'), label?.firstChild?.textContent, label?.textContent, e.textContent]
            .some(text => text?.trim() === name || text?.trim().startsWith(name + '(')); }"""
    for _ in range(most):
        await page.keyboard.press("Tab")
        if await page.evaluate(named, name):
            return
    raise AssertionError(f"{name} is not reached with the Tab key")


VIEWS = ("/", "/ui/groups", "/ui/group?cluster=main&group=orders", "/ui/group?cluster=main&group=payments")


async def test_nobody_is_kept_out(serve: Any, look: Any, seen: Scene) -> None:
    """In light and dark, at 380 px, on a desk and at 200 %."""
    server = await serve(seen)
    page = await look(server.make_url("/"))
    for view in VIEWS:
        for width in (380, 640, 1280):  # 640 is a screen of 1280 at 200 %
            await page.set_viewport_size({"width": width, "height": 900})
            await page.goto(str(server.make_url(view)))
            await page.locator("main section, main table").first.wait_for()
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                await assert_nobody_is_kept_out(page, (view, width, scheme))


async def test_the_report_looks_alike_and_keeps_nobody_out(browser: Browser, tmp_path: Path) -> None:
    said = [{"time": "10:00", "status": "open", "verdict": "rebalance", "reason": f"{LONG[:300]} is behind"}]
    figures = [("Lag of each member", '{"data": [{"x": [1, 2], "y": [3, 4]}], "layout": {}}')]
    section = report.Section(EVIL, ["4 members", "skew 2.00"], said, figures)
    html = report.page("Cluster main", Range(0, 60_000), [section])
    written = tmp_path / "report.html"
    await asyncio.to_thread(written.write_text, html, encoding="utf-8")
    page = await browser.new_page()
    await page.goto(written.as_uri())
    await expect(page.locator(".chart svg").first).to_be_visible()

    for width in (380, 1280):
        await page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await assert_nobody_is_kept_out(page, (width, scheme))
    own = re.search(r"body \{.*", (ROOT / "kagent/worker/http/ui/style.css").read_text())
    assert own is not None
    font = await page.evaluate("getComputedStyle(document.body).fontFamily")
    assert font.split(",")[0] in own[0]


def skewed(cast: Any) -> list[str]:
    """A running group, one of whose members holds most of the lag; the ids that the coordinator gave its members."""
    cast.topic("whatif", 6)
    cast.produce("whatif", {0: 300, 1: 280, 2: 200, 3: 10, 4: 10, 5: 10})
    members = [cast.join("whatif-group", ["whatif"], **{"client.id": name}) for name in ("one", "two")]
    cast.settle("whatif-group", *members)
    for consumer in members:
        held = consumer.assignment()
        for part in held:
            part.offset = 0
        consumer.commit(offsets=held, asynchronous=False)
    return [consumer.memberid() for consumer in members]


async def press_to(page: Page, slider: Locator, value: int) -> None:
    """Move a slider with the keys: Home, then so many times the arrow."""
    await slider.focus()
    await page.keyboard.press("Home")
    for _ in range(value):
        await page.keyboard.press("ArrowRight")


@pytest.mark.kafka
async def test_the_slider_answers_as_kagent_plan_does(serve: Any, look: Any, cast: Any) -> None:
    ids = await asyncio.to_thread(skewed, cast)
    scene = made([Load("whatif-group", 2, [1.0] * 6, member_ids=ids)], 3, bootstrap=cast.bootstrap)
    for _ in range(18):
        await scene.step()
    server = await serve(scene)
    page = await look(server.make_url("/ui/group?cluster=main&group=whatif-group"))

    async with page.expect_response(re.compile("what-if")) as first:
        await page.get_by_role("button", name="Try moves").click()
    whole = await (await first.value).json()
    arguments = ["--bootstrap", cast.bootstrap, "plan", "--group", "whatif-group", "--json"]
    live = await asyncio.to_thread(CliRunner().invoke, root, arguments)
    assert whole["plan"] == json.loads(live.stdout)
    assert len(whole["plan"]["frontier"]) > 1

    for name in ("whatif-group-1", "whatif-group-2"):  # as everywhere on the page, and not their ids
        await expect(page.locator(".bench .map-name", has_text=name)).to_be_visible()

    slider = page.get_by_role("slider", name="Moves")
    for moves, _ in whole["plan"]["frontier"]:
        if moves == len(whole["plan"]["moves"]):
            continue
        async with page.expect_response(re.compile("what-if")) as asked:
            await press_to(page, slider, moves)
        said = await (await asked.value).json()
        line, bound = json.dumps(said["line"]), ["--max-moves", str(moves)]
        planned = await asyncio.to_thread(CliRunner().invoke, root, ["plan", "--json", *bound], input=line)
        assert said["plan"] == json.loads(planned.stdout)
        await expect(page.locator(".verdict")).to_contain_text(f"{len(said['plan']['moves'])} move")
    async with page.expect_response(re.compile("what-if")) as asked:
        await page.get_by_role("spinbutton", name="Members").fill("4")
        await page.keyboard.press("Tab")
    await expect(page.locator(".bench .map-row")).to_have_count(4)
    assert len((await (await asked.value).json())["line"]["members"]) == 4
    for strategy in ("roundrobin", "range"):
        async with page.expect_response(re.compile("what-if")) as asked:
            await page.get_by_label("Assignment by").select_option(strategy)
        said = await (await asked.value).json()
        arguments = ["assign", "--strategy", strategy, "--json"]
        assigned = await asyncio.to_thread(
            CliRunner().invoke, root, arguments, input=json.dumps(said["line"])
        )
        assert said["assign"] == json.loads(assigned.stdout)
        await expect(page.locator(".verdict")).to_be_visible()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        await assert_nobody_is_kept_out(page, scheme)
    assert page.strange == []


async def test_the_picture_in_the_readme_can_be_taken(serve: Any, look: Any, tmp_path: Path) -> None:
    scene = await watched([*loads()[:3], *(Load(f"service-{n}", 2, [n + 1.0] * 4) for n in range(20))])
    server = await serve(scene)
    page = await look(server.make_url("/ui/group?cluster=main&group=orders"), 1280, 1500)
    await expect(page.locator(".chart canvas")).to_have_count(4)
    await expect(page.locator(".map-row")).to_have_count(4)
    target = Path(os.environ.get("PAGE_SCREENSHOT", tmp_path / "page.png"))

    await page.screenshot(path=target)

    assert await asyncio.to_thread(os.path.getsize, target) > 20_000
