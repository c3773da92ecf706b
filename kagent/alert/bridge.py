"""``kagent alert``'s heart: the recommendations topic in, one queue and one task per destination out.

A destination's *desk* is pure: it turns messages into opens, changes and closes by what the destination was told before.
Messages are taken in the order of the log; of several changes that wait, the last is sent; an open or a close never waits
behind another destination.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError as ClientError
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from kagent.alert.delivery_log import Event, Positions, Told, of_destination
from kagent.alert.destinations import Alertmanager, Destination, Wants
from kagent.alert.senders import Failed, Refused, Sender, sender
from kagent.client.client import Message, parsed, standing
from kagent.client.incident_text import is_old
from kagent.contract.recommendation import Recommendation, Resolution, State, Status, is_newer
from kagent.errors import KafkaError, SettingsError
from kagent.kafka.consumer import consumer
from kagent.process_tree import backoff
from kagent.settings import Cluster, Settings
from kagent.text import shown

log = logging.getLogger("kagent.alert")


@dataclass(slots=True)
class Desk:
    """What one destination was told, and what is to be told to it. Pure."""

    wants: Wants
    told: dict[str, Told] = field(default_factory=dict)

    def events(self, key: str, rec: Recommendation | None) -> list[tuple[Event, Recommendation]]:
        """What this message makes: nothing if it is old news. None is a tombstone."""
        before = self.told.get(key)
        standing = before.rec if before and not before.closed else None
        if rec is None:
            return [("close", _ended(standing))] if standing else []
        if before and (rec.as_of < before.rec.as_of or (before.closed and rec.id == before.rec.id)):
            return []
        if before and not is_newer(rec, before.rec):
            return []
        found: list[tuple[Event, Recommendation]] = []
        if standing and standing.id != rec.id:
            found.append(("close", _ended(standing)))
            standing = None
        if standing:
            if rec.status is Status.RESOLVED:
                found.append(("close", rec))
            elif _gist(rec) != _gist(standing):
                found.append(("change", rec))
        elif rec.status is not Status.RESOLVED and self.wants.takes(rec):
            found.append(("open", rec))
        return found


def _ended(rec: Recommendation) -> Recommendation:
    return rec.model_copy(update={"status": Status.RESOLVED, "resolution": Resolution.EXPIRED})


def _gist(rec: Recommendation) -> tuple[object, ...]:
    """What makes a change worth telling; figures alone do not."""
    return rec.verdict, rec.severity, rec.stale, rec.actions[0].type if rec.actions else None


class Line:
    """One destination at work: its queue, its sender, its retries."""

    def __init__(
        self,
        name: str,
        about: Destination,
        positions: Positions,
        told: dict[str, Told],
        clock: Callable[[], float] = time.time,
        public_url: str | None = None,
    ) -> None:
        self.name, self.about, self.positions, self.clock = name, about, positions, clock
        self.desk = Desk(about.only, told)
        self.sender: Sender = sender(about, public_url)
        self.waiting: dict[str, deque[Recommendation | None]] = {}
        self.news = asyncio.Event()
        self.counts: Counter[str] = Counter()
        self.since = 0
        self.silent: Callable[[str], bool] = lambda cluster: False

    def put(self, key: str, rec: Recommendation | None) -> None:
        """A message of the topic; a change that still waits gives way to the next."""
        queue = self.waiting.setdefault(key, deque())
        last = queue[-1] if queue else None
        changes = [m is not None and m.status not in (Status.OPEN, Status.RESOLVED) for m in (last, rec)]
        if all(changes) and last and rec and last.id == rec.id:
            queue.pop()
        queue.append(rec)
        self.news.set()

    async def run(self) -> None:
        """Deliver for ever."""
        resend = self.about.resend if isinstance(self.about, Alertmanager) else None
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

    async def _drain(self) -> None:
        self.news.clear()
        while self.waiting:
            key, queue = next(iter(self.waiting.items()))
            while queue:
                rec = queue[0]
                for event, message in self.desk.events(key, rec):
                    await self._deliver(event, key, message)
                if rec is None and key in self.desk.told:
                    del self.desk.told[key]
                    await self.positions.write(self.name, key, None)
                if queue and queue[0] is rec:
                    queue.popleft()
            self.waiting.pop(key, None)

    async def _deliver(self, event: Event, key: str, rec: Recommendation) -> None:
        told = Told.of(rec, self.desk.told.get(key))
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type((Failed, SettingsError, TimeoutError)),
                wait=wait_random_exponential(0.5, max=self.about.retry_most),
                before_sleep=lambda state: self._failed(state.outcome.exception() if state.outcome else None),
                reraise=True,
            ):
                with attempt:
                    await self.sender.send(event, told)
            self.counts[event] += 1
            log.info("%s: %s of %s was delivered", self.name, event, shown(key))
        except Refused as error:
            self.counts["refused"] += 1
            log.error("%s refuses the %s of %s (%s): it is passed over", self.name, event, shown(key), error)
        self.desk.told[key] = told
        await self.positions.write(self.name, key, told)

    def _failed(self, error: BaseException | None) -> None:
        self.counts["failed"] += 1
        log.warning("%s cannot be reached (%s); trying again", self.name, error)

    async def _repeat(self) -> None:
        """Keep alive what is open: Alertmanager forgets what nobody repeats."""
        for told in [t for t in self.desk.told.values() if not t.closed]:
            rec = told.rec
            if self.silent(rec.cluster):
                rec = rec.model_copy(update={"stale": True})
            try:
                await self.sender.send("change", told.model_copy(update={"rec": rec}))
            except (Failed, Refused) as error:
                self._failed(error)
                return


class Bridge:
    """The whole process."""

    def __init__(self, settings: Settings, home: Cluster, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.home, self.clock = settings, home, clock
        self.topic = settings.topics.recommendations
        self.positions = Positions(home, settings.topics)
        self.lines: list[Line] = []
        self.states: dict[str, State] = {}
        if not settings.alert.destinations:
            raise SettingsError("No destination is set: name at least one under alert.destinations.")

    async def run(self) -> None:
        """Until cancelled. Raises KafkaError if the topic cannot be read at the start."""
        await asyncio.to_thread(self.positions.ensure)
        try:
            records = await self.positions.load()
            await self.positions.start()
        except ClientError as error:
            raise KafkaError(f"{self.home.bootstrap} cannot be reached: {error}.") from error
        try:
            async with asyncio.TaskGroup() as tasks:
                for name, about in self.settings.alert.destinations.items():
                    since, told = of_destination(records, name)
                    page = self.settings.worker.http.public_url
                    line = Line(name, about, self.positions, told, self.clock, page)
                    line.silent = self._silent
                    self.lines.append(line)
                    line.since = since if since is not None else int(self.clock() * 1000)
                    if since is None:
                        await self.positions.started(name, line.since)
                    tasks.create_task(line.run())
                await self._read()
        finally:
            await self.positions.stop()

    def _silent(self, cluster: str) -> bool:
        state = self.states.get(cluster)
        return state is None or state.status == "blind" or is_old(state, int(self.clock() * 1000))

    async def _read(self) -> None:
        """The topic, for ever: a broker that is away is waited for, and what came meanwhile is caught up with."""
        failures, begun = 0, False
        while True:
            try:
                async with consumer(self.home, auto_offset_reset="earliest") as reader:
                    await reader.start()
                    backlog: dict[str, list[Recommendation | None]] = {}
                    async for record in standing(reader, self.topic):
                        self._backlog(backlog, record.key, parsed(record.key, record.value), record.value)
                    self._catch_up(backlog)
                    failures, begun = 0, True
                    async for record in reader:
                        message = parsed(record.key, record.value)
                        if message is not None or record.value is None:
                            self._take(_key(record.key), message)
            except (ClientError, KafkaError) as error:
                if isinstance(error, KafkaError) and not begun:
                    raise
                failures += 1
                log.warning("%s cannot be read (%s); trying again", self.topic, error)
            await asyncio.sleep(backoff(failures))

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
        """What came while we were away, in order; of what was before a destination's first start, only how it stands."""
        for line in self.lines:
            for key, messages in backlog.items():
                known = key in line.desk.told
                for at, message in enumerate(messages, 1):
                    if known or at == len(messages) or (message and message.as_of >= line.since):
                        line.put(key, message)
            for key in set(line.desk.told) - set(backlog):
                line.put(key, None)

    def _take(self, key: str, message: Message | None) -> None:
        if isinstance(message, State):
            self.states[message.cluster] = message
            return
        for line in self.lines:
            line.put(key, message)


def _key(key: bytes | None) -> str:
    return (key or b"").decode(errors="replace")
