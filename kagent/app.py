"""The Faust app: topics, tables, agents and timers. Wiring only; ``faust -A kagent.app worker`` runs it.

What decides stands in ``kagent.worker`` and ``kagent.incident``. A timer sends a tick to every owned partition, whose agent judges
that partition's groups; what it changes goes through the outbox, in transactions of the partition's owner.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import click
import faust

from kagent.errors import KagentError
from kagent.kafka.names import LoopPolicy
from kagent.kafka.rights import LOOK_EVERY_S
from kagent.settings import load
from kagent.worker import deleted_groups, lost_rows, published_watch
from kagent.worker.http import endpoints, pages
from kagent.worker.process import Worker

log = logging.getLogger("kagent.app")


def wire(worker: Worker) -> faust.App:
    """Attach agents, timers, tasks and pages."""
    _wire_topics(worker, worker.app)
    _wire_timers(worker, worker.app)
    endpoints.wire(worker, worker.app)
    pages.wire(worker, worker.app)
    return worker.app


def _wire_topics(worker: Worker, app: faust.App) -> None:
    @app.on_rebalance_complete.connect(weak=False)
    async def recovered(*_: Any, **__: Any) -> None:
        worker.ownership.recovered()

    @app.agent(worker.events, name="events")
    async def events(stream: Any) -> None:
        async for event in stream.noack().events():  # the outbox acknowledges, once the rows are committed
            await worker.event_reader.take(event.message)
            await worker.tick_reader.send_first(event.message.partition)

    @app.agent(worker.ticks, name="ticks")
    async def ticks(stream: Any) -> None:
        async for event in stream.events():
            try:
                await worker.tick_reader.take(event.message)
            except KagentError as error:
                log.warning("a tick could not be judged: %s", error)
            # An exception that leaves the loop acknowledges the tick unjudged and restarts the agent.
            except Exception:
                log.exception("a tick could not be judged")

    @app.task
    async def mutes() -> None:
        await worker.mute_reader.run()


def _wire_timers(worker: Worker, app: faust.App) -> None:
    intervals = worker.settings.worker

    @app.timer(interval=intervals.tick, name="tick")
    async def tick() -> None:
        await worker.tick_reader.send()

    @app.task
    async def flush() -> None:
        while not app.should_stop:
            await asyncio.sleep(intervals.flush)
            await worker.outbox.flush_all()

    # Faust awaits the function before it counts the next interval: a slow sample delays the one after it.
    @app.timer(interval=intervals.sample, name="sample")
    async def sample() -> None:
        await worker.clusters.sample()

    @app.timer(interval=LOOK_EVERY_S, name="rights")
    async def check_rights() -> None:
        await worker.clusters.check_rights(worker.rights)

    @app.timer(interval=published_watch.LOOK_EVERY_S, name="published")
    async def look_at_published() -> None:
        await worker.published_watch.look()

    @app.timer(interval=lost_rows.LOOK_EVERY_S, name="lost_rows")
    async def look_for_lost_rows() -> None:
        await worker.lost_rows.look()

    @app.timer(interval=deleted_groups.LOOK_EVERY_S, name="deleted_groups")
    async def look_for_deleted_groups() -> None:
        await worker.deleted_groups.look()

    @app.timer(interval=intervals.state_interval, name="state")
    async def state() -> None:
        await worker.publish_state()

    if worker.auto.enabled:

        @app.timer(interval=intervals.tick, name="apply")
        async def apply() -> None:
            await worker.apply_plans()


def create() -> faust.App:
    """The app for the settings in effect. Raises click's exception with a sentence, as Faust's command line shows it."""
    # Before Faust makes its loops, one for the app and one for its consumer.
    asyncio.set_event_loop_policy(LoopPolicy())
    try:
        settings = load()
        watched, _ = settings.cluster(os.environ.get("KAGENT_CLUSTER"))
        return wire(Worker(settings, watched))
    except KagentError as error:
        failure = click.ClickException(str(error))
        failure.exit_code = 2  # as in every command; click's own is 1
        raise failure from error


app = create()
