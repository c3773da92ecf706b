"""How fast the pipeline catches up, and how late an event is: `python benchmarks/pipeline.py [--records 5000000]`.

A backlog of offset records is made on the embedded broker, byte for byte as its coordinator writes them. Then, in
processes of their own with 1 and 2 cores: the first query of the JVM (cold, from process start) and the following ones
(warm), each from an empty checkpoint. CPU and memory are those of the whole process tree. With ``--kminion BINARY`` and
``--burrow BINARY`` (`go build` of either) these read the same topic on the same broker in the same run, from process start:
KMinion to its own readiness, Burrow until it tells the last group's last commit. ``--steady SECONDS`` measures commit →
event while commits go on.

``--double`` makes a second backlog with twice the commits on the same keys, and a third with twice the keys. ``--task`` does
that without broker and Spark, in CPU seconds of what one task's Python does: what a record costs, and what a key.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import numpy as np
import psutil
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.contract.admission import decode_all
from kagent.contract.events import GroupEvent
from kagent.embedded.broker import Broker, free_port
from kagent.group_key import source_partition
from kagent.kafka.admin import Admin
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.build import Target
from kagent.pipeline.stream import per_task
from kagent.settings import Cluster

PARTITIONS = 100
SOURCES = 8
ARROW_ROWS = 50_000

RUN = """
import json, sys, time, tempfile, logging, psutil
began = time.time()
def cpu():
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(t.user + t.system for t in (p.cpu_times() for p in tree))
from kagent.pipeline.stream_service import Pipeline
from kagent.pipeline.spark_session import session
from kagent.settings import load
bootstrap, cores, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = load(bootstrap=bootstrap)
spark = session(settings.pipeline, f"local[{cores}]")
for n in range(rounds):
    folder, seen = tempfile.mkdtemp(), []
    pipeline = Pipeline(settings, "main", settings.clusters["main"], available_now=True, checkpoint=folder, on_batch=seen.append)
    source = pipeline.prepared()
    start, used = time.time(), 0 if n == 0 else cpu()
    pipeline.run_on(spark, source)
    took = time.time() - (began if n == 0 else start)
    rows = sum(p["numInputRows"] for p in seen)
    kept = sum((p["observedMetrics"]["kagent"]["records"] or 0) for p in seen)
    print(json.dumps({"round": n, "seconds": took, "rows": rows, "kept": kept, "batches": len(seen), "cpu": cpu() - used}), flush=True)
