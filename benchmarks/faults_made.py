"""The faults of `benchmarks/faults.py`: each makes a stage (broker, settings, environments) and then the fault on the running kagent."""

from __future__ import annotations

import argparse
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from slow_way import SlowWay

from kagent.embedded.broker import HOST, Broker, free_port
from kagent.group_key import source_partition
from kagent.kafka.admin import Admin
from kagent.offsets import OFFSETS_TOPIC
from kagent.offsets.record import decode
from kagent.offsets.writer import encode_key, encode_value
from kagent.settings import Cluster
from tests.fixtures.beside import beside
from tests.fixtures.small_disk import filled, small_disk
from tests.fixtures.two_brokers import TWICE, Second, lay_out_offsets, start_pair
from tests.fixtures.waiting import until
from tests.worker.soak import Soak

Fault = Callable[[Soak], AbstractContextManager[None]]
Faults = dict[str, Fault]


@dataclass
class Stage:
    broker: Any
    worker: dict[str, Any] = field(default_factory=dict)
    """Settings of the worker."""
    topics: dict[str, Any] = field(default_factory=dict)
    environments: dict[str, dict[str, str]] = field(default_factory=dict)


Made = Callable[[Path, argparse.Namespace], AbstractContextManager[tuple[Stage, Faults]]]


