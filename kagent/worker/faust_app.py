"""Faust's app: its configuration, and what of its life cycle the outbox and the rights need to take part in."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any

import faust
from aiokafka.errors import KafkaError as ClientError
from tenacity import AsyncRetrying, retry_if_exception_type

from kagent.errors import KafkaError
from kagent.kafka.clients import faust_broker
from kagent.kafka.silent_client import silent_client
from kagent.retry import BACKOFF, warned
from kagent.settings import Cluster, Settings
from kagent.worker import rights
from kagent.worker.fence import PartitionProducers
from kagent.worker.http import security
from kagent.worker.http.cluster_view import reached_at
from kagent.worker.http.web_application import application_options
from kagent.worker.outbox import Outbox
from kagent.worker.quiet_worker import QuietWorker
from kagent.worker.recovery_watch import watched
from kagent.worker.repeated_lines import shorten_outages
from kagent.worker.table_disk import about_disk
from kagent.worker.transport import Transport

log = logging.getLogger("kagent.app")
SESSION_TIMEOUT_S = 15.0
"""After this time a dead worker's partitions go to another worker, or to the same one restarted."""

END_WITHIN_S = 25.0
"""A worker that gets the signal to end does so after this time at the latest. Nothing is lost by it, and orchestrators kill after 30 s."""


class App(faust.App):
    """Faust's app, which makes sure of its topics before it starts, however long the cluster is away."""

    settings_: Settings
    home_: Cluster
    outbox: Outbox
    _watching: asyncio.Task[None] | None = None

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    async def _on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Commit what waits while the partitions are still ours."""
        await self.outbox.revoke()
        await super()._on_partitions_revoked(revoked)

    async def _on_partitions_assigned(self, assigned: set[Any], generation_id: int = 0) -> None:
        """Fence off the previous owners before their changelogs are read; nothing is fetched meanwhile."""
        self._stop_fetching(assigned)
        # Faust's assignor gives the ticks and changelogs of the same number to the same worker.
        mine = {tp.partition for tp in assigned if tp.topic == self.settings_.topics.events}
        # Retried here, within the rebalance: recovery must not begin before the predecessors are fenced.
        later = warned(log, "the assigned partitions cannot be taken over yet")
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(ClientError), wait=BACKOFF, before_sleep=later
        ):
            with attempt:
                await self.outbox.take_over(mine)
        if self._watching is None:
            tables: Any = self.tables
            self._watching = asyncio.create_task(watched(tables.recovery, rights.begin_anew))
        await super()._on_partitions_assigned(assigned, generation_id)

    def _stop_fetching(self, assigned: set[Any]) -> None:
        """Fetch nothing until recovery resumes the flow.

        At a revocation Faust stops the flow only of a worker that holds partitions. One that held none would fetch from the
        new ones at once, and Faust's conductor raises KeyError for a record of a partition that it has no stream for yet.
        """
        self.consumer.stop_flow()
        self.flow_control.suspend()
        self.consumer.pause_partitions(assigned)

    async def on_stop(self) -> None:
        """Commit what waits before the consumer commits offsets for the last time."""
        # A thread, not a task: it must end the process also where the event loop is what hangs.
        giving_up = threading.Timer(END_WITHIN_S, self._give_up)
        giving_up.daemon = True
        giving_up.start()
        if self._watching is not None:
            self._watching.cancel()
        await self.outbox.close()
        await super().on_stop()

    def _give_up(self) -> None:
        """End now: while no broker answers, Faust goes on trying to commit and to leave its group."""
        log.warning("the cluster does not answer: this worker ends without taking leave of its group")
        logging.shutdown()
        os._exit(1 if self.crashed else 0)

    async def start(self) -> None:
        """As Faust's, which ends with a traceback where the cluster goes away between two of its steps: wait for it instead."""
        try:
            await super().start()
        except ClientError as error:
            if not error.retriable:
                raise
            rights.begin_anew(f"the cluster went away while this worker started ({type(error).__name__})")

    async def on_first_start(self) -> None:
        """Create what is missing; wait for a cluster that cannot be reached, refuse with a sentence otherwise."""
        try:
            with silent_client(unless=logging.DEBUG):
                await rights.granted(self.settings_, self.home_, self.settings_.clusters)
        except KafkaError as error:
            log.error("%s", error)
            os._exit(2)  # Faust would show a traceback and try for ever
        for chatty in ("faust.tables.recovery", "faust.app.base", "faust.transport.drivers.aiokafka"):
            logging.getLogger(chatty).setLevel(logging.WARNING)  # they print a line per table and partition
        shorten_outages()
        await super().on_first_start()

    async def crash(self, reason: BaseException) -> None:
        """As Faust's, which logs a traceback first."""
        _begin_anew_to_wait(reason)
        await super().crash(reason)

    def _crash(self, reason: BaseException) -> None:
        _begin_anew_to_wait(reason)
        super()._crash(reason)


def _begin_anew_to_wait(reason: BaseException) -> None:
    """No crash for what :func:`rights.granted` waits for: a supervisor would restart it for ever, without an answer on its port that
    says what is lacking."""
    if rights.about_rights(reason) or about_disk(reason):
        rights.begin_anew(reason)


def faust_app(settings: Settings, home: Cluster) -> App:
    """The app for these settings; kagent's own topics are on ``home``."""
    broker, credentials = faust_broker(home)
    host, tls = reached_at(settings.worker, home.bootstrap), security.server_tls(settings.worker.http)
    app = App(
        settings.topics.app,
        Worker=QuietWorker,
        broker=broker,
        broker_credentials=credentials,
        # Faust lets the environment win over these arguments: unprefixed, a stray BROKER_URL changes the broker.
        env_prefix="KAGENT_",
        datadir=settings.worker.data,
        store=settings.worker.store,
        # Exactly-once comes from the outbox's transactions; Faust's own leaves messages to foreign topics outside of them.
        processing_guarantee="at_least_once",
        topic_partitions=settings.topics.partitions,
        topic_replication_factor=settings.topics.replication,
        # Faust's leader is not fenced; what is done once is done by the owner of partition 0.
        topic_disable_leader=True,
        # A standby in memory reads its changelog again when it is promoted: it saves nothing.
        table_standby_replicas=0,
        # A topic that is created after the subscription is found at a refresh of the metadata: after 5 min by default.
        consumer_metadata_max_age_ms=15_000,
        # The max.message.bytes of kagent's topics.
        consumer_max_fetch_size=8 * 1024 * 1024,
        # With latest, recovery can hang where a changelog loses segments meanwhile.
        # https://github.com/faust-streaming/faust/issues/651
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_TIMEOUT_S,
        # A restart reads again what came within worker.flush and this.
        broker_commit_interval=2.0,
        producer_linger=0.02,
        producer_max_request_size=8 * 1024 * 1024,
        producer_compression_type="zstd",
        stream_buffer_maxsize=16_384,
        # What is not acknowledged at a revocation is read again by the next owner.
        stream_wait_empty=False,
        web_bind=settings.worker.web_host,
        web_host=host,
        web_port=settings.worker.web_port,
        web_ssl_context=tls,
        canonical_url=f"https://{host}:{settings.worker.web_port}" if tls else None,
        web_application_options=application_options(settings.worker.http),
        worker_redirect_stdouts=False,
        autodiscover=False,
    )
    app.settings_, app.home_ = settings, home
    producers = PartitionProducers(home, app.conf.id, SESSION_TIMEOUT_S)
    app.outbox = Outbox(producers, lambda event: event.ack(app.consumer))
    return app
