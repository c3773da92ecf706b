"""What it costs to sample the log ends of many partitions: `python benchmarks/log_ends.py [--partitions 20000]`.

On the embedded broker, which holds so many real partitions: seconds and processor seconds of this process for a worker's sample
(log end, log start and last stable offset of each), by kagent's one request per leader and by librdkafka in chunks; and for the
description of the topics, which is asked every 30 s. ``--simulate N`` adds what a sample of N partitions costs without a
broker: the requests written and an answer of that size read.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kagent.embedded.broker import Broker
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.kafka.log_offsets import ANSWERED, CHUNK, ListOffsetsAnswer, ListOffsetsQuestion
from kagent.settings import Cluster
from kagent.worker import log_end_sampler
from kagent.worker.log_end_sampler import WANTED, Sampler

PER_TOPIC = 100
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--simulate", type=int, default=100_000)
    args = parser.parse_args()
    print(f"{'what':<44}{'partitions':>11}{'seconds':>9}{'CPU s':>8}", flush=True)
    simulated(args.simulate)
    extra = {"log.index.size.max.bytes": "4096", "log.cleaner.enable": "false"}
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder), extra=extra, heap="2g").start(deadline=600)
        try:
            measured(Admin(Cluster(bootstrap=broker.bootstrap), deadline=60), args.partitions)
        finally:
            broker.stop()


def measured(admin: Admin, partitions: int) -> None:
    """A sample of the broker's partitions, both ways."""
    names = [f"load-{n:04d}" for n in range(partitions // PER_TOPIC)]
    for at in range(0, len(names), 10):
        assert not admin.create([NewTopic(name, PER_TOPIC, 1) for name in names[at : at + 10]])
    sampler = Sampler(admin)
    until = time.monotonic() + 600
    while sum(-1 not in topic.leaders for topic in admin.topics(names).values()) < len(names):
        assert time.monotonic() < until, "not all partitions have a leader"
        time.sleep(2)
    report("topics described", partitions, lambda: sampler.describe(names), 1)
    report("one request per leader", partitions, lambda: sampler.sample(names))
    log_end_sampler.AT_ONCE_FROM = partitions + 1
    report("librdkafka, 500 partitions a request", partitions, lambda: sampler.sample(names), 2)


def simulated(partitions: int) -> None:
    """Requests and answers of a size that this machine's broker cannot hold."""
    names = [f"load-{n:04d}" for n in range(partitions // PER_TOPIC)]
    numbers = np.arange(PER_TOPIC)
    rows = np.zeros(PER_TOPIC, ANSWERED)
    rows["partition"] = numbers
    each = [struct.pack(f">h{len(n)}si", len(n), n.encode(), PER_TOPIC) + rows.tobytes() for n in names]
    answer = struct.pack(">ii", 0, len(names)) + b"".join(each)

    def run() -> None:
        for wanted in WANTED:
            ListOffsetsQuestion(wanted, dict.fromkeys(names, numbers)).encode()
            ListOffsetsAnswer.decode(answer)

    requests = -(-partitions // CHUNK)
    report(f"written and read alone ({requests} requests, 3 times)", partitions, run)


def report(what: str, partitions: int, run: Callable[[], Any], rounds: int = ROUNDS) -> None:
    """The best of the rounds."""
    took = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = min(took)
    print(f"{what:<44}{partitions:>11,}{wall:>9.2f}{cpu:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
