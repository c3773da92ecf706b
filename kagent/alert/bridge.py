"""``kagent alert``: reads the recommendations topic; each destination has its own queue and task.

``DestinationState`` is pure: it turns messages into opens, changes and closes by comparing them with what the destination
received before. Messages are processed in log order. Of several waiting changes the last is sent. No destination waits for another.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from tenacity import AsyncRetrying, retry_if_exception, wait_random_exponential

from kagent.alert.delivery_log import Delivered, DeliveryLog, Event, of_destination
from kagent.alert.destinations import sender
from kagent.alert.sending import AlertSender, DeliveryFailed, DeliveryRefused
from kagent.client.client import Message, parsed
from kagent.client.incident_text import is_old
from kagent.contract.recommendation import Recommendation, Resolution, State, Status, is_newer
from kagent.errors import KafkaError, SettingsError
from kagent.group_key import split_key
from kagent.kafka.acls import rules
from kagent.kafka.rights_watch import RightsWatch
from kagent.kafka.topic_reader import ReadMark, read_forever
from kagent.retry import warned, while_mendable
from kagent.settings import Cluster, Settings
from kagent.settings.alert_destinations import AnyDestination, Wants
from kagent.text import shown

log = logging.getLogger("kagent.alert")
LOOK_EVERY_S = 30.0
"""Two small requests each time, whether the delivery log is whole."""
GONE_AFTER_S = 120.0
"""A worker publishes within a minute again what the topic of recommendations has lost."""
FORESEEN = (DeliveryFailed, DeliveryRefused, SettingsError, TimeoutError)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, Exception) and not isinstance(error, DeliveryRefused)


@dataclass(slots=True)
class DestinationState:
    """What one destination has received, and which events a message makes for it. Pure."""

    wants: Wants
    delivered: dict[str, Delivered] = field(default_factory=dict)

    def events(self, key: str, rec: Recommendation | None) -> list[tuple[Event, Recommendation]]:
        """The events that this message makes; none if the destination has received a later one. ``rec`` None is a tombstone."""
        before = self.delivered.get(key)
        standing = before.rec if before and not before.closed else None
        if rec is None:
            # The incident's close was compacted away before it was read: the tombstone stands for it.
            return [("close", _ended(standing))] if standing else []
        # Delivery is at least once: after an interruption the topic is read from its start again.
        if before and (rec.as_of < before.rec.as_of or (before.closed and rec.id == before.rec.id)):
            return []
        # By the revision under the key: an uncommitted reader can get what a fenced worker wrote.
        if before and not is_newer(rec, before.rec):
            return []
        found: list[tuple[Event, Recommendation]] = []
        # The close of the incident before was compacted away: its receiver must not keep it open for ever.
        if standing and standing.id != rec.id:
            found.append(("close", _ended(standing)))
            standing = None
        if standing:
            if rec.status is Status.RESOLVED:
                found.append(("close", rec))
            elif _gist(rec) != _gist(standing):
                found.append(("change", rec))
        # Only for opening: what was opened is changed and closed, even if it is no longer wanted.
        elif rec.status is not Status.RESOLVED and self.wants.takes(rec):
            found.append(("open", rec))
        return found


def _ended(rec: Recommendation) -> Recommendation:
    return rec.model_copy(update={"status": Status.RESOLVED, "resolution": Resolution.EXPIRED})


def _gist(rec: Recommendation) -> tuple[object, ...]:
    """A change is sent when one of these differs, not for new figures alone."""
    return rec.verdict, rec.severity, rec.stale, rec.actions[0].type if rec.actions else None


class Delivery:
    """The queue, the sender and the retries of one destination."""

    def __init__(
        self,
        name: str,
        about: AnyDestination,
        delivery_log: DeliveryLog,
        delivered: dict[str, Delivered],
        clock: Callable[[], float] = time.time,
        public_url: str | None = None,
    ) -> None:
        self.name, self.about, self.delivery_log, self.clock = name, about, delivery_log, clock
        self.state = DestinationState(about.only, delivered)
        self.sender: AlertSender = sender(about, public_url)
        # By key: the messages of one incident stay in order, and one group's bursts push no other's out.
        self.waiting: dict[str, deque[Recommendation | None]] = {}
        self.news = asyncio.Event()
        self.counts: Counter[str] = Counter()
        self.since = 0
        self.silent: Callable[[str], bool] = lambda cluster: False

    def put(self, key: str, rec: Recommendation | None) -> None:
        """Queue a message of the topic; it replaces a change of the same incident that still waits."""
        queue = self.waiting.setdefault(key, deque())
        last = queue[-1] if queue else None
        changes = [m is not None and m.status not in (Status.OPEN, Status.RESOLVED) for m in (last, rec)]
        # Opens and closes are never replaced: receivers count them.
        if all(changes) and last and rec and last.id == rec.id:
            queue.pop()
        queue.append(rec)
        self.news.set()

    async def run(self) -> None:
        """Deliver for ever."""
        resend = self.about.repeats_after_s
        # Due at once: after a restart, alerts may be near the endsAt that the process before gave them.
        due = self.clock()
        while True:
            await self._drain()
            if resend is not None and self.clock() >= due:
                await self._repeat()
                due = self.clock() + resend
            pause = None if resend is None else max(0.05, due - self.clock())
            try:
                await asyncio.wait_for(self.news.wait(), pause)
            except TimeoutError:
                continue

    async def keep(self) -> None:
        """Write again all that the delivery log must hold."""
        await self.delivery_log.started(self.name, self.since)
        for key in list(self.state.delivered):
            if (delivered := self.state.delivered.get(key)) is not None:
                await self.delivery_log.write(self.name, key, delivered)

    async def _drain(self) -> None:
        # Before the queues are read: what comes while they are drained sets it again.
        self.news.clear()
        while self.waiting:
            key, queue = next(iter(self.waiting.items()))
            while queue:
                # It stays at the head until it is delivered, so that a change that comes meanwhile can replace it.
                rec = queue[0]
                for event, message in self.state.events(key, rec):
                    await self._deliver(event, key, message)
                # The key is gone from the topic: a record of it would be a stale close at every start.
                if rec is None and key in self.state.delivered:
                    del self.state.delivered[key]
                    await self.delivery_log.write(self.name, key, None)
                # put() may have replaced the head by a newer change meanwhile: that one is next.
                if queue and queue[0] is rec:
                    queue.popleft()
            self.waiting.pop(key, None)

    async def _deliver(self, event: Event, key: str, rec: Recommendation) -> None:
        delivered = Delivered.of(rec, self.state.delivered.get(key))
        try:
            async for attempt in AsyncRetrying(
                # Whatever a sender raises holds up its own destination, and no other.
                retry=retry_if_exception(_may_pass),
                # Random, so that several bridges do not reach a receiver that comes back at the same moment.
                wait=wait_random_exponential(0.5, max=self.about.retry_most),
                before_sleep=lambda state: self._failed(state.outcome.exception() if state.outcome else None),
                reraise=True,
            ):
                with attempt:
                    await self.sender.send(event, delivered)
            self.counts[event] += 1
            log.info("%s: %s of %s was delivered", self.name, event, shown(key))
        except DeliveryRefused as error:
            self.counts["refused"] += 1
            # Counted as delivered: to repeat what is refused for good would hold up all that follows.
            log.error("%s refuses the %s of %s (%s): it is skipped", self.name, event, shown(key), error)
        self.state.delivered[key] = delivered
        await self.delivery_log.write(self.name, key, delivered)

    def _failed(self, error: BaseException | None) -> None:
        self.counts["failed"] += 1
        # The text of an unforeseen error may hold a secret: its kind alone is logged.
        why = error if isinstance(error, FORESEEN) else type(error).__name__
        log.warning("%s cannot be reached (%s); trying again", self.name, why)

    async def _repeat(self) -> None:
        """Send open alerts again: Alertmanager resolves an alert that is not repeated before ``endsAt``."""
        for delivered in [t for t in self.state.delivered.values() if not t.closed]:
            rec = delivered.rec
            if self.silent(rec.cluster):
                # No heartbeat of kagent: the alert stays, and says that it is no longer confirmed.
                rec = rec.model_copy(update={"stale": True})
            try:
                await self.sender.send("change", delivered.model_copy(update={"rec": rec}))
            except Exception as error:  # the next repetition comes by itself
                self._failed(error)
                return


class Bridge:
    """The whole process."""

    def __init__(self, settings: Settings, home: Cluster, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.home, self.clock = settings, home, clock
        self.topic = settings.topics.recommendations
        self.delivery_log = DeliveryLog(home, settings.topics)
        self.deliveries: list[Delivery] = []
        self.states: dict[str, State] = {}
        self._gone: dict[str, float] = {}
        """What is open at a destination and was not on the topic when it was read from its start: since when, in seconds."""
        if not settings.alert.destinations:
            raise SettingsError("No destination is set: name at least one under alert.destinations.")

    async def run(self) -> None:
        """Until cancelled. Raises KafkaError for what no waiting mends; a cluster that is away is waited for."""
        records = await self._begun()
        try:
            with RightsWatch([(self.home, rules(self.settings.topics)["alert"])], log):
                await self._deliver_all(records)
        finally:
            await self.delivery_log.stop()

    async def _begun(self) -> dict[str, bytes]:
        """What the delivery log holds, as soon as it can be read and written."""
        async for attempt in while_mendable(AsyncRetrying, warned(log, "not started yet")):
            with attempt:
                await asyncio.to_thread(self.delivery_log.ensure)
                found = await self.delivery_log.load()
                await self.delivery_log.start()
        return found

    async def _deliver_all(self, records: dict[str, bytes]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, about in self.settings.alert.destinations.items():
                since, delivered = of_destination(records, name)
                page = self.settings.worker.http.public_url
                delivery = Delivery(name, about, self.delivery_log, delivered, self.clock, page)
                delivery.silent = self._silent
                self.deliveries.append(delivery)
                delivery.since = since if since is not None else int(self.clock() * 1000)
                # Remembered, so that a destination that is added later gets no old incidents, and a restarted one misses none.
                if since is None:
                    await self.delivery_log.started(name, delivery.since)
                tasks.create_task(delivery.run())
            tasks.create_task(self._keep_log())
            await self._read()

    async def _keep_log(self) -> None:
        """Write the delivery log again where it was cut short, or deleted: at the next start it is all that is known."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                lost = await asyncio.to_thread(self.delivery_log.lost)
            except KafkaError as error:
                log.debug("cannot tell whether %s lost records: %s", self.delivery_log.name, error)
                continue
            if lost:
                log.warning(
                    "%s has lost records of what was delivered: they are written again",
                    self.delivery_log.name,
                )
                for delivery in self.deliveries:
                    await delivery.keep()

    def _silent(self, cluster: str) -> bool:
        state = self.states.get(cluster)
        # No state message is no good news: the worker may be gone.
        return state is None or state.status == "blind" or is_old(state, int(self.clock() * 1000))

    async def _read(self) -> None:
        """The topic, for ever. After an interruption it is read from its start again: what arrived meanwhile is compared with
        what each destination has received, and a key that is gone counts as a tombstone."""
        backlog: dict[str, list[Recommendation | None]] | None = None
        async with aclosing(read_forever(self.home, self.topic, resume=False, patient=True)) as records:
            async for record in records:
                if record is ReadMark.BEGIN:
                    backlog = {}
                    continue
                if record is ReadMark.CAUGHT_UP:
                    self._catch_up(backlog or {})
                    backlog = None
                    continue
                message = parsed(record.key, record.value)
                if message is None and record.value is not None:
                    continue
                if backlog is None:
                    self._take(_key(record.key), message)
                else:
                    self._backlog(backlog, record.key, message, record.value)

    def _backlog(
        self,
        backlog: dict[str, list[Recommendation | None]],
        key: bytes | None,
        message: Message | None,
        value: bytes | None,
    ) -> None:
        if isinstance(message, State):
            self.states[message.cluster] = message
        elif message is not None or value is None:
            backlog.setdefault(_key(key), []).append(message)

    def _catch_up(self, backlog: dict[str, list[Recommendation | None]]) -> None:
        """Queue what arrived while the bridge was away, in order; from before a destination's first start, only the latest message."""
        for delivery in self.deliveries:
            for key, messages in backlog.items():
                known = key in delivery.state.delivered
                for at, message in enumerate(messages, 1):
                    # New to this destination: one opening for what is open now, not its history.
                    if known or at == len(messages) or (message and message.as_of >= delivery.since):
                        delivery.put(key, message)
        # Its tombstone is compacted away too, after delete.retention.ms; or the topic has lost it, and the worker publishes it again.
        now = self.clock()
        missing = {key for d in self.deliveries for key in d.state.delivered} - set(backlog)
        self._gone = {key: self._gone.get(key, now) for key in missing}

    def _close_gone(self, state: State) -> None:
        """Close what a kagent that watches has not published for long enough: its incident has ended."""
        if state.status != "watching":
            return
        due = self.clock() - GONE_AFTER_S
        for key in [key for key, since in self._gone.items() if since <= due]:
            cluster = split_key(key)[0]
            # Of a cluster that was renamed no state message tells.
            if cluster == state.cluster or cluster not in self.states:
                del self._gone[key]
                for delivery in self.deliveries:
                    delivery.put(key, None)

    def _take(self, key: str, message: Message | None) -> None:
        if isinstance(message, State):
            self.states[message.cluster] = message
            self._close_gone(message)
            return
        self._gone.pop(key, None)
        for delivery in self.deliveries:
            delivery.put(key, message)


def _key(key: bytes | None) -> str:
    return (key or b"").decode(errors="replace")
