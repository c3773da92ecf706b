"""The page and ``/api/v1`` on the worker's web port: addresses, and nothing else."""

from __future__ import annotations

from typing import Any

import faust
import orjson
from aiohttp import web

from kagent.worker.http import assets, limits, security
from kagent.worker.http.api import ROUTES, Api, ApiRoute, answered, problem
from kagent.worker.http.own import Own
from kagent.worker.http.web_application import show
from kagent.worker.http.workers import OWN, Workers
from kagent.worker.process import Worker


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


def _handler(api: Api, route: ApiRoute) -> security.Handler:
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
