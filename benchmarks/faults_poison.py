"""The fault "poison" of `benchmarks/faults.py`: records that nobody should send on every topic that kagent reads, and groups that mean harm.

1,000 records of forty kinds on each of kagent's own topics, and 200 hostile groups on the cluster, again and again while the fault lasts. What is
claimed is that each costs itself alone: at every tick every other group is judged. Printed at the end: how many looks found one that was not, and why.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import struct
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson
from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import for_code
from aiokafka.protocol.admin import DeleteGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from faults_made import Fault, Made, Stage, one_broker

from kagent.kafka.brokers import Brokers, Silences
from kagent.kafka.group_admin import Moving, asked
from tests.fixtures.beside import beside
from tests.fixtures.poison import forty_kinds
from tests.fixtures.waiting import until
from tests.worker.soak import SKEWED, Soak

TOPICS = ("group-events", "ticks", "mutes", "recommendations", "dead-letters")
RECORDS = 1_000
GROUPS = 200
UNKNOWN_TOPICS = 20_000
ROUND_S = 10.0
ANSWER_S = 3.0
"""A healthy coordinator answers within 0.1 s; what it never answers must not hold up the round."""
LOOK_S = 0.3
"""Less than a third of the stage's tick, so that no judgement is missed."""
NAMES = [
    "a b", "", ".", "..", "../../etc/passwd", "\0", "line\nbreak", "\x1b[2J", "\u202egnol", "ä", "😀", "x" * 250, "x" * 20_000, "main/quiet-0", "@channel",
    "<script>alert(1)</script>", "{{7*7}}", "${jndi:ldap://x}", "%s%n", "'; drop table lag; --", '"', "\\", "kagent-", "__consumer_offsets",
]  # fmt: skip
METADATA = ["", "m" * 4_000, "\0", "{}", "\x1b[2J"]
SESSION_MS = 6_000
"""The shortest that brokers allow by default."""
NON_EMPTY_GROUP = 68
"""https://kafka.apache.org/protocol.html#protocol_error_codes"""
T = TypeVar("T")
EDGES = [-(1 << 63), -1, 0, 1, (1 << 31) - 1, 1 << 31, (1 << 53) + 1, (1 << 63) - 1]


