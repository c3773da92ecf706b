"""One client, however slow or greedy, does not keep the others from an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kagent.embedded.broker import free_port
from kagent.worker.http.limits import MAX_PATH_CHARACTERS, MAX_REQUESTS, RequestLimits, Runner


@asynccontextmanager
async def served(
    limits: RequestLimits | None = None, **options: Any
) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """The port, and what lets ``/waits`` be answered."""
    go = asyncio.Event()

    async def waits(request: web.Request) -> web.Response:
        await go.wait()
        return web.Response()

    async def echo(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    middlewares: list[Any] = [(limits or RequestLimits(("/healthz",))).middleware()]
    app = web.Application(middlewares=middlewares, client_max_size=1000)
    app.router.add_get("/waits", waits)
    app.router.add_get("/healthz", echo)
    app.router.add_post("/echo", echo)
    runner, port = Runner(app, **options), free_port()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield port, go
    finally:
        go.set()
        await runner.cleanup()


async def status(client: aiohttp.ClientSession, port: int, path: str) -> int:
    async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status


async def test_a_head_that_does_not_come_ends_the_connection_and_others_are_answered_meanwhile() -> None:
    async with served(head_within_s=0.2) as (port, _), aiohttp.ClientSession() as client:
        connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        for _, writer in connections:
            writer.write(b"GET /healthz HTTP/1.1\r\nX-Slow: ")

        assert await status(client, port, "/healthz") == 200
        async with asyncio.timeout(30):
            ended = await asyncio.gather(*(reader.read() for reader, _ in connections))
        assert ended == [b""] * 50
        for _, writer in connections:
            writer.close()


@pytest.mark.slow
async def test_a_slow_body_is_given_up() -> None:
    async with served(RequestLimits(answer_within_s=0.2)) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nab")

        async with asyncio.timeout(30):
            assert b" 503 " in await reader.readline()
        writer.close()


async def test_connections_beyond_the_limit_are_closed_at_once() -> None:
    async with served(max_connections=3) as (port, _):
        connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]

        async with asyncio.timeout(30):
            last = await asyncio.gather(connections[-1][0].read(), return_exceptions=True)
        assert isinstance(last[0], ConnectionError) or last[0] == b""
        for _, writer in connections:
            writer.close()


async def test_requests_beyond_the_limit_are_told_to_come_back_and_health_is_always_answered() -> None:
    async with served() as (port, go), aiohttp.ClientSession() as client:
        waiting = [asyncio.ensure_future(status(client, port, "/waits")) for _ in range(MAX_REQUESTS)]
        async with asyncio.timeout(30):
            while await status(client, port, "/nothing") != 503:  # noqa: ASYNC110 (the server does not say when it is full)
                await asyncio.sleep(0.01)

        assert await status(client, port, "/healthz") == 200
        go.set()
        assert set(await asyncio.gather(*waiting)) == {200}
        assert await status(client, port, "/nothing") == 404


async def test_long_addresses_and_large_bodies_are_refused() -> None:
    async with served() as (port, _), aiohttp.ClientSession() as client:
        assert await status(client, port, "/" + "x" * MAX_PATH_CHARACTERS) == 414
        async with client.post(f"http://127.0.0.1:{port}/echo", data=b"x" * 1001) as answer:
            assert answer.status == 413
        async with client.post(f"http://127.0.0.1:{port}/echo", data=b"x" * 1000) as answer:
            assert await answer.text() == "1000"
