"""What the worker's page costs and how fast it is, in a real Chromium: `python benchmarks/page.py`.

A worker with many groups, in a process of its own, serves the page to headless Chromium (`make browser` installs it). Prints
the time from the navigation to the first painted rows, from a key in the search field to the filtered rows, and from the end of a
judgement to its time on the screen; the worker's CPU time with a page open less that without one; and the heap of two tabs over
many polls, whose pauses are shortened so that an hour of polls takes minutes. With ``--address`` (``kagent demo --keep`` prints
one) it opens two tabs on that worker instead, at their own pace, and says every minute what they hold.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import shutil
import statistics
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import metrics
import numpy as np
import psutil
from aiohttp import web
from playwright.async_api import Browser, CDPSession, Page, async_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
RUNS = 7
TICK_S = 10.0
HASTE = 20
"""How many times faster the tabs poll while their heap is watched."""
PAINTED = """
window.painted = new Promise((done) => new MutationObserver((_, watcher) => {
  if (!document.querySelector("table.groups tbody tr")) return;
  watcher.disconnect();
  requestAnimationFrame(() => setTimeout(() => done(performance.now())));
}).observe(document, { childList: true, subtree: true }));
"""
FILTERED = """
(text) => new Promise((done) => {
  const field = document.querySelector("input[type=search]"), began = performance.now();
  new MutationObserver((_, watcher) => {
    if (![...document.querySelectorAll("table.groups tbody th")].every((th) => th.textContent.includes(text))) return;
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
  }).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})
"""
CHANGED = """
() => new Promise((done) => {
  const time = () => document.querySelector(".live time").dateTime, before = time();
  new MutationObserver((_, watcher) => {
    if (time() === before) return;
    watcher.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(Date.now())));
  }).observe(document.querySelector(".live"), { childList: true, subtree: true, attributes: true });
})
"""
HASTEN = f"const slow = setTimeout; setTimeout = (what, ms, ...more) => slow(what, ms / {HASTE}, ...more);"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument(
        "--open-s", type=float, default=60.0, help="how long the page is open for the CPU figure"
    )
    parser.add_argument(
        "--polls", type=int, default=3_600, help="of each of two tabs while their heap is watched"
    )
    parser.add_argument(
        "--address", help="of a running worker: two tabs stay open on it, and nothing else is measured"
    )
    parser.add_argument("--minutes", type=int, default=60, help="how long they stay open")
    parser.add_argument(
        "--views", nargs="+", default=["ui/groups", ""], help="what they show, under the address"
    )
    parser.add_argument("--worker-pid", type=int, help="of that worker, for its CPU time")
    args = parser.parse_args()
    if args.address:
        asyncio.run(tabs_over_time(args.address.rstrip("/"), args.views, args.minutes, args.worker_pid))
        return
    asyncio.run(views(args.groups))
    asyncio.run(open_page(200, args.open_s))
    asyncio.run(heap(200, args.polls))


async def views(groups: int) -> None:
    """First view, filter, and judgement to pixel."""
    async with Served(groups) as served, Chromium() as browser:
        firsts, filters, pixels = [], [], []
        for _ in range(RUNS):
            page = await browser.new_page()  # in a context of its own, with an empty cache
            await page.add_init_script(PAINTED)
            await page.goto(f"{served.url}/ui/groups")
            firsts.append(await page.evaluate("painted"))
            filters.append(await page.evaluate(FILTERED, "group-17"))
            await page.goto(f"{served.url}/ui/groups")
            await page.locator(".live time").wait_for()
            watched = asyncio.create_task(page.evaluate(CHANGED))
            await asyncio.sleep(0.3)
            judged_s = await served.do("tick")
            pixels.append(await watched - judged_s * 1000)
            await page.close()
        print(f"{groups} groups, {RUNS} runs:")
        print(f"  navigation → first rows painted: {told(firsts)} (goal 1,000 at 20,000 groups)")
        print(f"  key → filtered rows painted: {told(filters)} (of it, 200 of waiting for more keys)")
        print(f"  end of a judgement → its time on the screen: {told(pixels)} (goal 2,000)")


async def open_page(groups: int, seconds: float) -> None:
    """The worker's CPU time with one page open, less that without."""
    async with Served(groups) as served, Chromium() as browser:
        shares = {"none": await served.share(seconds)}
        for view in ("", "ui/groups", "ui/group?cluster=main&group=group-0"):
            page = await browser.new_page()
            await page.goto(f"{served.url}/{view}")
            await page.locator("main section, main table").first.wait_for()
            shares[view or "cluster"] = await served.share(seconds)
            await page.close()
        idle = shares.pop("none")
        print(f"{groups} groups, judged every {TICK_S:.0f} s: without a page {idle:.2%} of a core")
        for view, share in shares.items():
            print(f"  open page {view}: {share - idle:.2%} more (goal 2 %)")


