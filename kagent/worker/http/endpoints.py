"""Health, metrics and the older ``/api/groups``: Faust's pages, attached to a worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import faust

from kagent.client.client import current
from kagent.errors import KafkaError
from kagent.worker.http import cluster_view, server
from kagent.worker.http.metrics import exposition

if TYPE_CHECKING:
    from kagent.worker.process import Worker


def wire(worker: Worker, app: faust.App) -> None:
    """Attach them."""
    _wire_health(worker, app)
    _wire_groups(worker, app)


def _wire_health(worker: Worker, app: faust.App) -> None:
    @app.page("/healthz")
    async def healthz(web: Any, request: Any) -> Any:
        well, body = worker.health()
        # An orchestrator or load balancer reads the status alone; the body is for people.
        return web.json(body, status=200 if well else 503)

    @app.page("/readyz")
    async def readyz(web: Any, request: Any) -> Any:
        return web.json({"ready": worker.ready}, status=200 if worker.ready else 503)

    @app.page("/metrics")
    async def metrics(page: Any, request: Any) -> Any:
        seen = await server.view(worker.desk, worker.ready)
        # In a thread: a cluster with many groups takes long, and heartbeats must go on.
        body = await asyncio.to_thread(exposition, seen, server.limits(worker.desk))
        return page.bytes(body, content_type="text/plain")


def _wire_groups(worker: Worker, app: faust.App) -> None:
    @app.page(cluster_view.OWN)
    async def own(page: Any, request: Any) -> Any:
        return page.json((await worker.own_part(request.query.get("group"))).to_json())

    @app.page("/api/groups")
    async def groups(page: Any, request: Any) -> Any:
        return page.json((await worker.whole()).to_json())

    @app.page("/api/groups/{group}")
    async def group(page: Any, request: Any, group: str) -> Any:
        found = await worker.whole(group)
        # 404 only if every partition's owner has answered: else the group may be a silent worker's.
        return page.json(found.to_json(), status=200 if found.groups else 404 if found.complete else 503)

    @app.page("/api/recommendations")
    async def open_now(page: Any, request: Any) -> Any:
        try:
            published = await current(worker.home, worker.settings.topics.recommendations)
        except KafkaError as error:
            return page.json({"error": str(error)}, status=503)
        return page.json(server.open_json(published))
