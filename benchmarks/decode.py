"""Offset commits decoded per second and core: whole Arrow columns beside Kafka's own deserialiser, in one run.

    python benchmarks/decode.py [--records 1000000] [--rounds 15] [--core 0]

Both get the same records (versions 1, 3 and 4, a few tombstones, metadata from none to 200 bytes, 3,000 groups) on one core, turn
about: Java (kafka-group-coordinator's record serde, from Maven Central) all its rounds in one warm process, then Python. Figures
are the median of the second half of the rounds. ``collapsed``: every key once, as after the pipeline's collapse.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from kagent.embedded.jars import resolve
from kagent.embedded.java import java
from kagent.offsets.columns import decode_commits, record_types

SERDE = "org.apache.kafka:kafka-group-coordinator:4.3.0"
Pair = tuple[bytes, bytes | None]


def commits(n: int, distinct: bool, seed: int = 1) -> Iterator[Pair]:
    """n commits: 20 % version 1, 30 % version 3, 49 % version 4, 1 % tombstones; metadata in 3 of 10."""
    rng = random.Random(seed)
    groups = [f"team-{i % 37}-service-{i}" for i in range(3000)]
    topics = [(f"topic.{i}.events", rng.randbytes(16)) for i in range(400)]
    for i in range(n):
        at = i // 333 % 3000 if distinct else rng.randrange(3000)
        topic, topic_id = topics[(at * 7 + rng.randrange(3)) % 400]
        yield key(groups[at], topic, i if distinct else rng.randrange(24)), value(rng, topic_id, i)


def key(group: str, topic: str, partition: int) -> bytes:
    g, t = group.encode(), topic.encode()
    return struct.pack(f">hh{len(g)}sh{len(t)}si", 1, len(g), g, len(t), t, partition)


def value(rng: random.Random, topic_id: bytes, i: int) -> bytes | None:
    text = b"" if rng.random() < 0.7 else b"m" * rng.choice((5, 30, 200))
    offset, now, kind = rng.randrange(1 << 40), 1_700_000_000_000 + i, rng.random()
    if kind < 0.01:
        return None
    if kind < 0.2:
        return struct.pack(f">hqh{len(text)}sqq", 1, offset, len(text), text, now, now + 86_400_000)
    if kind < 0.5:
        return struct.pack(f">hqih{len(text)}sq", 3, offset, 5, len(text), text, now)
    size = len(text) + 1
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return (
        struct.pack(">hqi", 4, offset, 5)
        + length
        + text
        + struct.pack(">q", now)
        + b"\x01\x00\x10"
        + topic_id
    )


def write(path: Path, pairs: list[Pair]) -> None:
    """The records as Decode.java reads them."""
    with path.open("wb") as file:
        file.write(struct.pack(">i", len(pairs)))
        for part in (part for pair in pairs for part in pair):
            file.write(struct.pack(">i", -1 if part is None else len(part)) + (part or b""))


def java_rate(pairs: list[Pair], rounds: int, core: int) -> float:
    """Records per second of Kafka's serde, warmed up."""
    jars = os.pathsep.join(map(str, resolve(SERDE)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        write(path, pairs)
        command = [
            java(),
            "-Xmx3g",
            "-XX:+UseSerialGC",
            "-cp",
            jars,
            str(Path(__file__).with_name("Decode.java")),
        ]
        pinned = ["taskset", "-c", str(core), *command, str(path), str(rounds)]
        out = subprocess.run(pinned, check=True, capture_output=True, text=True).stdout
    return len(pairs) / steady([int(line.split()[0]) / 1e9 for line in out.splitlines()])


def columns_rate(pairs: list[Pair], rounds: int, batch: int) -> float:
    """Records per second of kagent.offsets.columns, in batches of this many rows."""
    keys, values = (pa.array(column, pa.binary()) for column in zip(*pairs, strict=True))

    def run() -> None:
        for at in range(0, len(keys), batch):
            some = keys[at : at + batch]
            record_types(some)
            assert not decode_commits(some, values[at : at + batch]).errors

    return len(pairs) / steady([timed(run) for _ in range(rounds)])


def timed(run: Callable[[], None]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def steady(seconds: list[float]) -> float:
    return statistics.median(seconds[len(seconds) // 2 :])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--core", type=int, default=0)
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.core})
    print(f"{'records':<12}{'reader':<28}{'M records/s':>12}{'× Java':>9}")
    for name, distinct in (("mixed", False), ("collapsed", True)):
        pairs = list(commits(args.records, distinct))
        peer = java_rate(pairs, args.rounds, args.core)
        print(f"{name:<12}{'Java':<28}{peer / 1e6:>12.2f}{1:>9.2f}")
        for batch in (50_000, args.records):
            rate = columns_rate(pairs, args.rounds, batch)
            print(
                f"{name:<12}{f'columns, batches of {batch:,}':<28}{rate / 1e6:>12.2f}{rate / peer:>9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