async def heap(groups: int, polls: int) -> None:
    """Two tabs over many polls and judgements."""
    async with Served(groups) as served, Chromium() as browser:
        tabs = [await browser.new_page() for _ in range(2)]
        for tab, view in zip(tabs, ("ui/groups", "ui/group?cluster=main&group=group-0"), strict=True):
            await tab.add_init_script(HASTEN)
            await tab.goto(f"{served.url}/{view}")
        counts = [Polls(tab) for tab in tabs]
        print(f"two tabs, {groups} groups; MB of heap in use after a collection:")
        for tenth in range(1, 11):
            while min(c.seen for c in counts) < polls * tenth / 10:
                await served.do("tick")
                await asyncio.sleep(TICK_S / HASTE)
            sizes = [await used_mb(tab) for tab in tabs]
            print(
                f"  {min(c.seen for c in counts)} polls: {' '.join(f'{size:.2f}' for size in sizes)}",
                flush=True,
            )


SETTLED = 10
"""Minutes after which the trend begins: caches and compiled code have come by then."""
HELD = ("heap_mb", "nodes", "listeners", "polls")


async def tabs_over_time(address: str, views: list[str], minutes: int, worker_pid: int | None) -> None:
    """What tabs hold while they stay open: a line a minute, then the slope of each column."""
    async with Chromium() as browser:
        tabs = [await Tab.opened(browser, f"{address}/{view}") for view in views]
        worker = psutil.Process(worker_pid) if worker_pid else None
        columns = [
            "worker_cpu_s",
            "renderers_rss_mb",
            *(f"{held}[{n}]" for n in range(len(tabs)) for held in HELD),
        ]
        began, rows = time.monotonic(), []
        print("minute", *columns)
        for minute in range(minutes + 1):
            await asyncio.sleep(max(0.0, began + minute * 60 - time.monotonic()))
            cpu_s = sum(worker.cpu_times()[:2]) if worker else float("nan")
            rows.append([cpu_s, renderers_mb(), *[value for tab in tabs for value in await tab.holds()]])
            print(minute, *(f"{value:.6g}" for value in rows[-1]), flush=True)
        settled = min(SETTLED, minutes // 2)
        for column, values in zip(columns, np.array(rows[settled:]).T, strict=True):
            slope, start = np.polyfit(range(len(values)), values, 1)
            print(f"{column}: {start:.2f} after {settled} min, {slope * 60:+.3f} per hour")
        print("on the consoles:", [said for tab in tabs for said in tab.said] or "nothing")


class Tab:
    """One open page and what it holds."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page, self.session, self.polls = page, session, Polls(page)
        self.said: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))

    @classmethod
    async def opened(cls, browser: Browser, url: str) -> Tab:
        page = await browser.new_page()
        session = await page.context.new_cdp_session(page)
        await session.send("Performance.enable")
        tab = cls(page, session)
        await page.goto(url)
        return tab

    async def holds(self) -> list[float]:
        """In the order of ``HELD``, after a garbage collection."""
        heap_mb = await used_mb(self.page)
        found = {
            m["name"]: m["value"] for m in (await self.session.send("Performance.getMetrics"))["metrics"]
        }
        return [heap_mb, found["Nodes"], found["JSEventListeners"], self.polls.seen]


def renderers_mb() -> float:
    """Of all tabs, resident. Playwright has each renderer keep every answer that its tab got, so this grows with the answers: with
    plain Chromium it stood still where it grew by 4 MB a minute here."""
    used = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # ends meanwhile
            used += process.memory_info().rss * ("--type=renderer" in process.cmdline())
    return used / 1e6


class Polls:
    """Counts the answers to one tab's main question."""

    def __init__(self, page: Page) -> None:
        self.seen = 0
        page.on("response", self._seen)

    def _seen(self, response: Any) -> None:
        self.seen += "/api/v1/status" in response.url


async def used_mb(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return float(used["usedSize"]) / 1e6


def told(milliseconds: list[float]) -> str:
    low, middle, high = min(milliseconds), statistics.median(milliseconds), max(milliseconds)
    return f"min {low:,.0f}, median {middle:,.0f}, max {high:,.0f} ms"


class Chromium:
    """Headless, as the system has it."""

    async def __aenter__(self) -> Browser:
        self.playwright = await async_playwright().start()
        path = shutil.which("chromium")
        self.browser = await self.playwright.chromium.launch(executable_path=path, args=FLAGS)
        return self.browser

    async def __aexit__(self, *_: object) -> None:
        await self.browser.close()
        await self.playwright.stop()


class Served:
    """A worker with so many groups in a process of its own."""

    def __init__(self, groups: int) -> None:
        self.groups, self.url = groups, ""

    async def __aenter__(self) -> Served:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.groups), daemon=True)
        self.process.start()
        self.url = await asyncio.to_thread(self.pipe.recv)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.pipe.send("end")
        await asyncio.to_thread(self.process.join, 30)

    async def do(self, what: str) -> float:
        """The answer to ``tick`` (when it ended, in s since the epoch) or ``cpu`` (the process's CPU time in s)."""
        self.pipe.send(what)
        return float(await asyncio.to_thread(self.pipe.recv))

    async def share(self, seconds: float) -> float:
        """The part of a core that the worker takes while it judges as usual."""
        used, began = await self.do("cpu"), time.monotonic()
        while time.monotonic() - began < seconds:
            await asyncio.sleep(TICK_S)
            await self.do("tick")
        return (await self.do("cpu") - used) / (time.monotonic() - began)


