"""Every strategy beside the Java code it stands for, on the same groups, in one run.

    python benchmarks/assign.py [--case NAME …] [--strategy NAME …] [--seconds S]

Java is started from Maven jars (kafka-clients and the group coordinator 4.1.0, Cerner's common-kafka 2.4; the lag-based
assignor is not published: its rule stands as a plain loop in KafkaPeer.java). Both sides repeat each call until a time is
used up, and the best run counts, in processor time of the calling thread (Java's compiler and collector threads do not
count): other work on the machine then weighs least.

The first ratio is of the assignment alone, with the input ready-made: for Java Subscription objects (with the bytes of the
sticky assignor's user data) and PartitionInfo lists, for kagent a Scenario. "input" is what it takes to make that out of a
group's rows (members, the topics of each, what each holds): the second ratio counts it on both sides. kagent's rows are those
of a worker, ``Roster``, whose columns are made once per change of the group's membership (1.6 ms for 2,100 members, not counted
here). The digests of the two results are compared, so the table is also a check at full size; "≠" marks a
difference. Memory: Java, peak of the heap pools in the call; kagent, peak of what Python and numpy allocate in the call.

The ratios are Java ÷ kagent: above 1 kagent is faster.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kagent.embedded.jars import resolve
from kagent.embedded.java import java
from kagent.groups.group import GroupView, MemberView
from kagent.lag.membership import Roster
from kagent.recommend.alternatives import scenario_from
from kagent.strategies import Assignment, Scenario, assign

KAFKA = "org.apache.kafka:kafka-group-coordinator:4.1.0"
FAIR = "com.cerner.common.kafka:common-kafka:2.4"
SOURCES = Path(__file__).parent / "java"
STRATEGIES = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "kip848-uniform",
    "kip848-range",
    "lag",
    "fair",
)
SLOW_IN_JAVA = ("lag", "fair")
MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Case:
    """A group: so many topics of so many partitions, so many members, and who subscribes to what."""

    name: str
    topics: int
    partitions: int
    members: int
    kind: str = "same"


CASES = (
    Case("2,100 × 2,100", 10, 210, 2_100),
    Case("10,000 × 200", 100, 100, 200),
    Case("1,000,000 × 2,000", 500, 2_000, 2_000),
    Case("20,000 × 500 halves", 100, 200, 500, "halves"),
    Case("20,000 × 500 random", 100, 200, 500, "random"),
)


def member(at: int) -> str:
    return f"consumer-{at:05d}"


def topic(at: int) -> str:
    return f"topic-{at:04d}"


def subscribes(case: Case, m: int, t: int) -> bool:
    if case.kind == "halves":
        return (m % 4 == 0) == (t < case.topics // 2)
    if case.kind == "random":
        return ((m * 73856093) ^ (t * 19349663)) >> 7 & 1 == 0
    return True


def topic_id(at: int) -> str:
    halves = ((at + 1) * 0x9E3779B97F4A7C15 & MASK, (at + 1) * 0xC2B2AE3D27D4EB4F & MASK)
    return base64.urlsafe_b64encode(b"".join(half.to_bytes(8, "big") for half in halves)).decode()[:22]


def lags(case: Case) -> dict[str, np.ndarray]:
    t, p = np.meshgrid(np.arange(case.topics), np.arange(case.partitions), indexing="ij")
    x = (t * 1000003 + p).astype(np.uint64)
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0x7FB5D329728EA185)
    values = ((x ^ (x >> np.uint64(27))) >> np.uint64(44)).astype(np.int64)
    return {topic(at): values[at] for at in range(case.topics)}


def builder(case: Case, with_lags: bool, before: Assignment | None = None) -> Callable[[], Scenario]:
    """Makes a scenario of the group at its start, or after the middle member left and the others own what they were given."""
    roster = roster_of(case, before)
    counts = {topic(t): case.partitions for t in range(case.topics)}
    known = lags(case) if with_lags else None
    ids = {topic(t): topic_id(t) for t in range(case.topics)}
    return lambda: scenario_from(roster, counts, known, ids)


def roster_of(case: Case, before: Assignment | None) -> Roster:
    """The group's rows as a worker holds them."""
    everything = tuple(topic(t) for t in range(case.topics))
    held = {} if before is None else before.to_dict()
    members = []
    for m in range(case.members):
        if before is not None and m == case.members // 2:
            continue
        assigned: dict[str, list[int]] = {}
        for name, partition in held.get(member(m), ()):
            assigned.setdefault(name, []).append(partition)
        topics = tuple(name for t, name in enumerate(everything) if subscribes(case, m, t))
        named = everything if case.kind == "same" else topics
        members.append(MemberView(member(m), None, "client", "/host", None, named, assigned=assigned))
    return Roster.of(
        GroupView(
            group="group", type="classic", state="Stable", protocol_type="consumer",
            protocol=None, generation=None if before is None else 1, target_epoch=None, members=tuple(members), last_change=0,
        )
    )  # fmt: skip


