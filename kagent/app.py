"""The Faust app: topics, tables, agents and ticks. Wiring only; ``faust -A kagent.app worker`` runs it.

What decides stands in ``kagent.worker`` and ``kagent.incident``. A timer sends a tick to every owned partition, whose agent judges
that partition's groups; what it changes goes through the outbox, in transactions of the partition's owner.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import click
import faust
import msgspec
import orjson
from aiokafka.errors import KafkaError as ClientError
from faust.types import TP

from kagent.apply.auto import MOVED_AT_ONCE_S, AutoApply
from kagent.client.client import Message, current
from kagent.contract import admission
from kagent.contract.admission import Refused
from kagent.errors import KafkaError, KagentError
from kagent.kafka.admin import Admin
from kagent.kafka.clients import faust_broker
from kagent.kafka.consumer import consumer
from kagent.process_tree import backoff
from kagent.settings import Cluster, Settings, load
from kagent.tables import coverage, ends, lag, members, verdicts
from kagent.tables.declare import declare
from kagent.worker import rights
from kagent.worker.backfill import Reread, stretch
from kagent.worker.coordinator_check import Answer, ask
from kagent.worker.engine import Desk, in_thread
from kagent.worker.fence import PartitionProducers
from kagent.worker.groups import Entry
from kagent.worker.http import cluster_view, pages, security, server
from kagent.worker.http.cluster_view import Part, Whole, merge, reached_at
from kagent.worker.http.cluster_view import ask as ask_peers
from kagent.worker.http.metrics import exposition
from kagent.worker.log_end_sampler import Sampler
from kagent.worker.outbox import Outbox
from kagent.worker.status import Summary
from kagent.worker.transport import Transport

log = logging.getLogger("kagent.app")

LOG_APPEND_TIME = 1
"""``timestamp_type`` of a record whose time is the broker's (KIP-32)."""
READY_POLL_S = 0.1
SESSION_TIMEOUT = 15.0
"""Seconds after which a dead worker's partitions go to another, or to itself restarted."""


class Rows:
    """The tables, as the desk wants them."""

    def __init__(self, app: faust.App, partitions: int, outbox: Outbox) -> None:
        self.members: Any = declare(app, members.NAME, members.MembersRow, partitions, outbox)
        self.lag: Any = declare(app, lag.NAME, lag.LagRow, partitions, outbox)
        self.verdicts: Any = declare(app, verdicts.NAME, verdicts.VerdictRow, partitions, outbox)
        self.coverage: Any = declare(app, coverage.NAME, coverage.CoverageRow, partitions, outbox)
        self.ends: Any = declare(app, ends.NAME, ends.EndsRow, partitions, outbox)


