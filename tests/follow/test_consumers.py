"""Real consumers of both libraries follow what a real broker's topic says: skew falls, and no partition is lost or shared."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import ConsumerRebalanceListener as SyncListener
from kafka import KafkaConsumer

from kagent.contract.recommendation import Recommendation, to_bytes
from kagent.embedded.broker import Broker
from kagent.follow import Asking, Follower, Reason, aiokafka_follower, kafka_python_follower
from kagent.follow.follower import SWITCH
from kagent.group_key import group_key
from kagent.settings import Topics
from tests.fixtures.consumers import started
from tests.fixtures.waiting import PATIENCE_S, until_async

pytestmark = pytest.mark.kafka

PARTITIONS = 6
LAGS = (600, 500, 400, 30, 20, 10)
"""Records in each partition: contiguous halves are skewed 24 to 1."""
Advise = Callable[..., Recommendation]
Told = dict[str, set[int]]


class Estate:
    """Topics and a group of their own on the shared broker, and the hand that writes to them."""

    def __init__(self, broker: str, home: str | None = None) -> None:
        """``home``: the cluster with kagent's topics, if it is another."""
        run = uuid.uuid4().hex[:8]
        self.home = home or broker
        self.bootstrap, self.topic, self.group = broker, f"orders-{run}", f"billing-{run}"
        self.topics = Topics(prefix=f"k{run}-")
        self.producer = Producer({"bootstrap.servers": self.home, "log_level": 0})
        kept = {"cleanup.policy": "compact"}
        ours = [
            NewTopic(self.topics.recommendations, 2, 1, config=kept),
            NewTopic(self.topics.mutes, 1, 1, config=kept),
        ]
        for bootstrap, wanted in ((self.home, ours), (broker, [NewTopic(self.topic, PARTITIONS, 1)])):
            admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
            for future in admin.create_topics(wanted).values():
                future.result(PATIENCE_S)
        orders = Producer({"bootstrap.servers": broker, "log_level": 0})
        for partition, count in enumerate(LAGS):
            for _ in range(count):
                orders.produce(self.topic, b"x", partition=partition)
        assert orders.flush(60) == 0

    def write(self, topic: str, value: bytes | None, **more: Any) -> None:
        self.producer.produce(topic, value, **more)
        assert self.producer.flush(60) == 0

    def advise(self, value: bytes | None) -> None:
        self.write(self.topics.recommendations, value, key=group_key("main", self.group))

    def mute(self, value: bytes | None) -> None:
        self.write(self.topics.mutes, value, key=group_key("main", self.group))

    def options(self, **more: Any) -> dict[str, Any]:
        often = Asking(cooldown=3, per_day=8)
        return {"prefix": self.topics.prefix, "strategy": "range", "asking": often} | more


@pytest.fixture
def estate(broker: str) -> Estate:
    return Estate(broker)


class Watch:
    """Who was given what in which generation, and by whom; every generation of it must be whole."""

    def __init__(self) -> None:
        self.generations: dict[int, Told] = {}
        self.readers: dict[tuple[int, int], set[str]] = {}
        """(generation, partition) → who read records of it while it was in that generation."""
        self.read: set[tuple[int, int]] = set()
        """(partition, offset) of every record that was read."""

    def told(self, generation: int, name: str, partitions: set[int]) -> None:
        self.generations.setdefault(generation, {})[name] = partitions

    def got(self, name: str, batches: Mapping[Any, Any]) -> None:
        generation = max((g for g, told in list(self.generations.items()) if name in told), default=0)
        for tp, records in batches.items():
            self.readers.setdefault((generation, tp.partition), set()).add(name)
            self.read.update((tp.partition, record.offset) for record in records)

    def all_read(self) -> bool:
        """Whether every record that was written was read by somebody."""
        return len(self.read) == sum(LAGS)

    def check(self) -> None:
        """In no generation do two members have one partition, and where all told theirs, all partitions are there."""
        for generation, told in self.generations.items():
            given = [p for partitions in told.values() for p in partitions]
            assert len(given) == len(set(given)), (generation, told)
        assert all(len(names) == 1 for names in self.readers.values()), self.readers
        fullest = max(len(told) for told in self.generations.values())
        for generation, told in self.generations.items():
            if len(told) == fullest:
                assert set().union(*told.values()) == set(range(PARTITIONS)), (generation, told)

    @property
    def last(self) -> tuple[int, Told]:
        generation = max(list(self.generations))
        return generation, self.generations[generation]