@dataclass
class Hostile:
    """200 groups as any client may make them: members whose subscriptions, assignments and commits mean nothing, which never send a
    heartbeat and so rebalance all the time; and one real consumer that subscribes to 20,000 topics that do not exist."""

    running: Any
    random: random.Random = field(default_factory=lambda: random.Random(40))
    answers: Counter[str] = field(default_factory=Counter)
    """What the coordinator said to them: "NoError" or an error's name, and the same of commits."""

    def round(self) -> None:
        for number in range(GROUPS):
            # Each over a connection of its own: to some the broker answers by closing it.
            try:
                asked(self.running.cluster, ANSWER_S, Silences(), self._one, _name(number))
            except (ClientError, Moving) as error:
                self.answers[type(error).__name__] += 1

    def go_away(self) -> None:
        """Delete the groups, once their members' sessions are over."""
        until(
            lambda: not asked(self.running.cluster, 30, Silences(), self._left),
            "the hostile groups are deleted",
        )

    async def _left(self, brokers: Brokers) -> int:
        # Not librdkafka, for which a name ends at its first NUL.
        answer: Any = await brokers.ask(DeleteGroupsRequest([_name(number) for number in range(GROUPS)]), 1)
        return sum(code == NON_EMPTY_GROUP for _, code in answer.results)

    async def _one(self, brokers: Brokers, group: str) -> None:
        kind = self._one_of(["consumer", "consumer", "connect", "\x1b[31m"])
        protocols = [("range", self._subscription(kind))]
        place = (group, SESSION_MS, SESSION_MS)
        joined: Any = await brokers.ask(JoinGroupRequest(*place, "", None, kind, protocols), 1)
        if joined.member_id:  # the first answer only names the member (KIP-394)
            again = JoinGroupRequest(*place, joined.member_id, None, kind, protocols)
            joined = await brokers.ask(again, 1)
        self.answers[for_code(joined.error_code).__name__] += 1
        mine = (group, joined.generation_id, joined.member_id)
        assigned = [(joined.member_id, self._assignment())]
        await brokers.ask(SyncGroupRequest(*mine, None, assigned), 1)
        await self._commit(brokers, *mine)

    async def _commit(self, brokers: Brokers, group: str, generation: int, member: str) -> None:
        places = [(p, self._one_of(EDGES), self._one_of(METADATA)) for p in range(4)]
        request = OffsetCommitRequest(group, generation, member, -1, [("orders", places)])
        answer: Any = await brokers.ask(request, 1)
        codes = {code for _, partitions in answer.topics for _, code in partitions}
        self.answers["commit: " + ", ".join(for_code(code).__name__ for code in sorted(codes))] += 1

    def _subscription(self, kind: str) -> bytes:
        """Of consumers topics of names that no topic may have: of those that it cannot read Kafka 4's coordinator answers no join and
        writes no record."""
        topics = [self._one_of(NAMES).encode()[:30_000] for _ in range(self._one_of([0, 1, 7, 300]))]
        whole = struct.pack(">hi", 1, len(topics)) + b"".join(map(_text, topics)) + struct.pack(">ii", -1, 0)
        unreadable = [
            whole[:-9],
            struct.pack(">hi", 1, 2**31 - 1),
            b"",
            b"\xff" * 40,
            self.random.randbytes(200),
        ]
        return self._one_of([whole, whole + b"more"] if kind == "consumer" else unreadable)

    def _assignment(self) -> bytes:
        topic, partition = _text(self._one_of([b"orders", b"a b", b""])), self._one_of([0, 3, -1, 2**31 - 1])
        whole = struct.pack(">hi", 1, 1) + topic + struct.pack(">iii", 1, partition, -1)
        many = struct.pack(">hi", 1, 2**31 - 1)
        return self._one_of([whole, whole, many, whole[:-5], b"", self.random.randbytes(99)])

    def _one_of(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    @contextmanager
    def subscribed(self) -> Iterator[None]:
        """A member that wants topics that do not exist, as any client may."""
        config = {"bootstrap.servers": self.running.broker.bootstrap, "group.id": "wants-all", "log_level": 0}
        consumer = Consumer({**config, "allow.auto.create.topics": False})
        consumer.subscribe([f"unknown-{number}" for number in range(UNKNOWN_TOPICS)])
        with beside(lambda: consumer.poll(0.5)):
            yield
        consumer.close()


def _name(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]}{number}"


def _text(data: bytes) -> bytes:
    return struct.pack(">h", len(data)) + data


