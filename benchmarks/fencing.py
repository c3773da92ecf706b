"""What readers see after a worker stood still.

    python benchmarks/fencing.py --seconds 5 17 30 90 --moments tick open resolve write --times 5

Two workers share two partitions. One stops itself (SIGSTOP) at a moment of its own code and goes on after some seconds, once for
each length and moment, while commits come all the while, and groups lose their only member and get it back. After every
standstill the lag changelog and the recommendations topic are read from their start: rows older than their predecessor, second ids
of an open incident, repeated transitions; at the end at read_uncommitted too. The oracle is the topics' own order. Events and members are written by this script; the
broker, the workers and the coordinator's answers are real.

With ``--brokers 2`` the second of two brokers is killed while the worker stands still, so that coordinators (of the group and of
transactions) and leaders move; it is back, and leads again what it led, before the next standstill. ``led``: how many partitions of
these topics it led when it was killed.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, encode
from kagent.embedded.broker import Broker, free_port
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.offsets import Record
from kagent.settings import load

GROUPS, PARTITIONS = 12, 2
LIFE_S, LEAVES_S, BACK_S = 48.0, 12.0, 32.0
"""How long a group is told of; when its member leaves, and is back. Then another group takes its place: a group that was
without members once is given twice as long the next time."""
POLICY = {
    "absent_after": 4,
    "hold": 3,
    "settle": 3,
    "cooldown": 2,
    "min_behind": 1,
    "update_every": 3,
    "cadence": 1,
}


# One of the workers: kagent, with a standstill built in.


def stand_still(armed: Path, moment: str) -> None:
    """Stop this process, once for each time that the file names this moment."""
    if armed.exists() and armed.read_text() == moment:
        armed.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)


def after(owner: Any, name: str, stop: Callable[..., None]) -> None:
    """Call ``stop`` with what the method returned and was given, whenever it has run."""
    method = getattr(owner, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        found = method(*arguments, **named)
        stop(*arguments)
        return found

    setattr(owner, name, wrapped)


def worker(armed: Path, arguments: list[str]) -> None:
    """Run Faust with a standstill, when it is asked for, in the middle of: a tick; an opening or resolution that is put and not
    committed; a write that is with the broker and not committed."""
    from aiokafka import AIOKafkaProducer

    from kagent.worker.evaluator import GroupEvaluator
    from kagent.worker.publisher import Publisher

    commit = AIOKafkaProducer.commit_transaction

    async def committed(self: Any) -> None:
        await self._message_accumulator.flush()
        stand_still(armed, "write")
        await commit(self)

    def said(publisher: Any, partition: int, key: str, messages: Any) -> None:
        for moment, status in (("open", "open"), ("resolve", "resolved")):
            if any(message.status == status for message in messages):
                stand_still(armed, moment)

    AIOKafkaProducer.commit_transaction = committed
    after(GroupEvaluator, "observe", lambda *_: stand_still(armed, "tick"))
    after(Publisher, "publish", said)
    sys.argv = ["faust", *arguments]
    runpy.run_module("faust", run_name="__main__")


# The measurement.


class Feed:
    """Records, commits and members of all groups, as a pipeline would tell of them."""

    def __init__(self, bootstrap: str) -> None:
        self.producer, self.stopped = (
            # Events go where Java's producer, and so the pipeline, puts their keys: a worker looks for lost groups there.
            Producer(
                {
                    "bootstrap.servers": bootstrap,
                    "linger.ms": 5,
                    "enable.idempotence": True,
                    "partitioner": "murmur2_random",
                }
            ),
            threading.Event(),
        )
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.made: dict[str, Any] = {}
        self.source = self.offset = 0
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped.wait(0.5):
            for partition in range(PARTITIONS):
                self.producer.produce("orders", b"x", partition=partition)
            self.offset += 1
            for group in range(GROUPS):
                self._tell(group)
            self._progress()
            self.producer.poll(0)

    def _tell(self, place: int) -> None:
        now, self.source = int(time.time() * 1000), self.source + 1
        lives, age_s = divmod(time.monotonic() - self.began + place * LIFE_S / GROUPS, LIFE_S)
        group = f"g{place}-{lives:.0f}"
        self._make(group)
        away = LEAVES_S <= age_s < BACK_S
        commits = (
            []
            if away
            else [TopicOffsets("orders", None, [0, 1], [self.offset] * 2, [now] * 2, [self.source] * 2)]
        )
        idle = TopicOffsets("quiet", None, [0], [self.source], [now], [self.source])  # a row of every round
        member = MembershipRecord(self.source, now, membership(group, [] if away else [0, 1]))
        event = GroupEvent("main", group, place % PARTITIONS, now, [*commits, idle], [], [member])
        self.producer.produce("kagent-group-events", encode(event), f"main/{group}".encode())

    def _make(self, group: str) -> None:
        """Let the coordinator know the group: it is asked before an incident opens."""
        if group not in self.made:
            offsets = [TopicPartition("orders", p, 0) for p in range(PARTITIONS)]
            self.made[group] = self.admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, offsets)]
            )

    def _progress(self) -> None:
        now, to = int(time.time() * 1000), [self.source] * PARTITIONS
        beat = Beat(
            "main",
            now,
            "run",
            1.0,
            False,
            list(range(PARTITIONS)),
            [max(0, s - GROUPS) for s in to],
            to,
            to,
            to,
        )
        for partition in range(PARTITIONS):
            self.producer.produce("kagent-group-events", encode(beat), b"main", partition)

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.producer.flush(30)


def membership(group: str, held: list[int]) -> dict[str, Any]:
    """A group's record with one member that holds these partitions, or without one."""
    subscription = {"version": 1, "topics": ["orders"], "userData": None, "ownedPartitions": []}
    member = {
        "memberId": f"m-{group}-7f3a",
        "groupInstanceId": None,
        "clientId": f"m-{group}",
        "clientHost": "/10.1.2.3",
        "sessionTimeout": 10_000,
        "subscription_decoded": subscription,
        "assignment_decoded": {"assignedPartitions": [{"topic": "orders", "partitions": held}]},
    }
    members = [member] if held else []
    about = {"protocolType": "consumer", "generation": 4 + (not held), "protocol": "range", "leader": ""}
    return Record("GroupMetadata", 2, 3, {"group": group}, {**about, "members": members}).to_json()


