"""Whatever is asked of the web port: it is answered or refused, never with an error of kagent's; and slow askers delay no tick."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from aiohttp.test_utils import TestServer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kagent.settings import Settings, Topics
from tests.worker.http.test_server import CLUSTERS, NOW, made

pytestmark = pytest.mark.slow

ADDRESSES = (
    "/", "/ui", "/ui/", "/ui/app.js", "/healthz", "/readyz", "/metrics", "/api/groups", "/api/groups/plain", "/api/own",
    "/api/own/v1/status", "/api/v1/status", "/api/v1/groups", "/api/v1/group", "/api/v1/group/series",
    "/api/v1/group/scenario", "/api/v1/what-if", "/api/v1/openapi.json", "/table/", "/router/", "/graph/", "/stats/",
)  # fmt: skip
PARAMETERS = ("cluster", "group", "offset", "limit", "search", "condition", "sort", "since", "status", "x")
KNOWN = (b"main", b"plain", b"0", b"-1", b"9" * 400, b"open", "٣".encode())
# Printable ASCII only reaches the router: a request line with other bytes, or a space, is no HTTP, and is tried by aiohttp's own tests.
raw_paths = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)
encoded = (st.sampled_from(KNOWN) | st.binary(max_size=12)).map(lambda data: quote_from_bytes(data, safe=""))
bodies = st.binary(max_size=40) | st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["main", "plain"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cluster", "group", "members", "change", "partitions"]), inner, max_size=4
        )
    ),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """Method, target and body."""
    path = draw(st.sampled_from(ADDRESSES)) if draw(st.booleans()) else "/" + draw(raw_paths)
    if draw(st.booleans()):
        path += "/" + draw(encoded)
    named = draw(st.lists(st.tuples(st.sampled_from(PARAMETERS), encoded), max_size=4))
    query = "&".join(f"{name}={value}" for name, value in named)
    body = draw(bodies) if draw(st.booleans()) else b""
    method = draw(st.sampled_from(["GET", "GET", "POST", "HEAD", "DELETE", "OPTIONS"]))
    return method, f"{path}?{query}" if query else path, body


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[asyncio.Runner, Any, int]]:
    """A loop, a worker that two groups were judged on, and the port of its pages."""
    # kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster.
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        worker, port = runner.run(_started(stack))
        yield runner, worker, port
        runner.run(stack.aclose())


async def _started(stack: AsyncExitStack) -> tuple[Any, int]:
    from kagent.app import wire
    from kagent.worker.http.pages import application

    worker = made(Settings(clusters=CLUSTERS, topics=Topics(partitions=1)))
    await worker.desk.tick(0, NOW)
    app = wire(worker)
    app.finalize()
    app.web.init_server()
    stack.push_async_callback(worker.app.http_client.close)
    server = TestServer(application(app))
    await server.start_server()
    stack.push_async_callback(server.close)
    assert server.port is not None
    return worker, server.port


async def status(port: int, method: str, target: str, body: bytes) -> int:
    """The status of the answer; 0 where the connection was closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    return int(answer.split(None, 2)[1]) if answer else 0


def test_no_request_is_answered_with_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as (runner, _, port):

        @given(requests())
        @example(("GET", "/api/v1/group?group=%ff%00", b""))
        @example(("GET", "/api/groups/%2e%2e%2f", b""))
        @example(("POST", "/api/v1/what-if", b"[" * 5000))
        @settings(max_examples=200)
        def asked(request: tuple[str, str, bytes]) -> None:
            assert runner.run(status(port, *request)) not in (0, 500, 501, 502)

        asked()


def test_a_request_that_is_no_http_or_too_long_is_one_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with served(monkeypatch) as (runner, _, port):
        assert runner.run(status(port, "GET", f"/api/groups/{'a' * 30_000}", b"")) in (400, 414)
        assert runner.run(status(port, "G\x01T", "/", b"")) == 400

    about = [record for record in caplog.records if record.name == "aiohttp.server"]
    assert about, "the one that is too long, at least"
    assert [record for record in about if record.exc_info or "\n" in record.getMessage()] == []


SLOW = (
    b"GET /api/groups HTTP/1.1\r\nHost: x\r\nX-Slow: ",  # a head that does not end
    b"POST /api/v1/what-if HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n[",  # a body that does not end
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20,  # answers that nobody reads
)


def test_slow_clients_delay_no_tick_and_nobody_elses_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as (runner, worker, port):

        async def judged_meanwhile() -> int:
            connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
            for at, (_, writer) in enumerate(connections):
                writer.write(SLOW[at % len(SLOW)])
            # Of the engine itself: a tick that waits for a client would not return within the deadline.
            async with asyncio.timeout(30):
                for at in range(1, 11):
                    assert [s.cluster for s in await worker.desk.tick(0, NOW + 1000 * at)] == ["main"]
                answered = await status(port, "GET", "/healthz", b"")
            assert not any(writer.is_closing() for _, writer in connections)
            for _, writer in connections:
                writer.close()
            return answered

        assert runner.run(judged_meanwhile()) in (200, 503)