spark.stop()
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=30_000)
    parser.add_argument("--cores", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kminion", type=Path, help="A KMinion binary to run beside.")
    parser.add_argument("--burrow", type=Path, help="A Burrow binary to run beside.")
    parser.add_argument("--steady", type=float, default=0, help="Seconds of steady commits.")
    parser.add_argument("--rate", type=int, default=50_000, help="Commits a second in the steady state.")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--task", action="store_true", help="Only the Python of one task, in CPU seconds.")
    args = parser.parse_args()
    if args.task:
        for records, keys in ((1_000_000, 50_000), (2_000_000, 50_000), (1_000_000, 100_000)):
            task(records, keys)
        return 0
    backlogs = [(args.records, args.keys)]
    if args.double:
        backlogs += [(2 * args.records, args.keys), (args.records, 2 * args.keys)]
    for records, keys in backlogs:
        with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as running:
            prepare(running.bootstrap)
            began = time.time()
            made = fill(running.bootstrap, records, keys)
            print(f"\nbacklog: {made:,} commits of {keys:,} keys in {time.time() - began:.0f} s", flush=True)
            for cores in args.cores:
                catch_up(running.bootstrap, cores, args.rounds)
            if args.kminion:
                kminion(args.kminion, running.bootstrap, Path(folder), made)
            if args.burrow:
                burrow(args.burrow, running.bootstrap, Path(folder), made, keys)
    if args.steady:
        with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as running:
            steady(running.bootstrap, args.steady, args.rate, args.keys)
    return 0


def broker(folder: Path) -> Broker:
    return Broker(folder / "broker", extra={"offsets.topic.num.partitions": str(SOURCES)}, heap="1g")


def fill(
    bootstrap: str, records: int, keys: int, rate: float | None = None, until: threading.Event | None = None
) -> int:
    """Write so many commits, the groups in turn, 100 partitions at once; at most ``rate`` a second.

    They are byte for byte what the coordinator writes for a commit request, in batches of its size, where it would.
    """
    producer = Producer({
        "bootstrap.servers": bootstrap,
        "client.id": "__admin_client",  # the one that brokers let write to internal topics
        "batch.num.messages": PARTITIONS,
        "linger.ms": 5,
        "queue.buffering.max.messages": 200_000,
        "log_level": 0,
    })  # fmt: skip
    groups = [_keys(f"group-{n:05d}") for n in range(max(1, keys // PARTITIONS))]
    made, began = 0, time.time()
    while made < records and not (until and until.is_set()):
        at, names = groups[(made // PARTITIONS) % len(groups)]
        offset = made // (len(groups) * PARTITIONS) + 1
        value = struct.pack(">hqihq", 3, offset, -1, 0, int(time.time() * 1000))
        for name in names:
            producer.produce(OFFSETS_TOPIC, value, key=name, partition=at)
        made += PARTITIONS
        while producer.poll(0) or len(producer) > 150_000:
            producer.poll(0.01)
        if rate:
            time.sleep(max(0.0, began + made / rate - time.time()))
    assert producer.flush(60) == 0
    return made


def _keys(group: str) -> tuple[int, list[bytes]]:
    """The group's partition of the offsets topic, and its keys."""
    name = group.encode()
    head = struct.pack(f">hh{len(name)}sh4s", 1, len(name), name, 4, b"load")
    return source_partition(group, SOURCES), [head + struct.pack(">i", p) for p in range(PARTITIONS)]


def task(records: int, keys: int, rounds: int = 5) -> None:
    """Collapse, decode and build on batches as Spark hands them over; the best of the rounds."""
    names = [name for n in range(keys // PARTITIONS) for name in _keys(f"group-{n:05d}")[1]]
    batches = []
    for first in range(0, records, ARROW_ROWS):
        offsets = np.arange(first, min(first + ARROW_ROWS, records))
        values = [struct.pack(">hqihq", 3, n, -1, 0, 1_760_000_000_000) for n in offsets.tolist()]
        columns = {
            "key": pa.array([names[n % keys] for n in offsets.tolist()], pa.binary()),
            "value": pa.array(values, pa.binary()),
            "partition": pa.array(np.zeros(len(offsets), np.int32)),
            "offset": pa.array(offsets),
            "time": pa.array(np.full(len(offsets), 1_760_000_000_000)),
        }
        batches.append(pa.RecordBatch.from_pydict(columns))
    run, spent = per_task(Target("main", "events", "letters", "kagent")), []
    for _ in range(rounds):
        began = time.process_time()
        size = sum(sum(len(v) for v in batch["value"].to_pylist()) for batch in run(iter(batches)))
        spent.append(time.process_time() - began)
    best = min(spent)
    print(
        f"  {records:>9,} commits of {keys:>7,} keys: {best:.2f} CPU s ({records / best:,.0f} commits/s a core), "
        f"{size / 2**20:.1f} MB of events",
        flush=True,
    )


def prepare(bootstrap: str) -> None:
    """The topic that is committed on, and one commit by the coordinator, which makes the offsets topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("load", PARTITIONS, 1)])["load"].result(60)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first"})
    consumer.commit(offsets=[TopicPartition("load", 0, 1)], asynchronous=False)
    consumer.close()


def catch_up(bootstrap: str, cores: int, rounds: int) -> None:
    """Cold and warm rounds in one process, and the memory of its whole tree."""
    argv = [sys.executable, "-c", RUN, bootstrap, str(cores), str(rounds)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) as process:
        peak = Peak(process.pid)
        peak.start()
        assert process.stdout is not None
        for line in process.stdout:
            found = json.loads(line)
            kind = "cold, from process start" if found["round"] == 0 else "warm"
            print(
                f"  {cores} core(s), {kind:24} {found['rows'] / found['seconds']:>10,.0f} records/s "
                f"({found['seconds']:.1f} s, {found['cpu']:.1f} CPU s, {found['batches']} batches, collapse {found['rows'] / max(1, found['kept']):.1f}:1)",
                flush=True,
            )
        process.wait()
        print(
            f"  {cores} core(s), peak memory of JVM and Python workers {peak.done() / 2**20:,.0f} MB",
            flush=True,
        )


class Peak(threading.Thread):
    """The greatest sum of proportional memory over a process tree."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.most, self.stop = pid, 0, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.5):
            try:
                root = psutil.Process(self.pid)
                self.most = max(self.most, sum(_memory(p) for p in [root, *root.children(recursive=True)]))
            except psutil.NoSuchProcess:
                return

    def done(self) -> int:
        self.stop.set()
        return self.most


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def kminion(binary: Path, bootstrap: str, folder: Path, records: int) -> None:
    """KMinion from process start until it says that it has caught up."""
    port, config = free_port(), folder / "kminion.yaml"
    config.write_text(
        f"kafka: {{brokers: ['{bootstrap}']}}\nexporter: {{port: {port}}}\n"
        "minion: {consumerGroups: {scrapeMode: offsetsTopic}}\n"
    )
    env = {**os.environ, "CONFIG_FILEPATH": str(config)}
    peer("KMinion", [str(binary)], env, records, lambda: _asked(f"http://127.0.0.1:{port}/ready") is not None)


def burrow(binary: Path, bootstrap: str, folder: Path, records: int, keys: int) -> None:
    """Burrow from process start until it tells what the group that committed last has committed."""
    port, home = free_port(), folder / "burrow"
    home.mkdir(exist_ok=True)
    (home / "burrow.toml").write_text(f"""
[general]
pidfile="{home}/burrow.pid"
[logging]
level="error"
[client-profile.p]
kafka-version="2.0.0"
client-id="burrow"
[cluster.local]
class-name="kafka"
client-profile="p"
servers=["{bootstrap}"]
topic-refresh=60
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
client-profile="p"
servers=["{bootstrap}"]
offsets-topic="__consumer_offsets"
start-latest=false
[storage.default]
class-name="inmemory"
workers=20
intervals=15
expire-group=604800
min-distance=0
[httpserver.default]
address="127.0.0.1:{port}"
""")
    groups = max(1, keys // PARTITIONS)
    request = records // PARTITIONS - 1
    group, offset = f"group-{request % groups:05d}", request // groups + 1
    url = f"http://127.0.0.1:{port}/v3/kafka/local/consumer/{group}"

    def reached() -> bool:
        found = json.loads(_asked(url) or b"{}").get("topics") or {}
        newest = [p["offsets"][-1] for p in found.get("load", ()) if p["offsets"]]
        return len(newest) == PARTITIONS and all(n and n["offset"] >= offset for n in newest)

    peer("Burrow", [str(binary), "--config-dir", str(home)], dict(os.environ), records, reached)


def peer(name: str, argv: list[str], env: dict[str, str], records: int, ready: Callable[[], bool]) -> None:
    """Run it from process start until it is ready."""
    began = time.time()
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not ready():
            if process.poll() is not None or time.time() - began > 300:
                print(f"  {name} did not catch up", flush=True)
                process.kill()
                return
            time.sleep(0.05)
        took, known = time.time() - began, psutil.Process(process.pid)
        memory, cpu = known.memory_info().rss, sum(known.cpu_times()[:2])
        process.terminate()
    print(
        f"  {name:8}, from process start       {records / took:>10,.0f} records/s ({took:.1f} s, {cpu:.1f} CPU s, {memory / 2**20:,.0f} MB)",
        flush=True,
    )


def _asked(url: str) -> bytes | None:
    """The answer, if it is one."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bytes(answer.read()) if answer.status == 200 else None
    except OSError:
        return None


def steady(bootstrap: str, seconds: float, rate: int, keys: int) -> None:
    """Commits at a rate, the pipeline beside them, and how old a commit is when its event can be read."""
    prepare(bootstrap)
    fill(bootstrap, keys, keys)
    stop = threading.Event()
    argv = [
        sys.executable,
        "-m",
        "kagent",
        "--bootstrap",
        bootstrap,
        "pipeline",
        "--checkpoint",
        tempfile.mkdtemp(),
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _until_beats(bootstrap)
        made: list[int] = []
        feeder = threading.Thread(target=lambda: made.append(fill(bootstrap, 10**12, keys, rate, stop)))
        began = time.time()
        feeder.start()
        delays = _delays(bootstrap, seconds)
        stop.set()
        feeder.join(60)
        took = time.time() - began
        process.terminate()
        process.wait(60)
    cuts = quantiles(delays, n=100)
    print(
        f"\nsteady: {made[0] / took:,.0f} commits/s for {took:.0f} s; commit → event p50 {cuts[49]:.2f} s, p95 {cuts[94]:.2f} s "
        f"(n={len(delays):,} events; feeder, broker, pipeline and reader on the same cores)",
        flush=True,
    )


def _until_beats(bootstrap: str) -> None:
    admin = Admin(Cluster(bootstrap=bootstrap))
    end = time.time() + 120
    while time.time() < end:
        if "kagent-group-events" in admin.topic_names() and sum(
            admin.log_end([("kagent-group-events", p) for p in range(8)]).found.values()
        ):
            time.sleep(5)
            return
        time.sleep(1)
    raise SystemExit("the pipeline did not start")


def _delays(bootstrap: str, seconds: float) -> list[float]:
    """Seconds from the oldest commit in an event to our reading it, after a while of warming up."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "kagent-bench", "fetch.wait.max.ms": 10})
    ends = Admin(Cluster(bootstrap=bootstrap)).log_end([("kagent-group-events", p) for p in range(8)]).found
    reader.assign([TopicPartition(t, p, o) for (t, p), o in ends.items()])
    delays: list[float] = []
    began = time.time()
    while time.time() - began < seconds:
        message = reader.poll(0.2)
        if message is None or message.error():
            continue
        read_s = time.time()  # before decoding: the worker's own decoding is not the pipeline's delay
        for event in decode_all(message.value()):
            if isinstance(event, GroupEvent) and event.offsets and read_s - began > seconds / 4:
                delays.append(read_s - min(min(o.time) for o in event.offsets) / 1000)
    reader.close()
    return delays


if __name__ == "__main__":
    sys.exit(main())
