"""What kagent costs: `python benchmarks/footprint.py [--groups 20 200] [--seconds 60]`.

For each number of groups: an embedded broker, one topic with inflow, and so many real consumer groups (one aiokafka
member each, all partitions, a commit every 5 s); beside them ``kagent up`` with its usual settings. When the state
message says that all groups are judged, the process tree is watched for ``--seconds``: greatest proportional memory
(PSS, so that shared pages count once), processor time, and the bytes that kagent's own topics grew by. Prints one row
of a Markdown table a size, the memory by part below it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kagent.client.client import current
from kagent.contract.recommendation import State
from kagent.embedded.broker import Broker, free_port
from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.settings import Cluster

PARTITIONS = 8
RATE = 40
"""Records a second of the one topic."""
JOINING = 20
"""How many members join at a time."""
START_WITHIN = 400.0
HEADER = (
    "| groups | offsets committed/s | ready after | memory | cores | processes | topics | written, raw |\n"
    "|---:|---:|---:|---:|---:|---:|---:|---:|"
)
MEMBERS = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer
bootstrap, count, joining = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

async def member(n, door):
    consumer = AIOKafkaConsumer("load", bootstrap_servers=bootstrap, group_id=f"group-{n:05d}", client_id=f"member-{n}",
                                auto_commit_interval_ms=5000, fetch_max_wait_ms=2000, session_timeout_ms=45000)
    async with door:
        await consumer.start()
    async for _ in consumer:
        pass

async def main():
    door = asyncio.Semaphore(joining)
    await asyncio.gather(*(member(n, door) for n in range(count)))

asyncio.run(main())
"""
INFLOW = """
import sys, time
from confluent_kafka import Producer
producer, n = Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 50}), 0
while True:
    producer.produce("load", b"x" * 100, partition=n % int(sys.argv[3]))
    producer.poll(0)
    n += 1
    time.sleep(1 / float(sys.argv[2]))
"""


@dataclass(slots=True)
class Watched:
    """What was seen of a process tree: greatest memory in all and by part, and processor time by process."""

    root: psutil.Process
    most: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    processes: int = 0
    seconds: dict[tuple[int, float], float] = field(default_factory=dict)

    def look(self) -> None:
        """Take a sample; a process that ends between two calls is passed over."""
        now: Counter[str] = Counter()
        tree = [self.root, *self.root.children(recursive=True)]
        for process in tree:
            try:
                now[part(process.cmdline())] += int(process.memory_full_info().pss)
                times = process.cpu_times()
                self.seconds[(process.pid, process.create_time())] = times.user + times.system
            except psutil.Error:
                continue
        self.processes = max(self.processes, len(tree))
        if now.total() > self.most:
            self.most, self.parts = now.total(), now

    def cpu(self) -> float:
        """Processor seconds of all processes ever seen."""
        return sum(self.seconds.values())


def part(command: list[str]) -> str:
    """Which part of kagent a command line belongs to."""
    line = " ".join(command)
    if "SparkSubmit" in line:
        return "Spark (JVM)"
    if "pyspark.daemon" in line:
        return "Spark's Python workers"
    if "faust" in line:
        return "worker"
    return "pipeline's driver" if " pipeline" in line else "supervisor"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, nargs="*", default=[20, 200])
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    print(HEADER, flush=True)
    for count in args.groups:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), count, args.seconds)
    return 0


def measure(folder: Path, count: int, seconds: float) -> None:
    """One size on a broker of its own."""
    with Broker(folder / "broker", extra={"offsets.topic.num.partitions": "50"}) as broker:
        admin = Admin(Cluster(bootstrap=broker.bootstrap))
        assert not admin.create([NewTopic("load", PARTITIONS, 1)])
        members = run("-c", MEMBERS, broker.bootstrap, str(count), str(JOINING))
        inflow = run("-c", INFLOW, broker.bootstrap, str(RATE), str(PARTITIONS))
        try:
            all_commit(admin, count)
            kagent = up(folder, broker.bootstrap)
            try:
                report(admin, broker, count, seconds, kagent)
            finally:
                end(kagent)
        finally:
            end(members)
            end(inflow)