@contextmanager
def one_broker(folder: Path) -> Iterator[Broker]:
    broker = Broker(folder / "broker").start()
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def full_tables(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """The disk of `worker.data` is full, with tables on it."""
    place = folder / "data"
    with small_disk(place, "64m"), one_broker(folder) as broker:
        yield Stage(broker, {"store": "rocksdb://"}), {"full": lambda _: filled(place)}


@contextmanager
def full_checkpoint(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """The disk of `pipeline.checkpoint` is full."""
    place = folder / "checkpoint"
    with small_disk(place, "2m"), one_broker(folder) as broker:
        yield Stage(broker), {"full": lambda _: filled(place)}


@contextmanager
def full_temporary(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """The disk of the pipeline's temporary files (TMPDIR) is full."""
    place = folder / "tmp"
    with small_disk(place, "64m"), one_broker(folder) as broker:
        yield (
            Stage(broker, environments={"pipeline": {"TMPDIR": str(place)}}),
            {"full": lambda _: filled(place)},
        )


@contextmanager
def full_broker(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """The disk of the broker's logs is full, on which a broker ends; it is started again once there is room."""
    place = folder / "broker" / "data"
    with small_disk(place, "256m"), one_broker(folder) as broker:

        @contextmanager
        def fault(_: Soak) -> Iterator[None]:
            with filled(place):
                yield
                print(f"the broker {'runs on' if broker.pid else 'has ended'}", flush=True)
            # Also one that runs on: it writes no log any more that it could not write once.
            broker.kill()
            broker.start()

        yield Stage(broker), {"full": fault}


@contextmanager
def slow_broker(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """Every answer to pipeline and worker takes 5 s."""
    own, slow, real = free_port(), free_port(), free_port()
    extra = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SLOW:PLAINTEXT",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{own},SLOW://{HOST}:{slow}",
    }
    broker = Broker(folder / "broker", own, extra=extra, listeners={"SLOW": real}).start()
    with SlowWay(slow, real) as way:
        there = {"KAGENT_CLUSTERS__MAIN__BOOTSTRAP": f"{HOST}:{slow}"}

        @contextmanager
        def fault(_: Soak) -> Iterator[None]:
            way.delay_s = 5.0
            yield
            way.delay_s = 0.0

        yield Stage(broker, environments={"pipeline": there, "worker": there}), {"5 s": fault}
    broker.stop()


@dataclass
class Three:
    """Three brokers of one cluster, under all addresses; the first one is the controller."""

    brokers: list[Broker]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def pid(self) -> int | None:
        return self.brokers[0].pid


THRICE = {name: "3" if value == "2" else value for name, value in TWICE.items()}


@contextmanager
def three_brokers(folder: Path, more: dict[str, str]) -> Iterator[Three]:
    thrice = THRICE | more
    first = Broker(folder / "first", extra=thrice).start()
    joined = [_joined(folder, number, first, thrice) for number in (2, 3)]
    three = Three([first, *joined])
    admin = Admin(Cluster(bootstrap=three.bootstrap))
    until(lambda: len(admin._client.list_topics(timeout=10).brokers) == 3, "all brokers are there")
    try:
        yield three
    finally:
        for broker in reversed(three.brokers):
            broker.stop()


def _joined(folder: Path, number: int, first: Broker, extra: dict[str, str]) -> Broker:
    port = free_port()
    own = f"PLAINTEXT://{HOST}:{port}"
    joins = {
        "process.roles": "broker",
        "node.id": str(number),
        "controller.quorum.voters": f"1@{HOST}:{first.controller_port}",
        "listeners": own,
        "advertised.listeners": own,
    }
    return Second(folder / f"broker-{number}", port, extra={**extra, **joins}).start()


@contextmanager
def two_gone(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """Two of three brokers are killed: those without the controller, so that topics have leaders and too few replicas in step; then with it."""
    in_step = {"min.insync.replicas": "2", "transaction.state.log.min.isr": "2"}
    with three_brokers(folder, in_step) as three:

        @contextmanager
        def fault(gone: list[Broker]) -> Iterator[None]:
            for broker in gone:
                broker.kill()
            yield
            for broker in gone:
                broker.start()

        faults: Faults = {
            "without the controller": lambda _: fault(three.brokers[1:]),
            "with the controller": lambda _: fault(three.brokers[:2]),
        }
        yield Stage(three, topics={"replication": 3}), faults


@contextmanager
def unclean(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """Of the two replicas of `__consumer_offsets` one is away while commits go on, and is then the only one there is: it is elected."""
    with three_brokers(folder, {}) as three:
        _, kept, behind = three.brokers
        partitions = int(THRICE["offsets.topic.num.partitions"])
        unclean_election = {"unclean.leader.election.enable": "true"}
        lay_out_offsets(three.bootstrap, [[2, 3]] * partitions, **unclean_election)

        @contextmanager
        def fault(soak: Soak) -> Iterator[None]:
            behind.kill()
            soak.commit(soak.quiet)
            known = _of_quiet(soak)
            soak.running.eventually(
                "the lag table has them", lambda: known.items() <= soak.running.lag_table().items()
            )
            kept.kill()
            behind.start()
            yield
            found = _of_quiet(soak)
            lost = [group for group, at in known.items() if at != found.get(group)]
            print(f"the cluster lost commits of {len(lost)} of {soak.quiet} quiet groups", flush=True)
            kept.start()
            # What the cluster itself has lost is no loss of kagent's.
            soak.commit(soak.quiet)

        yield Stage(three, topics={"replication": 3}), {"elected": fault}


SOURCES = 8
KEPT_GROUPS = ("skewed", "kagent")


@contextmanager
def lone(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """A broker that alone holds some partitions of `__consumer_offsets` is gone: their groups have no coordinator and no log."""
    pair = start_pair(folder, {"offsets.topic.num.partitions": f"{SOURCES}"})
    kept = {source_partition(group, SOURCES) for group in KEPT_GROUPS}
    places = [[1] if p in kept or p % 2 else [2] for p in range(SOURCES)]
    lay_out_offsets(pair.bootstrap, places)

    @contextmanager
    def fault(soak: Soak) -> Iterator[None]:
        lost = [g for g in soak.offsets if places[source_partition(g, SOURCES)] == [2]]
        print(f"{len(lost)} of {soak.quiet} quiet groups have no coordinator now", flush=True)
        pair.second.kill()
        yield
        pair.second.start()

    try:
        yield Stage(pair, topics={"replication": 2}), {"gone": fault}
    finally:
        pair.stop()


def _of_quiet(soak: Soak) -> dict[str, Any]:
    """What the cluster says that the quiet groups have committed; the others go on committing."""
    return {group: at for group, at in soak.running.committed().items() if group in soak.offsets}


COMPACTING = {
    "offsets.topic.segment.bytes": "1048576",
    "log.roll.ms": "3000",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": "1000",
}
"""What takes a broker days, within seconds: also tombstones go a second after they were seen."""
GONE = [f"gone-{number}" for number in range(5)]


@contextmanager
def compaction(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """`__consumer_offsets` is compacted all the time; meanwhile the pipeline is away, and groups are deleted until no tombstone is left."""
    broker = Broker(folder / "broker", extra=COMPACTING).start()

    @contextmanager
    def fault(soak: Soak) -> Iterator[None]:
        running = soak.running
        running.topic("parcels", 1)
        for group in GONE:
            running.commit(group, {("parcels", 0): 0})
        running.eventually("they are known", lambda: set(GONE) <= running.lag_table().keys())
        running.kill("pipeline")
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in client.delete_consumer_groups(GONE).values():
            future.result(30)
        print(f"offsets of {OFFSETS_TOPIC} that are left: {_left(running)}", flush=True)
        yield

        def forgotten() -> bool:
            soak.commit(soak.quiet)  # a segment is closed, and then cleaned, only where something is written
            return not _named(running, GONE)

        running.eventually("their tombstones are gone", forgotten)
        print(f"offsets of {OFFSETS_TOPIC} that are left: {_left(running)}", flush=True)
        soak.start_one("pipeline")

    try:
        yield Stage(broker), {"compacted and deleted": fault}
    finally:
        broker.stop()


def _left(running: Any) -> str:
    ends = Admin(running.cluster).log_end([(OFFSETS_TOPIC, p) for p in range(4)]).found
    return f"{len(running.read(OFFSETS_TOPIC))} of {sum(ends.values())}"


def _named(running: Any, groups: list[str]) -> list[str]:
    keys = {key or b"" for key, _ in running.read(OFFSETS_TOPIC)}
    return [group for group in groups if any(group.encode() in key for key in keys)]


STORM = 2_000


@contextmanager
def storm(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """2,000 groups rebalance every second, with a commit of each: records as their coordinator writes them.

    The API goes on listing them for a day after their tombstones, so the last finding says that its groups are not the cluster's.
    """
    with one_broker(folder) as broker:

        @contextmanager
        def fault(soak: Soak) -> Iterator[None]:
            groups = StormyGroups(soak.running)
            groups.round()
            with beside(groups.round, 1.0):
                yield
            soak.running.eventually("the table has what came last", groups.arrived)
            print(f"{groups.rounds} rounds; the table has the last commit of all", flush=True)
            groups.end()

        yield Stage(broker), {"storm": fault}


class StormyGroups:
    """``__admin_client``: the client that brokers let write to internal topics."""

    def __init__(self, running: Any) -> None:
        self.running, self.rounds = running, 0
        running.topic("stormy", 1)
        config = {
            "bootstrap.servers": running.broker.bootstrap,
            "client.id": "__admin_client",
            "linger.ms": 20,
        }
        self.producer = Producer({**config, "queue.buffering.max.messages": 100_000})
        found = (decode(*record) for record in running.read(OFFSETS_TOPIC) if record[1] and record[0][1] == 2)
        # The last one with members, as a real coordinator wrote it.
        self.like = [r for r in found if r.group == "skewed" and r.value and r.value["members"]][-1]

    def round(self) -> None:
        self.rounds += 1
        for number in range(STORM):
            group = f"stormy-{number}"
            value = {**self.like.value, "generation": self.rounds}
            self._send(group, encode_key(2, {"group": group}), encode_value(self.like, value))
            commit = struct.pack(">hqihq", 3, self.rounds, -1, 0, int(time.time() * 1000))
            self._send(group, self._commit_key(group), commit)
        self.producer.flush(60)

    def _send(self, group: str, key: bytes, value: bytes | None) -> None:
        self.producer.produce(OFFSETS_TOPIC, value, key, source_partition(group, 4))

    def _commit_key(self, group: str) -> bytes:
        return struct.pack(f">hh{len(group)}sh6si", 1, len(group), group.encode(), 6, b"stormy", 0)

    def arrived(self) -> bool:
        held = self.running.lag_table()
        return all(held.get(f"stormy-{n}") == {("stormy", 0): self.rounds} for n in range(STORM))

    def end(self) -> None:
        """As if they were deleted: the cluster's coordinator does not know them."""
        for number in range(STORM):
            group = f"stormy-{number}"
            self._send(group, self._commit_key(group), None)
            self._send(group, encode_key(2, {"group": group}), None)
        self.producer.flush(60)


FAULTS: dict[str, Made] = {
    "full-tables": full_tables,
    "full-checkpoint": full_checkpoint,
    "full-temporary": full_temporary,
    "full-broker": full_broker,
    "slow-broker": slow_broker,
    "two-gone": two_gone,
    "lone": lone,
    "unclean": unclean,
    "compaction": compaction,
    "storm": storm,
}
