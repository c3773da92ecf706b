"""Real consumers of both libraries share topics by our strategies: through a join, a leave and a rolling change."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

from kagent.errors import InputError
from kagent.strategies.plugins import (
    LagCache,
    aiokafka_assignor,
    group_lag,
    kafka_python_assignor,
    keep_filled,
)
from tests.fixtures.consumers import started
from tests.fixtures.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka

Held = list[set[int]]


@pytest.fixture
def topic(broker: str) -> str:
    name = f"strategies-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})  # a client that is collected takes its futures with it
    admin.create_topics([NewTopic(name, 6, 1)])[name].result(PATIENCE_S)
    return name


def whole(held: Held) -> bool:
    """Every partition at exactly one member, counts even."""
    sizes = [len(partitions) for partitions in held]
    return sum(sizes) == 6 and set().union(*held) == set(range(6)) and max(sizes) - min(sizes) <= 1


async def settled(consumers: list[AIOKafkaConsumer]) -> Held:
    """What the consumers hold once together they hold it all."""
    end = time.monotonic() + PATIENCE_S
    while True:
        held = [{tp.partition for tp in consumer.assignment()} for consumer in consumers]
        if whole(held):
            return held
        assert time.monotonic() < end, held
        await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def asynchronous(broker: str, topic: str, group: str, assignor: Any) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker,
        group_id=group,
        partition_assignment_strategy=[assignor],
        heartbeat_interval_ms=200,
        session_timeout_ms=30_000,
        auto_offset_reset="earliest",
    )
    async with started(consumer):
        yield consumer


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "fair"])
async def test_aiokafka_consumers_share_a_topic(broker: str, topic: str, strategy: str) -> None:
    group = f"{topic}-{strategy}"
    async with asynchronous(broker, topic, group, aiokafka_assignor(strategy)) as first:
        assert await settled([first]) == [set(range(6))]
        async with asynchronous(broker, topic, group, aiokafka_assignor(strategy)) as second:
            assert len((await settled([first, second]))[0]) == 3
        assert await settled([first]) == [set(range(6))]


async def test_aiokafka_members_keep_what_they_have_through_a_rolling_restart(
    broker: str, topic: str
) -> None:
    async with contextlib.AsyncExitStack() as stays:
        a = await stays.enter_async_context(asynchronous(broker, topic, topic, aiokafka_assignor("sticky")))
        await settled([a])
        async with asynchronous(broker, topic, topic, aiokafka_assignor("sticky")) as b:
            before = await settled([a, b])
            async with asynchronous(broker, topic, topic, aiokafka_assignor("sticky")) as c:
                grown = await settled([a, b, c])
                assert all(now <= had for now, had in zip(grown, before, strict=False))
            shrunk = await settled([a, b])
            assert all(had <= now for now, had in zip(shrunk, grown, strict=False))
        async with asynchronous(broker, topic, topic, aiokafka_assignor("sticky")) as d:
            renewed = await settled([a, d])
            assert shrunk[0] <= renewed[0] or len(renewed[0]) == 3


async def test_aiokafka_members_get_even_lag_and_keep_what_they_have_when_it_is_unknown(
    broker: str, topic: str
) -> None:
    cache = LagCache(max_age=3600)
    cache.put({topic: [900, 10, 10, 10, 10, 10]}, time.time())

    def assignor() -> Any:
        return aiokafka_assignor("lag-global", lags=cache, balance=1.0)

    async with (
        asynchronous(broker, topic, topic, assignor()) as first,
        asynchronous(broker, topic, topic, assignor()) as second,
    ):
        end = time.monotonic() + PATIENCE_S
        while sorted(len(consumer.assignment()) for consumer in (first, second)) != [1, 5]:
            assert time.monotonic() < end
            await asyncio.sleep(0.1)
        alone = first if len(first.assignment()) == 1 else second
        assert {tp.partition for tp in alone.assignment()} == {0}
        cache.put({}, time.time())
        async with asynchronous(broker, topic, topic, assignor()) as third:
            held = await settled([first, second, third])
            assert 0 in held[[first, second].index(alone)]


def test_aiokafka_refuses_what_needs_the_cooperative_protocol() -> None:
    with pytest.raises(InputError, match="cooperative"):
        aiokafka_assignor("cooperative-sticky")


class Polling:
    """A kafka-python consumer that polls in a thread until it is closed."""

    def __init__(self, broker: str, topic: str, group: str, *assignors: Any) -> None:
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=broker,
            group_id=group,
            partition_assignment_strategy=list(assignors),
            heartbeat_interval_ms=200,
            session_timeout_ms=30_000,
            auto_offset_reset="earliest",
        )
        self.held: set[int] = set()
        self.history: list[set[int]] = []
        self.failure: Exception | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        try:
            while not self._done.is_set():
                # With 50 ms, kafka-python 3.0.12 drops an assignment that comes just after a poll has timed out, and waits
                # for ever: 8 of 60 runs on a busy machine, none of 36 with 500.
                self.consumer.poll(timeout_ms=500)
                self.held = {tp.partition for tp in self.consumer.assignment()}
                if not self.history or self.history[-1] != self.held:
                    self.history.append(self.held)
        except Exception as error:
            self.failure = error
        finally:
            self.consumer.close()

    def close(self) -> None:
        self._done.set()
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()


@pytest.fixture
def polling(broker: str, topic: str) -> Iterator[Callable[..., Polling]]:
    started: list[Polling] = []

    def start(*assignors: Any) -> Polling:
        started.append(Polling(broker, topic, topic, *assignors))
        return started[-1]

    yield start
    for one in started:
        one.close()


def agreed(*members: Polling) -> Held:
    end = time.monotonic() + PATIENCE_S
    while not whole(held := [member.held for member in members]):
        assert not any(member.failure for member in members), [member.failure for member in members]
        assert time.monotonic() < end, held
        time.sleep(0.05)
    return held


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
def test_kafka_python_consumers_join_and_leave(polling: Callable[..., Polling], strategy: str) -> None:
    first = polling(kafka_python_assignor(strategy))
    agreed(first)
    second = polling(kafka_python_assignor(strategy))
    both = agreed(first, second)
    assert [len(held) for held in both] == [3, 3]
    second.close()
    agreed(first)


def test_kafka_python_members_never_stop_what_they_keep_in_a_cooperative_join(
    polling: Callable[..., Polling],
) -> None:
    first = polling(kafka_python_assignor("cooperative-sticky"))
    agreed(first)
    second = polling(kafka_python_assignor("cooperative-sticky"))
    kept = agreed(first, second)[0]
    since = first.history.index(set(range(6)))
    assert all(kept <= held for held in first.history[since:])


def test_a_kafka_python_group_changes_its_strategy_member_by_member(polling: Callable[..., Polling]) -> None:
    old = [polling(kafka_python_assignor("roundrobin")) for _ in range(2)]
    agreed(*old)
    new = []
    for member in old:
        member.close()
        new.append(polling(kafka_python_assignor("sticky"), kafka_python_assignor("roundrobin")))
        agreed(*[m for m in old if m not in old[: len(new)]], *new)
    assert [len(held) for held in agreed(*new)] == [3, 3]


def test_the_groups_own_lag_fills_the_cache(broker: str, topic: str) -> None:
    cache = LagCache()
    with keep_filled(cache, group_lag(broker, f"{topic}-nobody", [topic, "no-such-topic"]), every=0.1):
        end = time.monotonic() + PATIENCE_S
        while not (lags := cache.fresh(time.time())):
            assert time.monotonic() < end
            time.sleep(0.05)
    assert lags == {topic: [0] * 6}
