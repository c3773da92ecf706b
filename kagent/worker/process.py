"""One worker process: the engine, what feeds it, and what it reports to others. ``kagent.app`` attaches it to Faust."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

from kagent.apply.auto import MOVED_AT_ONCE_S, AutoApply
from kagent.settings import Settings
from kagent.tables.declaration import Tables
from kagent.tables.declare import declare_all
from kagent.worker import rights
from kagent.worker.cluster_samplers import ClusterSamplers
from kagent.worker.dead_letters import DeadLetters
from kagent.worker.deleted_groups import DeletedGroups
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.event_reader import EventReader
from kagent.worker.faust_app import App, faust_app
from kagent.worker.http import server
from kagent.worker.http.cluster_view import Whole, WorkerReply, merge
from kagent.worker.http.cluster_view import ask as ask_peers
from kagent.worker.log_end_sampler import Sampler
from kagent.worker.lost_rows import LostRows
from kagent.worker.mute_reader import MuteReader
from kagent.worker.ownership import Ownership
from kagent.worker.published_watch import PublishedWatch
from kagent.worker.tick_reader import TickReader

log = logging.getLogger("kagent.app")
# Faust's codec for plain bytes is raw; its binary is base64. What they hold, kagent.contract.admission checks.
RAW: dict[str, Any] = {
    "key_type": bytes,
    "value_type": bytes,
    "key_serializer": "raw",
    "value_serializer": "raw",
}


class Worker:
    """The pieces of a worker. Tests give ``tables`` and a ``clock`` (seconds since the epoch) of their own."""

    def __init__(
        self,
        settings: Settings,
        watched: str,
        tables: Tables | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        # kagent's own topics may be on a cluster that is not watched.
        self.home = settings.home_cluster(watched)
        self.app: App = faust_app(settings, self.home)
        self.outbox = self.app.outbox
        topics = settings.topics
        self.events = self.app.topic(topics.events, partitions=topics.partitions, **RAW)
        ticks = self.app.topic(topics.ticks, partitions=topics.partitions, **RAW)
        self.ticks = ticks
        self.clusters = ClusterSamplers(settings.clusters)
        rows = tables if tables is not None else declare_all(self.app, topics.partitions, self.outbox)
        # With the port: several workers may run on a host.
        name = f"{socket.gethostname()}:{settings.worker.web_port}"
        engine = GroupEngine.of(settings, rows, self.publish, self.clusters.ask, name, clock)
        # Each needs the other: the engine asks coordinators through the samplers, which write what they read into it.
        self.desk = self.clusters.engine = engine
        self.auto = AutoApply(settings, engine.policies)
        engine.applied = self.auto.counts
        self.rights = rights.Rights(settings, self.home)
        self.ownership = Ownership(engine, self.app, self.home, self.clusters.rebuild_commits)
        self.dead_letters = DeadLetters(engine, self.app.topic(topics.dead_letters, **RAW))
        self.event_reader = EventReader(
            engine, self.ownership, self.outbox, self.dead_letters, self.home, self.clusters.learn_sources
        )
        self.tick_reader = TickReader(
            engine, self.ownership, self.outbox, self.dead_letters, ticks, self.clusters.sample
        )
        self.published_watch = PublishedWatch(engine, self.ownership, self.home)
        admins = {name: sampler.admin for name, sampler in self.clusters.by_cluster.items()}
        self.lost_rows = LostRows(engine, self.ownership, admins)
        self.deleted_groups = DeletedGroups(engine, self.ownership, admins)
        self.mute_reader = MuteReader(engine.mutes, self.ownership, self.dead_letters, self.home)
        if engine.redaction and settings.salt() is None:
            log.warning(
                "names are hidden without a redact_salt: a guessed name can be checked against its hash"
            )

    @property
    def ready(self) -> bool:
        """Whether the groups that are ours, be they none, have been loaded since the start."""
        return self.ownership.ready

    @property
    def loaded(self) -> set[int]:
        """The partitions whose groups may be shown; none before the worker has caught up."""
        return self.ownership.loaded if self.ready else set()

    @property
    def samplers(self) -> dict[str, Sampler]:
        """Cluster → its sampler."""
        return self.clusters.by_cluster

    def publish(
        self, partition: int, key: str, value: bytes | None, on_delivery: Callable[[], None] | None = None
    ) -> None:
        """Send to the recommendations topic at the partition's next flush."""
        topic = self.settings.topics.recommendations
        self.outbox.publish(partition, topic, key.encode(), value, on_delivery)

    def peers(self) -> list[str]:
        """The other workers' addresses, by Faust's last assignment."""
        assignor: Any = self.app.assignor  # its interface declares only some of what it can tell
        return sorted(
            url
            for url in map(str, assignor.external_topics_metadata())
            if url != str(self.app.conf.canonical_url)
        )

    async def own_part(self, only: str | None) -> WorkerReply:
        """This worker's groups; none before it has caught up."""
        return await server.own(self.desk, self.loaded, only)

    async def whole(self, only: str | None = None) -> Whole:
        """All workers' groups, or the group of this name in full."""
        params = {} if only is None else {"group": only}
        http = self.settings.worker.http
        login, tls = http.login_headers(), http.client_tls()
        mine, (others, silent) = await asyncio.gather(
            self.own_part(only), ask_peers(self.app.http_client, self.peers(), params, login, tls)
        )
        return merge([mine, *others], self.settings.topics.partitions, silent)

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether ticks are being judged, if any partition is ours."""
        age_s = self.desk.clock() - self.desk.last_tick
        loaded = self.ownership.loaded
        # A spare worker without partitions is healthy. At least 30 s: a rebalance takes longer than a tick.
        well = self.ready and (not loaded or age_s < max(30.0, 3 * self.settings.worker.tick))
        return well and not self.rights.blinds(), {
            "ready": self.ready,
            "partitions": sorted(loaded),
            # Before the first tick there is no age, and a clock of 1970 is none.
            "last_tick_age_s": round(age_s, 1) if self.desk.last_tick else None,
            "lacking": self.rights.sentences,
        }

    def sight(self) -> dict[str, str | None]:
        """``{"status": "OK"}``, or that a cluster whose groups are ours is not watched, and why."""
        unseen = next((s for s in self.desk.live.summaries.values() if s.status != "watching"), None)
        if self.rights.blinds():
            return {"status": "blind", "reason": " ".join(self.rights.sentences)}
        return {"status": unseen.status, "reason": unseen.reason} if unseen else {"status": "OK"}

    async def apply_plans(self) -> None:
        """Have our groups whose policy says ``apply: auto`` take their open plans, one after the other."""
        if not self.ready:
            return
        # One after the other: each waits until the group's members have taken up their partitions.
        for plan in self.auto.due(list(self.desk.published.values())):
            await in_thread(self.auto.apply, plan, limit=MOVED_AT_ONCE_S)

    async def publish_state(self) -> None:
        """Publish the state message of every cluster, if we own partition 0."""
        # Summaries of all partitions come to the owner of partition 0: only it can add them up.
        if 0 not in self.ownership.owned() or not self.ready:
            return
        for cluster in self.settings.clusters:
            state = self.rights.state(cluster, self.desk.state(cluster))
            self.publish(0, cluster, state.model_dump_json(by_alias=True).encode())
        # At once: monitors for a missing heartbeat compare the time in this message.
        await self.outbox.flush(0)
