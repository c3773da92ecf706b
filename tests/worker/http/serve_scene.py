"""A watched scene served by a process of its own, which a test may stop: ``python -m tests.worker.http.serve_scene``."""

from __future__ import annotations

import asyncio
import os
import sys

from aiohttp.test_utils import TestServer

from tests.worker.http.scene import Load, made

TICK_S = 60
"""Judged only once here: what is old must be told by the silence of the process, not by this."""


async def main() -> None:
    """Print the address, then serve for ever."""
    from kagent.app import wire
    from kagent.worker.http.pages import application

    scene = made([Load("reports", 2, [5.0, 3.0])], 5, worker={"tick": TICK_S})
    for _ in range(30):
        await scene.step()
    app = wire(scene.worker)
    app.finalize()
    app.web.init_server()
    async with TestServer(application(app), host="127.0.0.1") as server:
        sys.stdout.write(f"{server.make_url('/')}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    os.environ["KAGENT_BOOTSTRAP"] = "127.0.0.1:1"  # kagent.app makes its app when it is imported
    asyncio.run(main())
