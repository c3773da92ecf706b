"""How much one client may ask of the web port: the time of a request's head, of its answer, and how many at once.

aiohttp bounds the request line, each header and their number by itself (8,190 bytes, 8,190 bytes, 128) and the body by
``client_max_size``. Its server has no limit of connections, and gives a request's head an hour: clients that send a byte now
and then (slow-loris) would take all file descriptors.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from kagent.worker.http.security import Handler

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Of a question: the line of a group with 100,000 partitions has a few MB."""
MAX_PATH_CHARACTERS = 4_096
MAX_CONNECTIONS = 256
MAX_REQUESTS = 32
"""Answered at once; one above the limit is asked to come back."""
HEAD_WITHIN_S = 15.0
"""Also how long a connection may be idle between two requests."""
ANSWER_WITHIN_S = 90.0
"""Body and answer; the longest, a what-if, gives up after 60 s."""


class RequestLimits:
    """The middleware, with what is under way. ``spared``: paths that are answered always, and ask no other worker."""

    def __init__(self, spared: tuple[str, ...] = (), answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self.spared, self.answer_within_s = spared, answer_within_s
        self.under_way = 0

    def middleware(self) -> Any:
        """For aiohttp's application; the first of all."""

        @web.middleware
        async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
            if len(request.path_qs) > MAX_PATH_CHARACTERS:
                return _refused(414, "The address is too long.")
            # Without these an orchestrator would restart a busy worker, and workers that ask each other would deadlock.
            if request.path.startswith(self.spared):
                return await self._timed(request, handler)
            if self.under_way >= MAX_REQUESTS:
                return _refused(503, "Too many requests are under way: ask again in a second.")
            self.under_way += 1
            try:
                return await self._timed(request, handler)
            finally:
                self.under_way -= 1

        return limited

    async def _timed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self.answer_within_s):
                return await handler(request)
        except TimeoutError:
            return _refused(503, "This took too long: ask for less, or again.")


def _refused(status: int, sentence: str) -> web.Response:
    headers = {"Retry-After": "1"} if status == 503 else {}
    return web.json_response({"error": sentence}, status=status, headers=headers)


class Runner(web.AppRunner):
    """aiohttp's, with a limit of connections and of the time until a request's head has come."""

    def __init__(
        self,
        app: web.Application,
        head_within_s: float = HEAD_WITHIN_S,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        super().__init__(app, access_log=None, keepalive_timeout=head_within_s)
        self.max_connections = max_connections

    async def _make_server(self) -> Any:
        server = await super()._make_server()
        server.connection_made = _counting(server, self.max_connections)  # type: ignore[method-assign]
        return server


def _counting(server: Any, most: int) -> Any:
    """aiohttp's ``Server.connection_made``, which closes a connection beyond the limit at once."""
    take = server.connection_made

    def connection_made(handler: Any, transport: asyncio.Transport) -> None:
        # First taken: aiohttp then knows the connection, and removes it when it is lost.
        take(handler, transport)
        if len(server.connections) > most:
            # close() would wait until the client has taken what is buffered.
            transport.abort()

    return connection_made
