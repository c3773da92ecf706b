"""The last message that each destination received, on a compacted topic: a restart neither loses nor repeats an open or a close.

Key ``<destination>/<cluster>/<group>``; the value is the last message that arrived there. A record is written after the
destination took the message; a crash between the two repeats one message, under the same idempotency key. The key
``<destination>/`` records when the destination was started first: incidents that had ended before are not sent to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Literal

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as ClientError
from pydantic import BaseModel, ConfigDict, ValidationError
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from kagent.contract.admission import INT64
from kagent.contract.recommendation import Recommendation, Status
from kagent.kafka.admin import Admin
from kagent.kafka.clients import aiokafka
from kagent.kafka.consumer import consumer, start
from kagent.kafka.topic_reader import standing, unreadable
from kagent.kafka.topics import delivery_log, make_sure
from kagent.retry import warned
from kagent.settings import Cluster, Topics

log = logging.getLogger("kagent.alert")
Event = Literal["open", "change", "close"]
BULKY: dict[str, Any] = {
    "members": [],
    "moves": [],
    "assignment": None,
    "frontier": [],
    "alternatives": [],
    "evidence": {},
}
"""Not needed to repeat or close an alert."""


class Delivered(BaseModel):
    """``rec``: the last message sent, without its bulk; ``first_severity``: what it was opened with; ``closed``: its end too."""

    # ignore: a newer bridge's records are read after a downgrade.
    model_config = ConfigDict(frozen=True, extra="ignore")

    rec: Recommendation
    first_severity: str
    closed: bool = False

    @classmethod
    def of(cls, rec: Recommendation, before: Delivered | None) -> Delivered:
        """What is remembered once ``rec`` was delivered."""
        same = before is not None and before.rec.id == rec.id and not before.closed
        # Alertmanager knows an alert by its labels, of which the severity is one: it must not change while open.
        severity = before.first_severity if same and before else rec.severity.value
        # The log keeps one record for each destination and group: their size is the time of a start.
        small = rec.model_copy(update={**BULKY, "actions": rec.actions[:1]})
        return cls(rec=small, first_severity=severity, closed=rec.status is Status.RESOLVED)


class DeliveryLog:
    """The topic: read at the start, written after each delivery."""

    def __init__(self, home: Cluster, topics: Topics) -> None:
        self.home, self.topics = home, topics
        self.name = topics.alerts
        self._producer: AIOKafkaProducer | None = None
        self._writing = asyncio.Lock()
        self._begins: tuple[str, int] | None = None
        """The topic's id and where its log starts. Compaction leaves that where it is; only who deletes records moves it."""

    def ensure(self) -> None:
        """Create the topic if it is missing. Raises KafkaError."""
        self._make()
        self._begins = self._ask()

    def lost(self) -> bool:
        """Whether the topic has lost records since the last time, or is another one; made again where it is missing. Blocking.

        Raises KafkaError.
        """
        before = self._begins
        self._begins = self._ask()
        if self._begins is None:
            self._make()
            self._begins = self._ask()
        return self._begins != before

    def _make(self) -> None:
        with Admin(self.home, deadline=10) as admin:
            make_sure(admin, self.topics, log, [delivery_log(self.topics)])

    def _ask(self) -> tuple[str, int] | None:
        with Admin(self.home, deadline=10) as admin:
            found = admin.topics([self.name]).get(self.name)
            if found is None:
                return None
            return (found.id, admin.log_start([(self.name, 0)]).found.get((self.name, 0), 0))

    async def load(self) -> dict[str, bytes]:
        """Every record that stands, by key. Raises KafkaError."""
        found: dict[str, bytes] = {}
        # No group: the state is the whole topic, at every start.
        async with consumer(self.home) as reader:
            try:
                await start(reader, self.home)
                async for record in standing(reader, self.name):
                    key = (record.key or b"").decode(errors="replace")
                    if record.value is None:
                        found.pop(key, None)
                    else:
                        found[key] = record.value
            except ClientError as error:
                raise unreadable(self.name, self.home, error) from error
        return found

    async def start(self) -> None:
        """Ready to write. Raises KafkaError."""
        try:
            await self._renew()
        except ClientError as error:
            raise unreadable(self.name, self.home, error) from error

    async def _renew(self) -> AIOKafkaProducer:
        """A producer in the place of the one before. Raises ClientError."""
        await self.stop()
        # Idempotent: a retry of the client must not put an older delivery behind a newer one (KIP-98).
        producer = AIOKafkaProducer(**aiokafka(self.home, acks="all", enable_idempotence=True))
        try:
            await producer.start()
        # Also where it is cancelled: only this function knows of it yet.
        except BaseException:
            await producer.stop()
            raise
        self._producer = producer
        return producer

    async def stop(self) -> None:
        """Write what is under way, and leave."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await producer.stop()

    async def write(self, destination: str, key: str, delivered: Delivered | None) -> None:
        """Returns when the broker has it."""
        value = delivered.model_dump_json(by_alias=True).encode() if delivered else None
        await self._send(f"{destination}/{key}", value)

    async def started(self, destination: str, now: int) -> None:
        """This destination was started for the first time, at ``now`` in ms."""
        await self._send(f"{destination}/", str(now).encode())

    async def _send(self, key: str, value: bytes | None) -> None:
        # One after the other, in the order in which they were asked for: a retry must not put an older delivery behind a newer one.
        async with self._writing:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(ClientError),
                wait=wait_random_exponential(0.5, max=30),
                before_sleep=warned(log, f"what was delivered cannot be written to {self.name} yet"),
            ):
                with attempt:
                    producer = self._producer or await self._renew()
                    try:
                        await producer.send_and_wait(self.name, key=key.encode(), value=value)
                    except ClientError:
                        # To a topic that was made anew its sequence has a gap: what it sends is refused for ever.
                        await self.stop()
                        raise


def of_destination(records: dict[str, bytes], destination: str) -> tuple[int | None, dict[str, Delivered]]:
    """When it was first started (ms), and what it received, by key of the recommendation; records that cannot be read are left out."""
    prefix = f"{destination}/"
    first = records.get(prefix, b"")
    # At most nineteen digits: int() refuses 4,301, and one bad record must not keep the bridge from starting.
    since = int(first) if first.isdigit() and len(first) < 20 and int(first) <= INT64 else None
    return since, dict(_delivered(records, prefix))


def _delivered(records: dict[str, bytes], prefix: str) -> Iterable[tuple[str, Delivered]]:
    for key, value in records.items():
        if key.startswith(prefix) and key != prefix:
            try:
                yield key.removeprefix(prefix), Delivered.model_validate_json(value)
            # Left out, at the worst it is sent once more; a bridge that does not start sends nothing.
            except ValidationError:
                continue
