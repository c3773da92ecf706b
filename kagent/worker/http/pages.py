"""The page and ``/api/v1`` on the worker's web port: addresses, and nothing else."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import faust
import orjson
from aiohttp import web

from kagent.settings import HttpSettings
from kagent.worker.http import assets, cluster_view, limits, security
from kagent.worker.http.api import ROUTES, Api, Route, answered, problem
from kagent.worker.http.own import Own
from kagent.worker.http.workers import OWN, Workers

if TYPE_CHECKING:
    from kagent.worker.process import Worker

log = logging.getLogger("kagent.http")


def application_options(settings: HttpSettings) -> dict[str, Any]:
    """How aiohttp's application is made."""
    limited = limits.RequestLimits((*security.OPEN_PATHS, cluster_view.OWN)).middleware()
    return {
        # Limits first: they also hold for requests without a login.
        "middlewares": [limited, front, security.guard(settings), problems_as_json],
        "client_max_size": limits.MAX_BODY_BYTES,
    }


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


def wire(worker: Worker, app: faust.App) -> None:
    """Attach the page, its API, and what the workers ask each other."""
    http = worker.settings.worker.http
    own = Own(worker.desk, lambda: worker.loaded)
    workers = Workers(
        lambda: worker.app.http_client,
        own.answer,
        worker.peers,
        http.login_headers(),
        http.client_tls(),
    )
    api = Api(
        workers,
        lambda name: worker.samplers[name].admin if name in worker.samplers else None,
        tuple(worker.settings.clusters),
        worker.settings.topics.partitions,
        worker.settings.worker.tick,
        worker.desk.redaction,
    )
    made: Any = app.web
    made._runner = limits.Runner(application(app))  # Faust makes one without limits
    router = application(app).router
    # Before Faust's own, which answers OK whatever kagent sees.
    router.add_get("/", _index(worker))
    for route in ROUTES:
        router.add_route(route.method, route.path, _handler(api, route))
    router.add_get("/ui", _shown)
    router.add_get("/ui/{path:.*}", _shown)
    router.add_get(OWN + "{question}", _own_handler(own))


def _index(worker: Worker) -> security.Handler:
    """What ``/`` answers to who is no browser."""

    async def handle(request: web.Request) -> web.StreamResponse:
        well, _ = worker.health()
        return web.json_response(worker.sight(), status=200 if well else 503)

    return handle


def application(app: faust.App) -> web.Application:
    """The aiohttp application behind Faust's web port."""
    found: Any = app.web
    made: web.Application = found.web_app
    return made


def _handler(api: Api, route: Route) -> security.Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await answered(api, route, request)

    return handle


async def _shown(request: web.Request) -> web.StreamResponse:
    path = request.match_info.get("path")
    return show(request, assets.page(0) if path is None else assets.found(path))


def _own_handler(own: Own) -> security.Handler:
    """What another worker asks: this one's part alone."""

    async def handle(request: web.Request) -> web.StreamResponse:
        # Before anything is made: with nothing new, workers exchange headers only.
        if f'"{own.version()}"' in request.headers.get("If-None-Match", ""):
            return web.Response(status=304)
        try:
            part = await own.answer(request.match_info["question"], request.query)
        except KeyError:
            return problem(404, "There is no such question.")
        body = orjson.dumps(part, option=orjson.OPT_NON_STR_KEYS)
        return web.Response(body=body, content_type="application/json", charset="utf-8")

    return handle