class Looks(threading.Thread):
    """Looks at every group of the stage's own, more often than they are judged, and at every summary of a tick."""

    def __init__(self, soak: Soak) -> None:
        super().__init__(daemon=True)
        self.soak, self.done = soak, threading.Event()
        self.sound = {SKEWED, *(f"quiet-{number}" for number in range(soak.quiet))}
        self.looks, self.answers = 0, Counter[str]()
        self.not_judged: Counter[str] = Counter()
        """By the reason: looks in which a sound group was not judged."""
        self.ticks: dict[int, list[int]] = {}
        """Of each partition of the events topic the times at which its groups were judged (ms)."""
        config = {"bootstrap.servers": soak.running.broker.bootstrap, "group.id": "kagent-looks"}
        self.consumer = Consumer({**config, "log_level": 0, "enable.auto.commit": False})
        self.consumer.assign([TopicPartition("kagent-ticks", p, OFFSET_END) for p in range(2)])

    def run(self) -> None:
        while not self.done.wait(LOOK_S):
            self.looks += 1
            try:
                missed = self.missed()
            except (OSError, ValueError) as error:
                missed = {f"no answer ({type(error).__name__})"}
            for why in missed:
                self.not_judged[why] += 1
                print(f"{time.strftime('%T')} not judged: {why}", flush=True)
            self._read_summaries()
        self.consumer.close()

    def missed(self) -> set[str]:
        said = self._page("/api/v1/groups?condition=blind&limit=500")
        blind = {row["group"]: row["blind"] for row in said["groups"] if row["group"] in self.sound}
        found = {f"{why} ({sum(w == why for w in blind.values())} groups)" for why in blind.values()}
        there = self._page("/api/v1/groups?limit=500&search=quiet-")
        if not {f"quiet-{n}" for n in range(self.soak.quiet)} <= {row["group"] for row in there["groups"]}:
            found.add("not in the list")
        return found

    def _page(self, path: str) -> Any:
        address = f"http://127.0.0.1:{self.soak.ports['worker']}{path}"
        with urllib.request.urlopen(address, timeout=20) as answer:
            self.answers[str(answer.status)] += 1
            return json.loads(answer.read())

    def _read_summaries(self) -> None:
        for record in self.consumer.consume(5_000, 0.0):
            with suppress(ValueError, KeyError, TypeError):
                # Not the standard library's, which nested values stop.
                summary = orjson.loads(record.value() or b"")["summary"]
                if summary["worker"] and summary["cluster"] == "main":
                    self.ticks.setdefault(summary["partition"], []).append(summary["time"])

    def figures(self) -> dict[str, Any]:
        times = {p: sorted(set(found)) for p, found in sorted(self.ticks.items())}
        gaps = [b - a for found in times.values() for a, b in itertools.pairwise(found)]
        return {
            "looks": self.looks,
            "not_judged": dict(self.not_judged),
            "answers": dict(self.answers),
            "ticks": {p: len(found) for p, found in times.items()},
            "longest_between_ticks_s": max(gaps, default=0) / 1000,
        }


@contextmanager
def poison(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, dict[str, Fault]]]:
    """1,000 records of forty kinds on each of kagent's topics and 200 hostile groups; every other group is judged at every tick.

    Two findings are as they should be: the hostile groups have incidents, as they rebalance all the time, and the API shows deleted groups
    while the last message about them is on the topic.
    """

    @contextmanager
    def fault(soak: Soak) -> Iterator[None]:
        hostile, looks = Hostile(soak.running), Looks(soak)
        soak.running.eventually("all are judged", lambda: not looks.missed())
        looks.start()
        try:
            time.sleep(ROUND_S)
            _send(soak.running)
            with hostile.subscribed(), beside(hostile.round, ROUND_S), beside(lambda: soak.commit(3), 1.0):
                yield
            _send(soak.running)
            hostile.go_away()
        finally:
            looks.done.set()
            looks.join()
            print(json.dumps({"hostile": dict(hostile.answers), **looks.figures()}), flush=True)
            print(json.dumps(_counted(looks)), flush=True)

    with one_broker(folder) as broker:
        yield Stage(broker), {"poison": fault}


def _send(running: Any) -> None:
    producer = Producer({"bootstrap.servers": running.broker.bootstrap, "message.max.bytes": 1_000_000})
    kinds = forty_kinds({"type": "group", "cluster": "elsewhere", "group": "g", "source": 3, "time": 1})
    for topic in TOPICS:
        for at in range(RECORDS // len(kinds)):
            for place, data in enumerate(kinds.values()):
                key = NAMES[place % len(NAMES)].encode(errors="surrogatepass") + b"%d" % at
                producer.produce(f"kagent-{topic}", data, key)
            producer.flush(30)


def _counted(looks: Looks) -> dict[str, int]:
    """Records that were refused, by what and why."""
    address = f"http://127.0.0.1:{looks.soak.ports['worker']}/metrics"
    with urllib.request.urlopen(address, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    refused = (line for line in lines if line.startswith("kagent_records_refused_total{"))
    return {line.split("{")[1].split("}")[0]: int(float(line.rsplit(" ", 1)[1])) for line in refused}


FAULTS: dict[str, Made] = {"poison": poison}
