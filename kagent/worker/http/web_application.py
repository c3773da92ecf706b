"""How aiohttp's application on the worker's web port is made: limits, login, and errors as sentences."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from kagent.settings import HttpSettings
from kagent.worker.http import assets, cluster_view, limits, security
from kagent.worker.http.api import problem

log = logging.getLogger("kagent.http")


def application_options(settings: HttpSettings) -> dict[str, Any]:
    """How aiohttp's application is made."""
    logging.getLogger("aiohttp.server").addFilter(REFUSED_REQUESTS)
    limited = limits.RequestLimits((*security.OPEN_PATHS, cluster_view.OWN)).middleware()
    return {
        # Limits first: they also hold for requests without a login.
        "middlewares": [limited, front, security.guard(settings), problems_as_json],
        "client_max_size": limits.MAX_BODY_BYTES,
    }


class RefusedRequests(logging.Filter):
    """A request that is no HTTP, or too long, is one line: with aiohttp's traceback for each, any client could fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            record.exc_info = record.exc_text = None
            record.msg, record.args = "%s: %s", (record.getMessage(), type(error).__name__)
        return True


REFUSED_REQUESTS = RefusedRequests()
"""One for all applications of a process: a logger takes the same filter once."""


@web.middleware
async def front(request: web.Request, handler: security.Handler) -> web.StreamResponse:
    """The page at ``/`` for browsers; who does not ask for HTML gets the status as JSON."""
    if request.path == "/" and "text/html" in request.headers.get("Accept", ""):
        return show(request, assets.page(0))
    return await handler(request)


@web.middleware
async def problems_as_json(request: web.Request, handler: security.Handler) -> web.StreamResponse:
    """Under ``/api/``, what aiohttp and a defect of kagent's would answer as plain text is a ``models.Problem`` too."""
    if not request.path.startswith("/api/"):
        return await handler(request)
    try:
        return await handler(request)
    except web.HTTPException as error:
        # aiohttp raises redirects as exceptions too.
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        answer = problem(error.status, sentence_of(error, request))
        # A 405 has to name the methods: https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6
        if "Allow" in error.headers:
            answer.headers["Allow"] = error.headers["Allow"]
        return answer
    except Exception:
        log.exception("%s %r cannot be answered", request.method, request.path)
        return problem(
            500,
            "kagent failed to answer this: it is a defect of kagent, and the worker's log has its traceback.",
        )


def sentence_of(error: web.HTTPException, request: web.Request) -> str:
    """What is wrong with a request that aiohttp refuses, and what to do."""
    if error.status == HTTPStatus.NOT_FOUND:
        return "There is no such address; /api/v1/openapi.json lists those that there are."
    if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"{request.method} is not answered here; use {error.headers.get('Allow', 'GET')}."
    if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return "The body is too large."
    return f"{error.reason}."


def show(request: web.Request, asset: assets.Asset | None) -> web.Response:
    """One file of the page."""
    if asset is None:
        return problem(404, "There is no such page; begin at /ui/.")
    headers = {**security.HEADERS, "ETag": asset.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if asset.tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    packed = "gzip" in request.headers.get("Accept-Encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    body = asset.packed if packed else asset.body
    return web.Response(body=body, content_type=asset.kind, charset="utf-8", headers=headers)
