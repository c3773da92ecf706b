"""Topics that are read for ever, while they are widened, deleted and made anew on a real broker."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kagent.kafka import topic_reader
from kagent.kafka.topic_reader import Mark, ReadMark, UpToDate, read_forever
from kagent.settings import Cluster
from tests.fixtures.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


class Topic:
    """A topic of its own, which is written and changed by its name."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.name = bootstrap, f"t-{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    async def create(self) -> None:
        # A name that was just deleted is refused for a moment.
        await asyncio.to_thread(until, self._created, f"{self.name} is created")

    def _created(self) -> bool:
        return self.admin.create_topics([NewTopic(self.name, 1, 1)])[self.name].exception(30) is None

    async def widen(self, partitions: int) -> None:
        future = self.admin.create_partitions([NewPartitions(self.name, partitions)])[self.name]
        await asyncio.to_thread(future.result, 30)

    async def delete(self) -> None:
        await asyncio.to_thread(self.admin.delete_topics([self.name])[self.name].result, 30)

    def cut(self) -> None:
        """Delete all records."""
        place = TopicPartition(self.name, 0, -1)
        self.admin.delete_records([place])[place].result(PATIENCE_S)

    def send(self, value: str, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        producer.produce(self.name, value, partition=partition)
        assert producer.flush(30) == 0


async def read_until(records: AsyncGenerator[Any, None], ends: Callable[[Any], bool]) -> list[Any]:
    """Values and marks up to the first that ends it."""
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        async for record in records:
            found.append(record if isinstance(record, Mark) else record.value.decode())
            if ends(found[-1]):
                return found
    raise AssertionError(found)


def up_to_date(mark: Any) -> bool:
    return isinstance(mark, UpToDate)


async def test_several_topics_are_read_as_one_and_are_confirmed_to_be_read_to_their_ends(broker: str) -> None:
    first, second = Topic(broker), Topic(broker)
    for topic in (first, second):
        await topic.create()
        topic.send(f"before-{topic.name}")
    began = time.time()

    async with aclosing(
        read_forever(Cluster(bootstrap=broker), first.name, second.name, confirm=True)
    ) as records:
        found = await read_until(records, up_to_date)

        assert found[0] is ReadMark.BEGIN
        assert set(found[1:3]) == {f"before-{first.name}", f"before-{second.name}"}
        assert found[3] is ReadMark.CAUGHT_UP
        assert found[4].asked_s >= began

        second.send("later")
        assert (await read_until(records, up_to_date))[-2] == "later"


@pytest.mark.parametrize("resume", [True, False])
async def test_partitions_that_are_added_are_read_too(broker: str, resume: bool) -> None:
    topic = Topic(broker)
    await topic.create()
    topic.send("old")

    async with aclosing(
        read_forever(Cluster(bootstrap=broker), topic.name, resume=resume, confirm=True)
    ) as records:
        await read_until(records, up_to_date)
        await topic.widen(2)
        topic.send("new", partition=1)

        found = await read_until(records, lambda record: record == "new")
        found += await read_until(records, up_to_date)

    assert ("old" in found) is not resume


@asynccontextmanager
async def made_anew(broker: str, resume: bool) -> AsyncIterator[AsyncGenerator[Any, None]]:
    """The records of a topic that is deleted, made anew and written to after three of them were read."""
    topic = Topic(broker)
    await topic.create()
    for number in range(3):
        topic.send(f"old-{number}")
    async with aclosing(
        read_forever(Cluster(bootstrap=broker), topic.name, resume=resume, patient=True, confirm=True)
    ) as records:
        await read_until(records, up_to_date)
        await topic.delete()
        await topic.create()
        topic.send("new")
        yield records


@pytest.mark.parametrize("resume", [True, False])
async def test_a_topic_that_was_made_anew_is_read_from_its_start(broker: str, resume: bool) -> None:
    async with made_anew(broker, resume) as records:
        assert (await read_until(records, lambda record: record == "new"))[-1] == "new"


@pytest.mark.parametrize("resume", [True, False])
async def test_a_topic_that_was_made_anew_and_filled_up_before_it_was_noticed_is_read_from_its_start(
    broker: str, resume: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_reader, "CONFIRM_EVERY_S", 1e9)  # only the records tell
    async with made_anew(broker, resume) as records:
        found = await read_until(records, lambda record: record == "new")

    assert found[0] is ReadMark.BEGIN


async def test_records_that_were_deleted_are_noticed_by_who_keeps_what_the_topic_holds(broker: str) -> None:
    topic = Topic(broker)
    await topic.create()
    topic.send("old")

    async with aclosing(
        read_forever(Cluster(bootstrap=broker), topic.name, resume=False, confirm=True)
    ) as records:
        await read_until(records, up_to_date)
        await asyncio.to_thread(topic.cut)

        found = await read_until(records, lambda record: record is ReadMark.CAUGHT_UP)

    assert [record for record in found if isinstance(record, str)] == []
    assert found[-2] is ReadMark.BEGIN


async def test_a_patient_reader_waits_for_a_topic_that_is_not_there_yet(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(broker)
    async with aclosing(read_forever(Cluster(bootstrap=broker), topic.name, patient=True)) as records:
        reading = asyncio.create_task(read_until(records, lambda record: record == "first"))
        await asyncio.to_thread(until, lambda: "does not exist" in caplog.text, "the reader misses its topic")
        await topic.create()
        topic.send("first")

        assert (await reading)[-1] == "first"