def run(*arguments: str) -> subprocess.Popen[bytes]:
    """A Python process of ours that says nothing."""
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def up(folder: Path, bootstrap: str) -> subprocess.Popen[bytes]:
    """``kagent up`` with its usual settings, its files in ``folder``."""
    places = {
        "KAGENT_PIPELINE__CHECKPOINT": str(folder / "checkpoint"),
        "KAGENT_WORKER__DATA": str(folder / "worker"),
        "KAGENT_WORKER__WEB_PORT": str(free_port()),
    }
    argv = [sys.executable, "-m", "kagent", "--bootstrap", bootstrap, "up"]
    with (folder / "kagent.log").open("wb") as log:
        return subprocess.Popen(argv, env={**os.environ, **places}, stdout=log, stderr=subprocess.STDOUT)


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop it in its own way, and kill it if it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def all_commit(admin: Admin, count: int) -> None:
    """Wait until every group has committed."""
    names = [f"group-{n:05d}" for n in range(count)]
    until = time.monotonic() + START_WITHIN
    patient = Admin(admin.cluster, deadline=5)
    while time.monotonic() < until:
        try:
            if all(patient.committed(names).values()):
                return
        except KafkaError:
            pass  # the coordinators of a new cluster take a moment
        time.sleep(2)
    raise SystemExit(f"not all {count} groups have committed within {START_WITHIN:.0f} s")


def report(admin: Admin, broker: Broker, count: int, seconds: float, kagent: subprocess.Popen[bytes]) -> None:
    """Wait until all is judged, watch, and print the row."""
    watched, began = Watched(psutil.Process(kagent.pid)), time.monotonic()
    cluster = Cluster(bootstrap=broker.bootstrap)
    while not judged(cluster, count):
        watched.look()
        if time.monotonic() - began > START_WITHIN:
            raise SystemExit(f"not all {count} groups were judged within {START_WITHIN:.0f} s")
        time.sleep(1)
    ready = time.monotonic() - began
    cpu, bytes_, commits, start = watched.cpu(), written(broker), offsets(admin), time.monotonic()
    while time.monotonic() - start < seconds:
        watched.look()
        time.sleep(1)
    took = time.monotonic() - start
    topics = [name for name in admin.topic_names() if name.startswith("kagent")]
    print(
        f"| {count:,} | {(offsets(admin) - commits) / took:,.0f} | {ready:.0f} s | {watched.most / 2**20:,.0f} MB "
        f"| {(watched.cpu() - cpu) / took:.2f} | {watched.processes} | {len(topics)} "
        f"| {(written(broker) - bytes_) / took / 1000:,.1f} kB/s |",
        flush=True,
    )
    parts = ", ".join(f"{name} {size / 2**20:,.0f} MB" for name, size in watched.parts.most_common())
    print(f"<!-- {parts} -->", flush=True)


def judged(cluster: Cluster, count: int) -> bool:
    """Whether the state message says that so many groups are judged and none is blind."""
    try:
        found = asyncio.run(current(cluster)).values()
    except Exception as error:  # the topic is not there yet
        print(f"<!-- waiting: {error} -->", file=sys.stderr)
        return False
    return any(isinstance(s, State) and s.judged >= count and s.status == "watching" for s in found)


def written(broker: Broker) -> int:
    """Bytes in the logs of kagent's own topics, changelogs included; nothing is compacted in so short a run."""
    return sum(f.stat().st_size for f in (broker.folder / "data").glob("kagent*/*.log"))


def offsets(admin: Admin) -> int:
    """Records ever written to __consumer_offsets."""
    source = "__consumer_offsets"
    return sum(admin.log_end([(source, p) for p in range(admin.topic_names()[source])]).found.values())


if __name__ == "__main__":
    sys.exit(main())