@dataclass
class OneBroker:
    """Nothing moves."""

    bootstrap: str
    replicas = 1

    def leave(self) -> dict[str, Any]:
        return {}

    def come_back(self) -> None:
        pass


class TwoBrokers:
    """The second one leaves, and what it led and coordinated moves to the first."""

    replicas = 2
    WATCHED = ("__consumer_offsets", "__transaction_state", "kagent-group-events", "kagent-lag-changelog")

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from tests.fixtures.two_brokers import start_pair

        self.pair = start_pair(folder)
        self.bootstrap = self.pair.bootstrap

    def leave(self) -> dict[str, Any]:
        led = {topic: sum(leader == 2 for leader in leaders) for topic, leaders in self._leaders().items()}
        self.pair.second.kill()
        return {"led": led}

    def come_back(self) -> None:
        """Until all replicas are in step again, and the second broker leads what it prefers to."""
        self.pair.second.start()
        admin = AdminClient({"bootstrap.servers": self.pair.first.bootstrap})

        def in_step() -> bool:
            found = admin.list_topics(timeout=30).topics.values()
            return all(len(part.isrs) == len(part.replicas) for t in found for part in t.partitions.values())

        wait("all replicas are in step", in_step, 120)
        admin.elect_leaders(ElectionType.PREFERRED, None).result(60)
        wait("the second broker leads again", lambda: 2 in self._leaders()["__consumer_offsets"], 60)

    def _leaders(self) -> dict[str, list[int]]:
        found = AdminClient({"bootstrap.servers": self.pair.first.bootstrap}).list_topics(timeout=30).topics
        return {
            topic: [part.leader for part in found[topic].partitions.values()]
            for topic in self.WATCHED
            if topic in found
        }