class Worker:
    """One worker process: the app with its agents and timers, around a desk."""

    def __init__(self, settings: Settings, watched: str) -> None:
        self.settings, self.watched = settings, watched
        self.home = settings.home_cluster(watched)
        self.app: App = _app(settings, self.home)
        self.outbox = self.app.outbox
        self.name = f"{socket.gethostname()}:{settings.worker.web_port}"
        topics = settings.topics
        raw: dict[str, Any] = {
            "key_type": bytes,
            "value_type": bytes,
            "key_serializer": "raw",
            "value_serializer": "raw",
        }
        self.events = self.app.topic(topics.events, partitions=topics.partitions, **raw)
        self.ticks = self.app.topic(topics.ticks, partitions=topics.partitions, **raw)
        self.dead_letters = self.app.topic(topics.dead_letters, **raw)
        self.desk = Desk(
            settings, Rows(self.app, topics.partitions, self.outbox), self.publish, self.ask, self.name
        )
        self.auto = AutoApply(settings, self.desk.policies)
        self.desk.applied = self.auto.counts
        self.samplers = {
            name: Sampler(Admin(cluster, deadline=10)) for name, cluster in settings.clusters.items()
        }
        self.rights = rights.Rights(settings, self.home)
        if self.desk.redaction and settings.salt() is None:
            log.warning(
                "names are hidden without a redact_salt: a guessed name can be checked against its hash"
            )
        self.ready = False
        self._reload = asyncio.Lock()
        self._loaded: set[int] = set()
        self._recoveries = 0
        self._loaded_at = -1
        self._fresh: set[int] = set()
        self._looked = False
        self._published: dict[str, Message] = {}

    def publish(
        self, partition: int, key: str, value: bytes | None, on_delivery: Callable[[], None] | None = None
    ) -> None:
        """Send to the recommendations topic at the partition's next flush."""
        topic = self.settings.topics.recommendations
        self.outbox.publish(partition, topic, key.encode(), value, on_delivery)

    async def ask(self, entry: Entry) -> Answer | None:
        """The coordinator's word on a group, and fresh log ends of its topics."""
        sampler = self.samplers.get(entry.cluster)
        if sampler is None:
            return None
        answer: Answer | None = await in_thread(ask, sampler.admin, entry.group)
        topics = entry.topics(self.desk.names.get(entry.cluster, {}))
        samples = await in_thread(sampler.sample, topics)
        self.desk.sampled(entry.cluster, samples, sampler.names(), sampler.infos())
        return answer

    def owned(self) -> set[int]:
        """The partitions of the events topic that are ours now."""
        name = self.settings.topics.events
        return {tp.partition for tp in self.app.consumer.assignment() if tp.topic == name}

    async def own(self) -> None:
        """Look after what is ours now: rows into the index, and what is published for them."""
        async with self._reload:
            owned = self.owned()
            if self.app.rebalancing or self.app.in_recovery:
                return  # rows are missing until recovery has ended: what is built of them now would lack groups
            if owned == self._loaded and self._loaded_at == self._recoveries:
                return
            began = self._recoveries
            committed = await in_thread(self._committed)
            published = await current(self.home, self.settings.topics.recommendations)
            if began != self._recoveries or owned != self.owned():
                return  # a rebalance happened meanwhile: the next owner builds it
            self.desk.load(owned, committed)
            self._published = published
            self._fresh = set(owned)
            self._loaded, self._loaded_at = owned, began
            self._looked = False
            self.ready = True
        await self._rebuild()

    async def _rebuild(self) -> None:
        """Ask the coordinators for the commits of groups whose rows could not be read."""
        for partition, entry in self.desk.without_commits():
            sampler = self.samplers.get(entry.cluster)
            if sampler is None:
                continue
            found = await in_thread(sampler.admin.committed, [entry.group])
            self.desk.rebuilt(partition, entry, found.get(entry.group, {}))
            log.info("the commits of %r were asked of its coordinator", entry.key)

    def recovered(self) -> None:
        """Tables were read anew: the groups are built from them again, also of partitions that stayed ours."""
        self._recoveries += 1

    def _committed(self) -> dict[int, int | None]:
        admin, topics = Admin(self.home, deadline=10), self.settings.topics
        found = admin.committed([self.app.conf.id]).get(self.app.conf.id, {})
        return {p: found.get((topics.events, p)) for p in range(topics.partitions)}

    def _log_start(self, partition: int) -> int:
        key = (self.settings.topics.events, partition)
        return Admin(self.home, deadline=10).log_start([key]).found.get(key, 0)

    async def on_event(self, message: Any) -> None:
        """One message of the events topic; what cannot be read goes to the dead letters."""
        if not self._built(message.partition) and not await self._ready_for(message.partition):
            return  # whoever owns the partition now reads it again: its offset is not committed here
        if self.desk.arrival.jumped(message.partition, message.offset):
            await self._catch_up(message.partition, message.offset)
        await self._take(message)
        self.outbox.hold(message.partition, message)
        if self.outbox.urgent(message.partition):
            await self.outbox.flush(message.partition)

    def _built(self, partition: int) -> bool:
        return partition in self._loaded and self._loaded_at == self._recoveries

    async def _ready_for(self, partition: int) -> bool:
        """Wait until the groups of this partition are built from their rows; false if it is no longer ours.

        An event applied earlier would meet no rows, and put an older one over theirs.
        """
        failures = 0
        while not self._built(partition) and not self.app.should_stop:
            if self.app.rebalancing or self.app.in_recovery:
                await asyncio.sleep(READY_POLL_S)
                continue
            if partition not in self.owned():
                return False
            try:
                await self.own()
            except (KagentError, ClientError, TimeoutError) as error:
                failures += 1
                log.warning("partitions cannot be taken over yet: %s", error)
                await asyncio.sleep(backoff(failures))
            else:
                await asyncio.sleep(0 if self._built(partition) else READY_POLL_S)
        return self._built(partition)

    async def _catch_up(self, partition: int, end: int) -> None:
        """Take what lies before this offset, was not handed to us and still stands in the topic; the rest is lost."""
        start = max(self.desk.arrival.expected.get(partition, 0), await in_thread(self._log_start, partition))
        if start >= end:
            return
        try:
            async with aclosing(
                stretch(self.home, self.settings.topics.events, partition, start, end)
            ) as missed:
                async for message in missed:
                    await self._take(message)
                    self.outbox.hold(partition, Reread(TP(message.topic, partition), message.offset))
        except (TimeoutError, ClientError, KagentError) as error:
            log.warning(
                "events of partition %d before offset %d cannot be read again: %s", partition, end, error
            )
        else:
            log.info(
                "%d events of partition %d that Faust passed over were read again", end - start, partition
            )

    async def _take(self, message: Any) -> None:
        try:
            self.desk.take(message.partition, message.offset, message.value, arrived(message))
        except Exception as error:
            await self.refuse("event", message, error)

    async def refuse(self, what: str, message: Any, error: Exception) -> None:
        """Count a record that is not let in, and put it among the dead letters; nothing restarts over it."""
        reason = error.reason if isinstance(error, Refused) else "not_applied"
        self.desk.counts["dead_letters"] += 1
        self.desk.refused[what, reason] += 1
        letter = server.dead_letter(message, error, bool(self.desk.redaction))
        if isinstance(error, Refused):
            log.warning("%s at %s is not let in: %s", what, letter["from"], letter["why"])
        else:
            log.error("%s at %s cannot be applied", what, letter["from"], exc_info=error)
        await self.dead_letters.send(key=message.key, value=orjson.dumps({**letter, "reason": reason}))

    async def on_tick(self, message: Any) -> None:
        """A tick: judge the partition, or, for a summary, take note of it."""
        try:
            tick = admission.tick(message.value)
        except Refused as error:
            await self.refuse("tick", message, error)
            return
        if isinstance(tick, admission.SummaryTick):
            self.desk.summarised(Summary.from_json(msgspec.structs.asdict(tick.summary)))
        elif tick is not None and self._timely(tick.time) and message.partition in self.owned():
            await self._on_tick(message.partition, tick.time)

    def _timely(self, time_ms: int) -> bool:
        """Whether a tick is of now: not left over from before a standstill, nor from a clock that was ahead."""
        return abs(self.desk.now - time_ms) <= max(15_000, 2_000 * self.settings.worker.tick)

    async def _on_tick(self, partition: int, time_ms: int) -> None:
        await self.own()
        if not self._built(partition):
            return
        if not self._looked:  # what was remembered of log ends is from before: look before anything is judged
            self._looked = True
            await self.sample()
        if partition in self._fresh:
            self._fresh.discard(partition)
            self.desk.adopt(partition, self._published)
        summaries = await self.desk.tick(partition, time_ms)
        if self.outbox.urgent(partition):
            await self.outbox.flush(partition)  # what the tick said is seen now, with its rows
        for summary in summaries:
            value = orjson.dumps({"type": "summary", "summary": summary.to_json()})
            await self.ticks.send(value=value, partition=0)

    async def send_ticks(self) -> None:
        """Ask for a judgement of every partition that is ours."""
        if self.app.rebalancing:
            return
        value = orjson.dumps({"type": "tick", "time": self.desk.now})
        for partition in self.owned():
            await self.ticks.send(value=value, partition=partition)

    async def sample(self) -> None:
        """Ask every cluster for the log ends of the topics that its groups read."""
        for cluster, sampler in self.samplers.items():
            topics, unresolved = self.desk.topics(cluster)
            began = time.monotonic()
            try:
                await in_thread(sampler.describe, topics, unresolved)
                samples = await in_thread(sampler.sample, topics)
            except (KafkaError, TimeoutError) as error:
                self.desk.counts["samples_failed"] += 1
                log.warning("log ends of %s are not known: %s", cluster, error)
                continue
            self.desk.sampled(cluster, samples, sampler.names(), sampler.infos())
            self.desk.sampling_took(cluster, time.monotonic() - began)

    async def look_at_rights(self) -> None:
        """Ask what our user may do; begin anew, and wait, without a right that no work can be done without."""
        try:
            await in_thread(self.rights.look_home)
            for cluster, sampler in self.samplers.items():
                topics, _ = self.desk.topics(cluster)
                groups = [
                    e.group
                    for es in self.desk.index.partitions.values()
                    for e in es.values()
                    if e.cluster == cluster
                ]
                await in_thread(self.rights.look, cluster, sampler.admin, topics, groups)
        except (KafkaError, TimeoutError) as error:
            log.debug("rights are not known: %s", error)
        if self.rights.own:
            rights.begin_anew(" ".join(self.rights.sentences))
        self.rights.say()

    @property
    def loaded(self) -> set[int]:
        """The partitions whose groups can be told of; none before the worker has caught up."""
        return self._loaded if self.ready else set()

    def peers(self) -> list[str]:
        """The other workers' addresses, by Faust's last assignment."""
        assignor: Any = self.app.assignor  # its interface names only some of what it can tell
        return sorted(
            url
            for url in map(str, assignor.external_topics_metadata())
            if url != str(self.app.conf.canonical_url)
        )

    async def own_part(self, only: str | None) -> Part:
        """What this worker can tell of groups; of none before it has caught up."""
        return await server.own(self.desk, self.loaded, only)

    async def whole(self, only: str | None = None) -> Whole:
        """What all workers tell of their groups, or of the group of this name in full."""
        params = {} if only is None else {"group": only}
        http = self.settings.worker.http
        login, tls = http.login_headers(), http.client_tls()
        mine, (others, silent) = await asyncio.gather(
            self.own_part(only), ask_peers(self.app.http_client, self.peers(), params, login, tls)
        )
        return merge([mine, *others], self.settings.topics.partitions, silent)

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether ticks are being judged, if any partition is ours."""
        age = self.desk.clock() - self.desk.last_tick
        idle = not self._loaded
        well = self.ready and (idle or age < max(30.0, 3 * self.settings.worker.tick))
        return well and not self.rights.blinds(), {
            "ready": self.ready,
            "partitions": sorted(self._loaded),
            "last_tick_age_s": round(age, 1),
            "lacking": self.rights.sentences,
        }

    async def hear_mutes(self) -> None:
        """Follow the mutes topic from its beginning: every worker hears every mute."""
        topic, failures = self.settings.topics.mutes, 0
        while not self.app.should_stop:
            try:
                async with consumer(self.home, topic, auto_offset_reset="earliest") as reader:
                    await reader.start()
                    failures = 0
                    async for record in reader:
                        await self._mute(record)
            except ClientError as error:
                failures += 1
                log.warning("mutes are not heard: %s", error)
                await asyncio.sleep(backoff(failures))

    async def _mute(self, record: Any) -> None:
        try:
            self.desk.muted((record.key or b"").decode(errors="replace"), record.value)
        except Refused as error:
            if 0 in self._loaded:  # all workers hear all mutes: one of them writes the letter
                await self.refuse("mute", record, error)
            else:
                self.desk.refused["mute", error.reason] += 1

    async def apply_plans(self) -> None:
        """Have the groups of ours whose policy says ``apply: auto`` take their open plans, one after the other."""
        if not self.ready:
            return
        for plan in self.auto.due(list(self.desk.published.values())):
            await in_thread(self.auto.apply, plan, limit=MOVED_AT_ONCE_S)

    async def tell_state(self) -> None:
        """The state message of every cluster, by the worker that owns partition 0."""
        if 0 not in self.owned() or not self.ready:
            return
        for cluster in self.settings.clusters:
            state = self.rights.state(cluster, self.desk.state(cluster))
            self.publish(0, cluster, state.model_dump_json(by_alias=True).encode())
        await self.outbox.flush(0)


def arrived(message: Any) -> int | None:
    """When the broker got a message (ms), where its topic keeps the broker's time and not the sender's."""
    return int(message.timestamp * 1000) if message.timestamp_type == LOG_APPEND_TIME else None


class App(faust.App):
    """Faust's app, which makes sure of its topics before it starts, however long the cluster is away."""

    settings_: Settings
    home_: Cluster
    outbox: Outbox

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    async def _on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Commit what waits while the partitions are still ours."""
        await self.outbox.revoke()
        await super()._on_partitions_revoked(revoked)

    async def _on_partitions_assigned(self, assigned: set[Any], generation_id: int = 0) -> None:
        """Fence off the predecessors before their changelogs are read."""
        mine = {tp.partition for tp in assigned if tp.topic == self.settings_.topics.events}
        failures = 0
        while True:
            try:
                await self.outbox.take_over(mine)
                break
            except ClientError as error:
                failures += 1
                log.warning("partitions %s cannot be taken over yet: %r", sorted(mine), error)
                await asyncio.sleep(backoff(failures))
        await super()._on_partitions_assigned(assigned, generation_id)

    async def on_stop(self) -> None:
        """Commit what waits before the consumer commits offsets for the last time."""
        await self.outbox.close()
        await super().on_stop()

    async def on_first_start(self) -> None:
        """Create what is missing; wait for a cluster that cannot be reached, refuse with a sentence otherwise."""
        try:
            await rights.granted(self.settings_, self.home_, self.settings_.clusters)
        except KafkaError as error:
            log.error("%s", error)
            os._exit(2)  # Faust would show a traceback and try for ever
        for chatty in ("faust.tables.recovery", "faust.app.base", "faust.transport.drivers.aiokafka"):
            logging.getLogger(chatty).setLevel(logging.WARNING)  # they print a line per table and partition
        await super().on_first_start()

    def _crash(self, reason: BaseException) -> None:
        if rights.about_rights(reason):
            rights.begin_anew(reason)
        super()._crash(reason)


def _app(settings: Settings, home: Cluster) -> App:
    broker, credentials = faust_broker(home)
    host, tls = reached_at(settings.worker, home.bootstrap), security.server_tls(settings.worker.http)
    app = App(
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
        web_host=host,
        web_port=settings.worker.web_port,
        web_ssl_context=tls,
        canonical_url=f"https://{host}:{settings.worker.web_port}" if tls else None,
        web_application_options=pages.application_options(settings.worker.http),
        worker_redirect_stdouts=False,
        autodiscover=False,
    )
    app.settings_, app.home_ = settings, home
    producers = PartitionProducers(home, app.conf.id, SESSION_TIMEOUT)
    app.outbox = Outbox(producers, lambda event: event.ack(app.consumer))
    return app


def wire(worker: Worker) -> faust.App:
    """Attach agents, timers and tasks."""
    app, settings = worker.app, worker.settings

    @app.on_rebalance_complete.connect(weak=False)
    async def recovered(*_: Any, **__: Any) -> None:
        worker.recovered()

    @app.agent(worker.events, name="events")
    async def events(stream: Any) -> None:
        async for event in stream.noack().events():  # the outbox acknowledges, once the rows are committed
            await worker.on_event(event.message)  # raises nothing over what is in the message

    @app.agent(worker.ticks, name="ticks")
    async def ticks(stream: Any) -> None:
        async for event in stream.events():
            try:
                await worker.on_tick(event.message)
            except KagentError as error:
                log.warning("a tick could not be judged: %s", error)
            except Exception:
                log.exception("a tick could not be judged")

    @app.timer(interval=settings.worker.tick, name="tick")
    async def tick() -> None:
        await worker.send_ticks()

    @app.task
    async def flush() -> None:
        while not app.should_stop:
            await asyncio.sleep(settings.worker.flush)
            await worker.outbox.flush_all()

    @app.timer(interval=settings.worker.sample, name="sample")
    async def sample() -> None:
        await worker.sample()

    @app.timer(interval=rights.LOOK_EVERY_S, name="rights")
    async def look_at_rights() -> None:
        await worker.look_at_rights()

    @app.timer(interval=settings.worker.state_interval, name="state")
    async def state() -> None:
        await worker.tell_state()

    if worker.auto.enabled:

        @app.timer(interval=settings.worker.tick, name="apply")
        async def apply() -> None:
            await worker.apply_plans()

    @app.task
    async def mutes() -> None:
        await worker.hear_mutes()

    @app.page("/healthz")
    async def healthz(web: Any, request: Any) -> Any:
        well, said = worker.health()
        return web.json(said, status=200 if well else 503)

    @app.page("/readyz")
    async def readyz(web: Any, request: Any) -> Any:
        return web.json({"ready": worker.ready}, status=200 if worker.ready else 503)

    @app.page("/metrics")
    async def metrics(page: Any, request: Any) -> Any:
        seen = await server.view(worker.desk, worker.ready)
        said = await asyncio.to_thread(
            exposition, seen, server.limits(worker.desk)
        )  # long: heartbeats must go on
        return page.bytes(said, content_type="text/plain")

    @app.page(cluster_view.OWN)
    async def own(page: Any, request: Any) -> Any:
        return page.json((await worker.own_part(request.query.get("group"))).to_json())

    @app.page("/api/groups")
    async def groups(page: Any, request: Any) -> Any:
        return page.json((await worker.whole()).to_json())

    @app.page("/api/groups/{group}")
    async def group(page: Any, request: Any, group: str) -> Any:
        said = await worker.whole(group)
        return page.json(said.to_json(), status=200 if said.groups else 404 if said.complete else 503)

    @app.page("/api/recommendations")
    async def open_now(page: Any, request: Any) -> Any:
        try:
            standing = await current(worker.home, settings.topics.recommendations)
        except KafkaError as error:
            return page.json({"error": str(error)}, status=503)
        return page.json(server.open_json(standing))

    pages.wire(worker, app)
    return app


def create() -> faust.App:
    """The app for the settings in effect. Raises click's exception with a sentence, as Faust's command line shows it."""
    try:
        settings = load()
        watched, _ = settings.cluster(os.environ.get("KAGENT_CLUSTER"))
        return wire(Worker(settings, watched))
    except KagentError as error:
        raise click.ClickException(str(error)) from error


app = create()