def halved(watch: Watch) -> bool:
    """Whether two members have what the built-in assignor gives them."""
    return bool(watch.generations) and sorted(map(sorted, watch.last[1].values())) == [[0, 1, 2], [3, 4, 5]]


def skew(held: Mapping[str, set[int]]) -> float:
    """Greatest lag of a member over the mean, by the lags at the start."""
    sums = [sum(LAGS[p] for p in partitions) for partitions in held.values()]
    return max(sums) * len(sums) / sum(sums)


def pairs(estate: Estate, held: Mapping[str, set[int]]) -> dict[str, list[tuple[str, int]]]:
    return {name: [(estate.topic, p) for p in sorted(partitions)] for name, partitions in held.items()}


def plan(estate: Estate, advise: Advise, watch: Watch, after: Told, **said: Any) -> bytes:
    """The recommendation that turns what the group has now into ``after``."""
    generation, before = watch.last
    basis = {"generation": generation, "digest": "d", "partitions": {estate.topic: PARTITIONS}}
    usual = {"group": estate.group, "basis": basis} | said
    return to_bytes(advise(pairs(estate, before), pairs(estate, after), **usual))


def timeless(estate: Estate) -> dict[str, Any]:
    """A basis without a generation: a client may join again by itself, and nothing else changes."""
    return {"generation": None, "digest": "d", "partitions": {estate.topic: PARTITIONS}}


async def followed(estate: Estate, advise: Advise, watch: Watch, after: Told) -> None:
    """Advise until the group has it: a client may join again by itself meanwhile, and the advice is then of the past."""
    advised = -1

    def check() -> bool:
        nonlocal advised
        generation, told = watch.last
        if told == after:
            return True
        if generation != advised and len(told) == len(after):
            advised = generation
            estate.advise(plan(estate, advise, watch, after))
        return False

    await until_async(check, "the plan is in effect")


class Listener(ConsumerRebalanceListener):
    def __init__(self, name: str, consumer: AIOKafkaConsumer, watch: Watch) -> None:
        self.name, self.consumer, self.watch = name, consumer, watch

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.watch.told(self.consumer._coordinator.generation, self.name, {tp.partition for tp in assigned})