class Workers:
    """Two processes; the first can be told to stand still."""

    def __init__(self, folder: Path, bootstrap: str, replicas: int) -> None:
        self.folder, self.armed = folder, folder / "armed"
        settings = {
            "clusters": {"main": {"bootstrap": bootstrap}},
            "topics": {"partitions": PARTITIONS, "replication": replicas},
            "worker": {"tick": 2, "sample": 2, "state_interval": 3, "data": str(folder / "data")},
            "policy": POLICY,
        }
        self.config = folder / "kagent.yaml"
        self.config.write_text(json.dumps(settings))  # JSON is YAML
        self.processes = [self._start(number) for number in (0, 1)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        port = str(free_port())
        armed = self.armed if number == 0 else self.folder / "never"
        arguments = [
            "--datadir",
            str(self.folder / f"data{number}"),
            "-A",
            "kagent.app",
            "worker",
            "--web-port",
            port,
        ]
        with (self.folder / f"worker{number}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, __file__, "--worker", str(armed), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "KAGENT_CONFIG": str(self.config), "KAGENT_WORKER__WEB_PORT": port},
            )

    def stopped(self) -> bool:
        """Whether the first stands still (state T of proc(5))."""
        return Path(f"/proc/{self.processes[0].pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def resume(self) -> None:
        os.kill(self.processes[0].pid, signal.SIGCONT)

    def left(self) -> int:
        """How often the first met its fence and started anew."""
        return (self.folder / "worker0.log").read_text(errors="replace").count("starts anew")

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def read(bootstrap: str, topic: str, level: str) -> list[tuple[bytes | None, bytes | None]]:
    """All records of a topic: key and value."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": True, "isolation.level": level})
    count = len(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, p, 0) for p in range(count)])
    found, ended, until = [], 0, time.monotonic() + 120
    while ended < count and time.monotonic() < until:
        record = consumer.poll(1)
        if record is not None and record.error():
            ended += 1
        elif record is not None:
            found.append((record.key(), record.value()))
    consumer.close()
    return found


def older_rows(bootstrap: str, level: str) -> int:
    """Rows of the lag changelog with an older source offset than the row before them under their key."""
    latest: dict[bytes | None, int] = {}
    older = 0
    for key, value in read(bootstrap, "kagent-lag-changelog", level):
        if value:
            source = max(orjson.loads(value)["commits"]["source_offset"])
            # -1: what a coordinator was asked, before any record.
            older += source < latest.get(key, -1)
            latest[key] = max(source, latest.get(key, -1))
    return older


def transitions(bootstrap: str, level: str) -> tuple[int, int, int, int]:
    """Opened and resolved incidents, second ids of a group whose incident is open, repeated openings or resolutions."""
    opened: dict[str, str] = {}
    done: set[tuple[str, str]] = set()
    counts = {"open": 0, "resolved": 0, "second": 0, "repeated": 0}
    for _, value in read(bootstrap, "kagent-recommendations", level):
        message = orjson.loads(value or b"{}")
        status, group, id_ = message.get("status"), message.get("group"), message.get("id", "")
        if message.get("type") != "recommendation" or status not in ("open", "resolved"):
            continue
        counts[status] += 1
        counts["repeated"] += (status, id_) in done
        counts["second"] += status == "open" and opened.get(group, id_) != id_
        done.add((status, id_))
        opened = (
            {**opened, group: id_} if status == "open" else {g: i for g, i in opened.items() if g != group}
        )
    return counts["open"], counts["resolved"], counts["second"], counts["repeated"]


def wait(what: str, check: Callable[[], Any], deadline_s: float) -> None:
    until = time.monotonic() + deadline_s
    while not check():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(1)


def both_watch(bootstrap: str, since: float) -> bool:
    """Whether the latest state message is of after ``since``, young, and tells of two workers that watch."""
    states = [
        orjson.loads(v)
        for k, v in read(bootstrap, "kagent-recommendations", "read_committed")
        if v and k == b"main"
    ]
    said = states[-1] if states else {}
    young = said.get("time", 0) > max(since, time.time() - 20) * 1000
    return bool(young and said["status"] == "watching" and said["workers"] == 2)


def prepared(bootstrap: str, replicas: int) -> None:
    """Topics as new."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def left() -> list[str]:
        return [name for name in admin.list_topics(timeout=60).topics if not name.startswith("__")]

    if left():
        for future in admin.delete_topics(left(), operation_timeout=60).values():
            future.result(90)
        wait("old topics are gone", lambda: not left(), 90)
    for name in ("orders", "quiet"):
        admin.create_topics([NewTopic(name, PARTITIONS, replicas)])[name].result(60)


def matrix(brokers: OneBroker | TwoBrokers, standstills: list[tuple[str, float]]) -> Iterator[dict[str, Any]]:
    """Stand still at each moment for so long, one after the other; what readers see after each, and at the end."""
    bootstrap = brokers.bootstrap
    prepared(bootstrap, brokers.replicas)
    workers = Workers(Path(tempfile.mkdtemp(prefix="kagent-fencing-")), bootstrap, brokers.replicas)
    settings = load(workers.config)
    ensure(Admin(settings.home_cluster("main")), settings.topics)
    feed = Feed(bootstrap)
    try:
        wait("both workers watch", lambda: both_watch(bootstrap, 0.0), 400)
        for moment, seconds in standstills:
            yield {"moment": moment, "seconds": seconds, **stood_still(brokers, workers, moment, seconds)}
        time.sleep(LIFE_S)  # what was open then is resolved
    finally:
        feed.stop()
        workers.end()
    for level in ("read_committed", "read_uncommitted"):
        yield {"standstills": len(standstills), "level": level, **seen(bootstrap, level)}


def stood_still(
    brokers: OneBroker | TwoBrokers, workers: Workers, moment: str, seconds: float
) -> dict[str, Any]:
    """One standstill: seconds until both workers watch again, whether the stopped one started anew, and all that readers see so far."""
    bootstrap, left = brokers.bootstrap, workers.left()
    workers.armed.write_text(moment)
    wait(f"a worker stands still in the middle of: {moment}", workers.stopped, 300)
    moved = brokers.leave()
    time.sleep(seconds)
    workers.resume()
    resumed = time.time()
    wait("both workers watch again", lambda: both_watch(bootstrap, resumed), 400)
    again_s = round(time.time() - resumed)
    brokers.come_back()
    return {
        **moved,
        "again_s": again_s,
        "started_anew": workers.left() - left,
        **seen(bootstrap, "read_committed"),
    }


def seen(bootstrap: str, level: str) -> dict[str, int]:
    """What a reader at this isolation level finds in both topics."""
    opened, resolved, second, repeated = transitions(bootstrap, level)
    return {
        "older_rows": older_rows(bootstrap, level),
        "opened": opened,
        "resolved": resolved,
        "second_ids": second,
        "repeated": repeated,
    }


@contextmanager
def brokers_of(given: str | None, count: int) -> Iterator[OneBroker | TwoBrokers]:
    if given:
        yield OneBroker(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        if count == 1:
            with Broker(Path(folder)) as running:
                yield OneBroker(running.bootstrap)
        else:
            two = TwoBrokers(Path(folder))
            try:
                yield two
            finally:
                two.pair.stop()


def main() -> None:
    """Measure, or be one of the workers."""
    if sys.argv[1:2] == ["--worker"]:
        worker(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, nargs="+", default=[5, 17, 30, 90])
    parser.add_argument("--moments", nargs="+", default=["tick", "open", "resolve", "write"])
    parser.add_argument("--times", type=int, default=1, help="standstills a length and moment")
    parser.add_argument("--bootstrap", help="a broker without other topics, instead of one of its own")
    parser.add_argument("--brokers", type=int, choices=(1, 2), default=1)
    options = parser.parse_args()
    with brokers_of(options.bootstrap, options.brokers) as brokers:
        lengths = [length for _ in range(options.times) for length in options.seconds]
        standstills = [(moment, length) for length in lengths for moment in options.moments]
        for found in matrix(brokers, standstills):
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