def serve(pipe: Connection, groups: int) -> None:
    os.environ.setdefault("KAGENT_BOOTSTRAP", "unused:1")
    asyncio.run(_serve(pipe, groups))


async def _serve(pipe: Connection, groups: int) -> None:
    from kagent.app import wire
    from kagent.settings import Cluster, Settings, Topics
    from kagent.worker.process import Worker

    metrics.START = int(time.time() * 1000) - 30 * 5000
    world = metrics.World()
    for n in range(groups):
        world.group(f"group-{n}", 10, behind=n % 20 == 0)
    world.sampled(10)
    await world.tick()
    worker = Worker(
        Settings(clusters={"main": Cluster(bootstrap="unused:1")}, topics=Topics(partitions=1)), "main"
    )
    worker.desk = world.desk
    worker.ownership.ready, worker.ownership.loaded = True, {0}
    app = wire(worker)
    app.finalize()
    app.web.init_server()
    runner = web.AppRunner(app.web.web_app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pipe.send(f"http://127.0.0.1:{runner.addresses[0][1]}")
    while (what := await asyncio.to_thread(pipe.recv)) != "end":
        if what == "tick":
            world.now = int(time.time() * 1000)
            await world.tick()
        pipe.send(time.process_time() if what == "cpu" else time.time())
    with suppress(Exception):
        await app.http_client.close()
    await runner.cleanup()


if __name__ == "__main__":
    main()
