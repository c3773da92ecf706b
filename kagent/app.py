"""The Faust app: topics, tables, agents and ticks. Wiring only; ``faust -A kagent.app worker`` runs it.

What decides stands in ``kagent.worker`` and ``kagent.advice``. Table rows are written inside agents alone (Faust
allows it nowhere else), so a timer sends a tick to every owned partition and an agent judges that partition's groups.
"""

from __future__ import annotations

import logging
import os

import faust

from kagent.settings import Settings

log = logging.getLogger("kagent.app")

SESSION_TIMEOUT = 15.0
"""Seconds after which a dead worker's partitions go to another, or to itself restarted."""


def create(settings: Settings) -> faust.App:
    """The app for these settings: configured, with nothing attached to it yet."""
    watched, _ = settings.cluster(os.environ.get("KAGENT_CLUSTER"))
    from kagent.kafka.clients import faust_broker

    broker, credentials = faust_broker(settings.home_cluster(watched))
    return faust.App(
        settings.topics.prefix.rstrip("-") or "kagent",
        broker=broker,
        broker_credentials=credentials,
        env_prefix="KAGENT_",
        datadir=settings.worker.data,
        store=settings.worker.store,
        processing_guarantee="at_least_once",
        topic_partitions=settings.topics.partitions,
        topic_replication_factor=settings.topics.replication,
        topic_disable_leader=True,
        table_standby_replicas=0,
        consumer_metadata_max_age_ms=15_000,
        consumer_max_fetch_size=8 * 1024 * 1024,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_TIMEOUT,
        broker_commit_interval=2.0,
        producer_linger=0.02,
        producer_max_request_size=8 * 1024 * 1024,
        producer_compression_type="zstd",
        stream_buffer_maxsize=16_384,
        stream_wait_empty=False,
        web_bind=settings.worker.web_host,
        web_port=settings.worker.web_port,
        worker_redirect_stdouts=False,
        autodiscover=False,
    )