@contextlib.asynccontextmanager
async def asynchronous(
    estate: Estate, watch: Watch, at: int, *, instance: bool, **options: Any
) -> AsyncIterator[Follower]:
    """A member that polls all the time; its name is ``s<at>`` or ``c<at>/127.0.0.1``."""
    follower = aiokafka_follower(estate.home, estate.group, **estate.options(**options))
    consumer = AIOKafkaConsumer(
        bootstrap_servers=estate.bootstrap,
        group_id=estate.group,
        client_id=f"c{at}",
        group_instance_id=f"s{at}" if instance else None,
        partition_assignment_strategy=[follower.assignor],
        heartbeat_interval_ms=200,
        session_timeout_ms=30_000,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    name = f"s{at}" if instance else f"c{at}/127.0.0.1"
    consumer.subscribe([estate.topic], listener=Listener(name, consumer, watch))

    async def poll() -> None:
        while True:
            watch.got(name, await consumer.getmany(timeout_ms=100))

    async with follower.of(consumer), started(consumer):
        task = asyncio.create_task(poll())
        try:
            yield follower
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


EVEN = ({0, 3, 4, 5}, {1, 2})
"""The best that there is; the built-in assignor here, range, would undo it."""


@pytest.mark.parametrize("instance", [True, False], ids=["instance ids", "client ids and hosts"])
async def test_an_aiokafka_group_follows_its_plan_and_keeps_it(
    estate: Estate, advise: Advise, instance: bool
) -> None:
    watch = Watch()
    async with (
        asynchronous(estate, watch, 0, instance=instance, apply=True) as one,
        asynchronous(estate, watch, 1, instance=instance, apply=True) as two,
    ):
        await until_async(lambda: halved(watch), "both are there")
        before = watch.last[1]
        names = sorted(before)
        assert names == (
            [f"s{at}" for at in range(2)] if instance else [f"c{at}/127.0.0.1" for at in range(2)]
        )
        after = dict(zip(names, EVEN, strict=True))
        await followed(estate, advise, watch, after)
        assert skew(after) < 1.2 < 1.9 < skew(before)
        assert one.counts["asked"] + two.counts["asked"] >= 1

        estate.advise(None)
        leader = await leading(one, two)
        await until_async(
            lambda: leader.snapshot and not leader.snapshot.recommendation, "it is no longer open"
        )
        await joined_again(leader, watch)
        assert watch.last[1] == after
        assert one.counts[Reason.KEPT] + two.counts[Reason.KEPT] >= 1

        async with asynchronous(estate, watch, 2, instance=instance, apply=True):
            await until_async(lambda: len(watch.last[1]) == 3, "three share")
            assert [len(held) for held in watch.last[1].values()] == [2, 2, 2]
            await until_async(watch.all_read, "all is read")
    watch.check()


def read(follower: Follower) -> Any:
    """What the follower's cache has of recommendations."""
    cache = follower.snapshot
    return cache and (cache.recommendation, cache.unreadable)


async def leading(*followers: Follower) -> Any:
    """The one whose member leads the group now."""
    return await until_async(
        lambda: next((f for f in followers if f._leads is not None), None), "somebody leads"
    )


async def joined_again(leader: Follower, watch: Watch) -> None:
    """Have the group rebalance; asked again where the request met a rebalance that was already under way."""
    generation, told = watch.last
    asked = 0.0

    def check() -> bool:
        nonlocal asked
        if watch.last[0] > generation and len(watch.last[1]) == len(told):
            return True
        if time.monotonic() - asked > 10 and leader.client is not None:
            asked = time.monotonic()
            leader.client.rejoin()
        return False

    await until_async(check, "they joined again")


async def test_what_is_not_about_the_group_now_moves_nothing(estate: Estate, advise: Advise) -> None:
    watch = Watch()
    options = {"apply": True, "instance": True}
    async with (
        asynchronous(estate, watch, 0, **options) as one,
        asynchronous(estate, watch, 1, **options) as two,
    ):
        await until_async(lambda: halved(watch), "both are there")
        names = sorted(watch.last[1])
        after = dict(zip(names, EVEN, strict=True))

        def good(**said: Any) -> bytes:
            return plan(estate, advise, watch, after, **said)

        def spoiled(first: list[int]) -> bytes:
            return good(
                basis=timeless(estate),
                assignment={
                    names[0]: [(estate.topic, p) for p in first],
                    names[1]: [(estate.topic, 1), (estate.topic, 2)],
                },
            )

        old = {"generation": 1, "digest": "d", "partitions": {estate.topic: PARTITIONS}}
        cases: list[tuple[Callable[[], bytes], Reason]] = [
            (lambda: good(basis=old), Reason.OTHER_GENERATION),
            (lambda: good(cluster="other"), Reason.OTHER_CLUSTER),
            (lambda: spoiled([0, 3, 4]), Reason.MISSING_PARTITION),
            (lambda: spoiled([0, 3, 4, 5, 1]), Reason.DOUBLED_PARTITION),
            (lambda: spoiled([0, 3, 4, 5, 6]), Reason.UNKNOWN_PARTITION),
            (lambda: b'{"type":"recommendation"', Reason.UNREADABLE),
            (lambda: good(valid_until=int((time.time() - 3600) * 1000)), Reason.EXPIRED),
        ]
        leader = await leading(one, two)

        def changed(before: Any) -> bool:
            return bool(read(leader) != before)

        for write, reason in cases:
            before = read(leader)
            estate.advise(write())
            await until_async(partial(changed, before), "it was read")
            await joined_again(leader, watch)
            assert leader.counts[reason] >= 1, reason
            assert halved(watch)

        estate.mute(b'{"until": 99999999999999}')
        await until_async(lambda: leader.snapshot and leader.snapshot.muted_until > 0, "the mute was read")
        before = read(leader)
        estate.advise(good())
        await until_async(lambda: read(leader) != before, "it was read")
        await joined_again(leader, watch)
        assert leader.counts[Reason.MUTED] >= 1
        assert leader.counts["asked"] == 0
        assert halved(watch)

        estate.mute(None)
        await followed(estate, advise, watch, after)
    watch.check()


async def test_a_dry_run_says_what_it_would_do_and_moves_nothing(
    estate: Estate, advise: Advise, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    caplog.set_level("INFO", "kagent.follow")
    async with (
        asynchronous(estate, watch, 0, instance=True) as one,
        asynchronous(estate, watch, 1, instance=True) as two,
    ):
        await until_async(lambda: halved(watch), "both are there")
        after = dict(zip(sorted(watch.last[1]), EVEN, strict=True))
        estate.advise(plan(estate, advise, watch, after, basis=timeless(estate)))
        await until_async(
            lambda: "but for the dry run, the group would be asked" in caplog.text, "it says so"
        )
        leader = await leading(one, two)
        await joined_again(leader, watch)
        assert "assigned by range; but for the dry run, the open recommendation is followed" in caplog.text
        assert halved(watch)
        assert leader.counts["asked"] == 0
    watch.check()


async def test_consumers_run_where_kagents_topics_cannot_be_reached(estate: Estate) -> None:
    watch = Watch()
    options: Any = {"instance": True, "apply": True, "prefix": "no-such-"}
    async with (
        asynchronous(estate, watch, 0, **options) as one,
        asynchronous(estate, watch, 1, **options) as two,
    ):
        await until_async(lambda: halved(watch), "both are there")
        assert one.counts[Reason.UNREACHABLE] + two.counts[Reason.UNREACHABLE] > 0
        assert one.snapshot is two.snapshot is None
    watch.check()


async def test_a_plan_in_the_cache_is_worth_nothing_once_the_topics_are_away(
    broker: str, own_broker: Callable[..., Broker], advise: Advise, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, away = Watch(), own_broker()
    estate = Estate(broker, away.bootstrap)
    monkeypatch.setenv(SWITCH, "dry")
    options: Any = {"instance": True, "apply": True, "max_age": 8.0}
    async with (
        asynchronous(estate, watch, 0, **options) as one,
        asynchronous(estate, watch, 1, **options) as two,
    ):
        await until_async(lambda: halved(watch), "both are there")
        after = dict(zip(sorted(watch.last[1]), EVEN, strict=True))
        estate.advise(plan(estate, advise, watch, after, basis=timeless(estate)))
        leader = await leading(one, two)
        await until_async(lambda: leader.snapshot and leader.snapshot.recommendation, "it was read")
        away.kill()
        await until_async(lambda: leader.snapshot and time.time() - leader.snapshot.read_at > 8, "it is old")
        monkeypatch.delenv(SWITCH)
        await joined_again(leader, watch)
        assert leader.counts[Reason.STALE] >= 1
        assert leader.counts["asked"] == 0
        assert halved(watch)
    watch.check()


class Polling(SyncListener):
    """A kafka-python consumer that polls in a thread until it is closed."""

    def __init__(self, estate: Estate, watch: Watch, at: int, **options: Any) -> None:
        told = estate.options(apply=True, **options)
        self.follower = kafka_python_follower(estate.home, estate.group, **told)
        self.consumer = KafkaConsumer(
            bootstrap_servers=estate.bootstrap,
            group_id=estate.group,
            client_id=f"c{at}",
            partition_assignment_strategy=[self.follower.assignor],
            heartbeat_interval_ms=200,
            session_timeout_ms=30_000,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        self.name, self.watch = f"c{at}/127.0.0.1", watch
        self.consumer.subscribe([estate.topic], listener=self)
        self.failure: Exception | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        generation = self.consumer._coordinator._generation.generation_id
        self.watch.told(generation, self.name, {tp.partition for tp in assigned})

    def _poll(self) -> None:
        try:
            with self.follower.of(self.consumer):
                while not self._done.is_set():
                    # With 50 ms, kafka-python 3.0.12 drops an assignment that comes just after a poll has timed out.
                    self.watch.got(self.name, self.consumer.poll(timeout_ms=500))
        except Exception as error:
            self.failure = error
        finally:
            self.consumer.close()

    def close(self) -> None:
        self._done.set()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()
        assert self.failure is None


class Cooperating(Polling):
    """One that keeps what it holds while it joins; ``revoked``: what it had to give up, in order."""

    def __init__(self, estate: Estate, watch: Watch, at: int) -> None:
        self.held: set[int] = set()
        self.revoked: list[int] = []
        super().__init__(estate, watch, at, strategy="cooperative-sticky")

    @property
    def generation(self) -> int:
        """The one in which it was given what it holds."""
        return int(self.consumer._coordinator._generation.generation_id)

    def on_partitions_revoked(self, revoked: Any) -> None:
        given_up = {tp.partition for tp in revoked}
        self.held -= given_up
        self.revoked += sorted(given_up)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.held |= {tp.partition for tp in assigned}


async def test_a_cooperative_kafka_python_group_gives_up_only_what_moves(
    estate: Estate, advise: Advise
) -> None:
    watch = Watch()
    members: list[Cooperating] = []

    def holdings(count: int) -> Told:
        """What so many members hold between them, all of it, in one generation; else nothing."""
        held = {one.name: set(one.held) for one in members}
        together = len({one.generation for one in members}) == 1 and len(held) == count
        whole = sorted(p for parts in held.values() for p in parts) == list(range(PARTITIONS))
        return held if together and whole and all(held.values()) else {}

    def advised(after: Told) -> bytes:
        usual = {"group": estate.group, "basis": timeless(estate)}
        return to_bytes(advise(pairs(estate, before), pairs(estate, after), **usual))

    try:
        members += [Cooperating(estate, watch, at) for at in range(2)]
        before = await until_async(partial(holdings, 2), "both are there")
        for one in members:
            one.revoked.clear()
        (giver, had), (taker, has) = sorted(before.items())
        moved = max(had)
        after = {giver: had - {moved}, taker: has | {moved}}
        estate.advise(advised(after))
        await until_async(lambda: holdings(2) == after, "the plan is in effect")
        assert {one.name: one.revoked for one in members} == {giver: [moved], taker: []}

        estate.advise(None)
        leader = await leading(*(one.follower for one in members))
        await until_async(
            lambda: leader.snapshot and not leader.snapshot.recommendation, "it is no longer open"
        )
        generation = members[0].generation
        leader.client.rejoin()
        await until_async(lambda: members[0].generation > generation and holdings(2), "they joined again")
        assert holdings(2) == after
        assert {one.name: one.revoked for one in members} == {giver: [moved], taker: []}
        members.append(Cooperating(estate, watch, 2))
        await until_async(partial(holdings, 3), "three share")
        await until_async(watch.all_read, "all is read")
    finally:
        for member in members:
            member.close()


async def test_a_kafka_python_group_follows_its_plan_and_keeps_it(estate: Estate, advise: Advise) -> None:
    watch = Watch()
    members: list[Polling] = []
    try:
        members += [Polling(estate, watch, at) for at in range(2)]
        await until_async(lambda: halved(watch), "both are there")
        before = watch.last[1]
        after = dict(zip(sorted(before), EVEN, strict=True))
        await followed(estate, advise, watch, after)
        assert skew(after) < 1.2 < 1.9 < skew(before)
        leader = await leading(*(one.follower for one in members))
        await joined_again(leader, watch)
        assert watch.last[1] == after
        members.append(Polling(estate, watch, 2))
        await until_async(lambda: len(watch.last[1]) == 3, "three share")
        assert [len(held) for held in watch.last[1].values()] == [2, 2, 2]
        await until_async(watch.all_read, "all is read")
    finally:
        for member in members:
            member.close()
    watch.check()


async def test_members_of_both_libraries_follow_one_plan(estate: Estate, advise: Advise) -> None:
    watch = Watch()
    async with asynchronous(estate, watch, 0, instance=False, apply=True) as one:
        other = Polling(estate, watch, 1)
        try:
            await until_async(lambda: halved(watch), "both are there")
            after = dict(zip(sorted(watch.last[1]), EVEN, strict=True))
            await followed(estate, advise, watch, after)
            assert one.counts["asked"] + other.follower.counts["asked"] >= 1
        finally:
            other.close()
    watch.check()