def digest(given: Assignment) -> str:
    numbers = np.array([int(name[9:]) for name in given.members], np.uint64)
    topics = np.array([int(name[6:]) for name in given.topics], np.uint64)
    x = (
        numbers[given.member] << np.uint64(40)
        | topics[given.topic] << np.uint64(20)
        | given.partition.astype(np.uint64)
    )
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0x7FB5D329728EA185)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x81DADEF4BC2DD44D)
    return str(int((x ^ (x >> np.uint64(33))).sum().astype(np.int64)))


def ours(case: Case, name: str, seconds: float) -> Iterator[dict[str, Any]]:
    before = None
    for phase in ("first", "leave"):
        build = builder(case, name == "lag", before)
        found, times, building = repeated(build, name, seconds)
        fresh = build()
        tracemalloc.start()
        assign(name, fresh)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield {
            "strategy": name,
            "phase": phase,
            "ms": times,
            "mb": peak / 1e6,
            "digest": digest(found),
            "building": building,
        }
        before = found


def repeated(build: Callable[[], Scenario], name: str, seconds: float) -> tuple[Assignment, float, float]:
    """The result, and the best times of assigning and of building; each run has a scenario of its own."""
    times: list[float] = []
    building: list[float] = []
    end = time.perf_counter() + seconds
    clock = time.thread_time
    while True:
        start = clock()
        group = build()
        building.append((clock() - start) * 1e3)
        start = clock()
        found = assign(name, group)
        times.append((clock() - start) * 1e3)
        if time.perf_counter() > end or len(times) == 40:
            return found, min(times), min(building)


def compiled(folder: Path, peer: str, jars: list[Path]) -> str:
    """The class path with the compiled peer in front."""
    target = folder / peer
    classes = os.pathsep.join(map(str, jars))
    sources = [str(SOURCES / f"{name}.java") for name in ("Harness", peer)]
    compiler = Path(java()).resolve().with_name("javac")
    subprocess.run(
        [str(compiler), "-nowarn", "-Xlint:none", "-cp", classes, "-d", str(target), *sources], check=True
    )
    return os.pathsep.join((str(target), classes))


def theirs(case: Case, peer: str, class_path: str, seconds: float, names: list[str]) -> list[dict[str, Any]]:
    numbers = [str(case.topics), str(case.partitions), str(case.members), case.kind, str(seconds)]
    done = subprocess.run(
        [java(), "-Xmx6g", "-cp", class_path, peer, *numbers, *names],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="a case's name, or the start of it")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES)
    parser.add_argument("--seconds", type=float, default=3.0, help="time per measurement")
    asked = parser.parse_args()
    names = asked.strategy or list(STRATEGIES)
    print(f"{'case':22}{'strategy':20}{'phase':7}{'Java ms':>11}{'kagent ms':>11}{'ratio':>9}", end="")
    print(f"{'Java input':>12}{'input':>8}{'ratio':>9}{'Java MB':>9}{'kagent MB':>11}")
    with tempfile.TemporaryDirectory() as folder:
        kafka = compiled(Path(folder), "KafkaPeer", resolve(KAFKA))
        fair = compiled(Path(folder), "FairPeer", resolve(FAIR))
        for case in CASES:
            if asked.case and not any(case.name.startswith(wanted) for wanted in asked.case):
                continue
            for name in names:
                peer, class_path = ("FairPeer", fair) if name == "fair" else ("KafkaPeer", kafka)
                big = name in SLOW_IN_JAVA and case.topics * case.partitions >= 1_000_000
                java_lines = theirs(case, peer, class_path, 0 if big else asked.seconds, [name])
                report(case, list(ours(case, name, asked.seconds)), java_lines)


def report(case: Case, mine: list[dict[str, Any]], java_lines: list[dict[str, Any]]) -> None:
    for row in mine:
        other = next((line for line in java_lines if line["phase"] == row["phase"]), None)
        print(f"{case.name:22}{row['strategy']:20}{row['phase']:7}", end="")
        if other is None:
            print(
                f"{'-':>11}{row['ms']:11.2f}{'-':>9}{'-':>12}{row['building']:8.2f}{'-':>9}{'-':>9}{row['mb']:11.1f}"
            )
            continue
        same = " " if other["digest"] == row["digest"] else "≠"
        print(f"{other['ms']:11.2f}{row['ms']:11.2f}{other['ms'] / row['ms']:9.2f}", end="")
        whole = (other["ms"] + other["building"]) / (row["ms"] + row["building"])
        print(
            f"{other['building']:12.2f}{row['building']:8.2f}{whole:9.2f}{other['mb']:9.1f}{row['mb']:11.1f} {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
