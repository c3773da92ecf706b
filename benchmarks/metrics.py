"""What one scrape of `/metrics` costs a worker with many groups: `python benchmarks/metrics.py`.

20,000 groups with ten partitions and three members each, every twentieth behind, in a worker's desk as events would have put
them there, judged once.
Prints seconds and megabytes of a scrape, and how long others had to wait for the event loop at most, beside what
prometheus-client itself takes in the same run for as many plain gauges. Then 50,000 throw-away groups: what is let in, and
what a tick, an adoption and a forgetting cost for 10,000 and for twice as many.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, encode
from kagent.kafka.descriptions import GroupAnswers
from kagent.offsets import Record
from kagent.settings import Cluster, Settings
from kagent.testing import memory_tables
from kagent.worker.engine import GroupEngine
from kagent.worker.http.metrics import SeriesLimits, exposition
from kagent.worker.http.server import view
from kagent.worker.ownership import spare_from_collections

START = 1_700_000_000_000
DAY = 86_400_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--thrown", type=int, default=50_000)
    args = parser.parse_args()
    asyncio.run(scrape(args.groups, args.partitions))
    asyncio.run(thrown_away(args.thrown))


async def scrape(groups: int, partitions: int) -> None:
    world = World()
    began = time.perf_counter()
    for n in range(groups):
        world.group(f"group-{n}", partitions, behind=n % 20 == 0)
    world.sampled(partitions)
    filled = time.perf_counter() - began
    spare_from_collections()  # as a worker does once it has loaded its groups
    ticked = await world.tick()
    print(
        f"{groups} groups, {groups * partitions} group-partitions: taken in in {filled:.1f} s, a tick takes {ticked:.2f} s"
    )
    for limit in (0, 100_000):
        waited = Waiting()
        began = time.perf_counter()
        seen = await view(world.desk, True)
        middle = time.perf_counter()
        page = await asyncio.to_thread(exposition, seen, SeriesLimits(limit))  # as the worker does
        took = time.perf_counter() - began
        longest = await waited.stop()
        series = sum(not line.startswith(b"#") for line in page.splitlines())
        print(
            f"max_series {limit}: {series} series, {len(page) / 1e6:.1f} MB in {took:.2f} s "
            f"(looking {middle - began:.2f}, writing {took - middle + began:.2f}); others waited {longest:.2f} s; "
            f"{series} plain gauges in prometheus-client: {plain(series):.2f} s"
        )
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


async def thrown_away(groups: int) -> None:
    world = World()
    for n in range(groups):
        world.group(f"console-consumer-{n}", 1, members=0)
    counts = world.desk.counts
    print(
        f"{groups} throw-away groups: {world.desk.group_count} let in, {counts['groups_over_limit']} events left out"
    )
    for size in (10_000, 20_000):
        world = World()
        for n in range(size):
            world.group(f"console-consumer-{n}", 1, members=0)
        tick = await world.tick()
        began = time.perf_counter()
        world.desk.adopt(0, {})
        adopting = time.perf_counter() - began
        for n in range(size):
            world.gone(f"console-consumer-{n}")
        world.now += 2 * DAY
        forgetting = await world.tick()
        print(
            f"{size} of them: a tick {tick:.2f} s, adopting {adopting:.3f} s, the tick that forgets all {forgetting:.2f} s, "
            f"{world.desk.group_count} left"
        )


class Waiting:
    """The longest time for which the event loop let nobody else run."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.perf_counter() - began)

    async def stop(self) -> float:
        await asyncio.sleep(0)
        self.task.cancel()
        return self.longest


class World:
    """A desk with one partition, and a clock."""

    def __init__(self) -> None:
        self.now, self.offset = START, 0
        tables: Any = memory_tables()

        async def publish(key: str, value: bytes | None) -> None:
            """Nobody listens."""

        async def no_answers(cluster: str, entries: Any) -> GroupAnswers[Any]:
            return GroupAnswers({})

        settings = Settings(clusters={"main": Cluster(bootstrap="unused:1")})
        self.desk = GroupEngine.of(settings, tables, publish, no_answers, "w", clock=lambda: self.now / 1000)
        self.desk.load([0], {0: 0})
        self._beat()

    def _take(self, value: bytes) -> None:
        self.desk.take(0, self.offset, value)
        self.offset += 1

    def _beat(self) -> None:
        self._take(encode(Beat("main", self.now, "r", 1.0, False, [0], [0], [10], [10], [10])))

    def group(self, name: str, partitions: int, members: int = 3, behind: bool = True) -> None:
        listed = list(range(partitions))
        commit = TopicOffsets(
            "orders",
            None,
            listed,
            [(50 if behind else 100) * p for p in listed],
            [self.now] * partitions,
            listed,
        )
        records = [MembershipRecord(1, self.now, membership(name, partitions, members))] if members else []
        self._take(encode(GroupEvent("main", name, 0, self.now, [commit], (), records)))

    def gone(self, name: str) -> None:
        commit = TopicOffsets("orders", None, [0], [-1], [self.now], [9])
        self._take(encode(GroupEvent("main", name, 0, self.now, [commit])))

    def sampled(self, partitions: int) -> None:
        zero, end = np.zeros(partitions, np.int64), np.arange(partitions, dtype=np.int64) * 100
        for _ in range(30):
            self.now += 5000
            sample = SimpleNamespace(
                topic="orders",
                topic_id=None,
                asked=self.now,
                seen=self.now + 5,
                start=zero,
                end=end,
                stable=end,
            )
            self.desk.logs.sampled("main", [sample], {}, {})

    async def tick(self) -> float:
        self._beat()
        began = time.perf_counter()
        await self.desk.tick(0, self.now)
        return time.perf_counter() - began


def membership(name: str, partitions: int, members: int, topic: str = "orders") -> dict[str, Any]:
    """The record of a classic group that holds all partitions of a topic."""
    listed = [
        {
            "memberId": f"{name}-{m}",
            "groupInstanceId": None,
            "clientId": f"{name}-{m}",
            "clientHost": "/10.0.0.1",
            "sessionTimeout": 10_000,
            "subscription_decoded": {
                "version": 1,
                "topics": [topic],
                "userData": None,
                "ownedPartitions": [],
            },
            "assignment_decoded": {
                "assignedPartitions": [{"topic": topic, "partitions": list(range(m, partitions, members))}]
            },
        }
        for m in range(members)
    ]
    value = {
        "protocolType": "consumer",
        "generation": 1,
        "protocol": "range",
        "leader": "",
        "members": listed,
    }
    return Record("GroupMetadata", 2, 3, {"group": name}, value).to_json()


def plain(series: int) -> float:
    """Seconds that prometheus-client takes to write so many gauges of its own."""
    registry = CollectorRegistry()
    gauge = Gauge("plain", "As many.", ["cluster", "group", "topic", "partition"], registry=registry)
    for n in range(series):
        gauge.labels("main", f"group-{n // 10}", "orders", str(n % 10)).set(n)
    began = time.perf_counter()
    generate_latest(registry)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
