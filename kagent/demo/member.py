"""One member of one group, as a process: reads, sleeps its cost per record, commits. ``python -m kagent.demo.member``."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from contextlib import nullcontext
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError
from pydantic import TypeAdapter

from kagent.assignor import NAME
from kagent.demo.fixed_assignor import FixedList
from kagent.demo.topology import DemoMember
from kagent.follow import aiokafka_follower
from kagent.follow.for_aiokafka import AiokafkaFollower
from kagent.kafka.consumer import stop as stopped
from kagent.strategies.plugins.for_aiokafka import assignor_of

log = logging.getLogger("kagent.demo")

# 0.25 s of work at the demo's cost: a rebalance, or the end, waits for no more.
BATCH = 20
FIXED_LIST = "fixed-list"
LIBRDKAFKA_TICK = 0.2
AGAIN = 1.0


class CommitListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Commits what was processed, now and then and before partitions are given away."""

    def __init__(self, consumer: AIOKafkaConsumer, every: float) -> None:
        self.consumer, self.every = consumer, every
        self.done: dict[Any, int] = {}
        self.last = time.monotonic()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self.commit()
        self.done.clear()  # also where it failed: somebody else may be further by then

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Nothing to do: positions come from the commits."""

    async def now_and_then(self) -> None:
        if time.monotonic() - self.last >= self.every:
            await self.commit()

    async def commit(self) -> None:
        self.last = time.monotonic()
        # aiokafka refuses a commit that names a partition which the member no longer holds.
        held = {tp: offset for tp, offset in self.done.items() if tp in self.consumer.assignment()}
        if held:
            try:
                await self.consumer.commit(held)
            except (
                KafkaError
            ) as error:  # a machine that stood still lost its place in the group; it joins again
                log.warning("not committed: %s", error)


async def run_aiokafka(about: DemoMember, stop: asyncio.Event) -> None:
    """A member with aiokafka; its group may have a fixed list, and ``kagent.follow`` may stand above it."""
    while not stop.is_set():
        follower = _follower(about)
        assignor = follower.assignor if follower else _assignor(about)
        options = {"partition_assignment_strategy": [assignor]} if assignor else {}
        consumer = AIOKafkaConsumer(
            bootstrap_servers=about.bootstrap,
            group_id=about.group,
            client_id=about.client_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # 10 s by default in aiokafka: a machine that stands still for some seconds must not cost a member its place.
            session_timeout_ms=30_000,
            metadata_max_age_ms=5_000,
            **options,
        )
        try:
            async with follower.of(consumer) if follower else nullcontext():
                await _read(consumer, about, stop)
        except KafkaError as error:
            log.warning("%s; joining anew", error)
            await asyncio.sleep(AGAIN)
        finally:
            await stopped(consumer)


def _assignor(about: DemoMember) -> Any:
    return assignor_of(FixedList(about.group, about.start), FIXED_LIST) if about.start else None


def _follower(about: DemoMember) -> AiokafkaFollower | None:
    if about.follow is None:
        return None
    follower = aiokafka_follower(about.bootstrap, about.group, "demo", apply=about.follow == "apply")
    if about.start:
        follower.builtin = FixedList(about.group, about.start)
    return follower


async def _read(consumer: AIOKafkaConsumer, about: DemoMember, stop: asyncio.Event) -> None:
    commits = CommitListener(consumer, about.commit)
    await consumer.start()
    consumer.subscribe(about.topics, listener=commits)
    while not stop.is_set():
        for tp, records in (await consumer.getmany(timeout_ms=200, max_records=BATCH)).items():
            await asyncio.sleep(about.cost * len(records))
            commits.done[tp] = records[-1].offset + 1
        await commits.now_and_then()
    await commits.commit()


async def run_librdkafka(about: DemoMember, stop: asyncio.Event) -> None:
    """A member with librdkafka and the KIP-848 protocol."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": about.bootstrap,
            "group.id": about.group,
            "client.id": about.client_id,
            # Its assignor runs in the broker and is only named here:
            # https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
            "group.protocol": "consumer",
            "group.remote.assignor": NAME,
            "auto.offset.reset": "earliest",
            # librdkafka commits what it has handed out, done or not (enable.auto.offset.store): a batch is little beside the lag.
            "auto.commit.interval.ms": int(about.commit * 1000),
        }
    )
    consumer.subscribe(list(about.topics))
    try:
        while not stop.is_set():
            # In a thread, as it blocks: the loop must run to notice SIGTERM.
            records = await asyncio.to_thread(consumer.consume, BATCH, LIBRDKAFKA_TICK)
            await asyncio.sleep(about.cost * len(records))
    finally:
        await asyncio.to_thread(consumer.close)


async def main(about: DemoMember) -> None:
    """Run until SIGTERM."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await (run_librdkafka if about.client == "librdkafka" else run_aiokafka)(about, stop)


if __name__ == "__main__":
    asyncio.run(main(TypeAdapter(DemoMember).validate_json(sys.argv[1])))
