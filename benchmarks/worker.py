"""How much one worker applies: events and rows per CPU second, bytes of changelog, memory, and what a kill costs.

    python benchmarks/worker.py --groups 10000 --partitions 10 --events-a-message 50
    python benchmarks/worker.py --against ../kagent-0.1        the worker of another folder in the same run, after this one
    python benchmarks/worker.py --takeover                     and then a second worker takes over from a killed one

A real broker and a real worker process; the events are written beforehand, each with a newer commit of every partition of its group. The clock is
the worker's own CPU time (user and system, ``/proc/PID/stat``), from the first event until the group's committed offset is the end of the
topic. Then the worker is killed (SIGKILL) while more events come, started anew, and every row of the lag changelog is compared with what
was sent.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.embedded.broker import Broker, free_port
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, load

EVENTS, APP = "kagent-group-events", "kagent"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
HERE = Path(__file__).parents[1]


class Feed:
    """Events of all groups; what was sent last, to compare."""

    def __init__(self, bootstrap: str, groups: int, partitions: int, together: int) -> None:
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "zstd"}
        )
        self.groups, self.partitions, self.together = groups, partitions, together
        self.random, self.source = random.Random(7), 0
        self.offsets = [[self.random.randrange(10**6) for _ in range(partitions)] for _ in range(groups)]

    def round(self) -> None:
        """One event of every group."""
        self.send(range(self.groups))
        self.progress()

    def send(self, groups: range) -> None:
        """One event of each of these groups."""
        events = [self._event(group) for group in groups]
        for at in range(0, len(events), self.together):
            part = events[at : at + self.together]
            value = part[0] if self.together == 1 else b"[" + b",".join(part) + b"]"
            while True:
                try:
                    self.producer.produce(EVENTS, value, b"main", 0)
                    break
                except BufferError:
                    self.producer.poll(0.1)

    def _event(self, group: int) -> bytes:
        now, held = int(time.time() * 1000), self.offsets[group]
        held[:] = self._moved(held)
        times = [now - self.random.randrange(900) for _ in held]
        self.source += self.partitions
        source = list(range(self.source - self.partitions, self.source))
        topic = TopicOffsets("orders", None, list(range(self.partitions)), list(held), times, source)
        return encode(GroupEvent("main", f"group-{group}", 0, now, [topic]))

    def _moved(self, held: list[int]) -> list[int]:
        return [offset + self.random.randrange(1, 5000) for offset in held]

    def progress(self) -> None:
        """Says that everything was read up to now, as the pipeline does at each trigger."""
        now, to = int(time.time() * 1000), [self.source]
        self.producer.produce(
            EVENTS, encode(Beat("main", now, "run", 1.0, False, [0], [0], to, to, to)), b"main", 0
        )
        assert self.producer.flush(60) == 0

    def along(self, check: Callable[[], bool]) -> Callable[[], bool]:
        """The check, with progress before it each time: without any, workers soon call the pipeline away."""

        def checked() -> bool:
            self.progress()
            return check()

        return checked


class Worker:
    """One worker process of this folder or another."""

    def __init__(self, folder: Path, bootstrap: str, code: Path, tick_s: float, **limits: int) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.code, self.port = folder, code, free_port()
        settings = {
            "clusters": {"main": {"bootstrap": bootstrap}},
            "topics": {"partitions": 1},
            "worker": {
                "tick": tick_s,
                "sample": max(5.0, tick_s),
                "data": str(folder / "data"),
                "web_port": self.port,
                **limits,
            },
        }
        self.config = folder / "kagent.yaml"
        self.config.write_text(json.dumps(settings))  # JSON is YAML
        self.start()

    def start(self) -> None:
        with (self.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kagent",
                    "--config",
                    str(self.config),
                    "worker",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(self.code)},
                cwd=self.code,
            )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def while_alive(self, check: Callable[[], bool]) -> Callable[[], bool]:
        """The check, which fails at once when the worker has ended."""

        def checked() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"the worker ended: {(self.folder / 'worker.log').read_text()[-2000:]}")
            return check()

        return checked

    @property
    def cpu_s(self) -> float:
        """User and system time of the process."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    @property
    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def ready(self) -> bool:
        return bool(self._answer("readyz").get("ready"))

    @property
    def judged(self) -> int:
        """Groups that it judged at its last tick."""
        clusters = self._answer("api/v1/status").get("clusters", [])
        return sum(cluster["judged"] for cluster in clusters)

    def _answer(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=5) as answer:
                return dict(json.load(answer))
        except OSError:
            return {}


def wait(what: str, check: Callable[[], Any], deadline_s: float = 900) -> None:
    until = time.monotonic() + deadline_s
    while not check():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(0.2)


def caught_up(admin: Admin, bootstrap: str) -> Callable[[], bool]:
    """Whether the worker's committed offset is the end of the events topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "end"})

    def check() -> bool:
        end = consumer.get_watermark_offsets(TopicPartition(EVENTS, 0), timeout=30)[1]
        return bool(admin.committed([APP]).get(APP, {}).get((EVENTS, 0), 0) >= end)

    return check


def changelog(bootstrap: str) -> Iterator[tuple[bytes, bytes | None]]:
    """All rows of the lag changelog that a read_committed reader sees."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "rows", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition("kagent-lag-changelog", 0, 0)])
    while (record := consumer.poll(60)) is not None and not record.error():
        yield record.key(), record.value()
    consumer.close()


def wrong_groups(bootstrap: str, feed: Feed) -> int:
    """Groups whose last row is not what was sent last."""
    held = {key: orjson.loads(value)["commits"]["committed"] for key, value in changelog(bootstrap) if value}
    keys = (orjson.dumps(f"main/group-{group}/orders") for group in range(feed.groups))
    return sum(held.get(key) != offsets for key, offsets in zip(keys, feed.offsets, strict=True))


def logged_bytes(broker: Broker) -> int:
    return sum(p.stat().st_size for p in broker.folder.glob("data/**/kagent-lag-changelog-0/*.log"))


def measure(code: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One version's figures."""
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker") as broker:
        AdminClient({"bootstrap.servers": broker.bootstrap}).create_topics(
            [NewTopic("orders", options.partitions, 1)]
        )
        admin = Admin(Cluster(bootstrap=broker.bootstrap))
        worker = Worker(Path(name), broker.bootstrap, code, options.tick)
        ensure(admin, load(worker.config).topics)
        feed = Feed(broker.bootstrap, options.groups, options.partitions, options.events_a_message)
        try:
            return _figures(worker, feed, broker, admin, options)
        finally:
            worker.kill()


def _figures(
    worker: Worker, feed: Feed, broker: Broker, admin: Admin, options: argparse.Namespace
) -> dict[str, Any]:
    done = worker.while_alive(caught_up(admin, broker.bootstrap))
    feed.round()  # the groups become known
    wait("the first round is applied", done)
    worker.kill()
    before_bytes, before_rows = logged_bytes(broker), sum(1 for _ in changelog(broker.bootstrap))
    for _ in range(options.rounds):
        feed.round()
    worker.start()
    wait("the worker is ready", worker.ready)
    cpu_s, began = worker.cpu_s, time.monotonic()
    wait("all events are applied", done)
    cpu_s, took_s = worker.cpu_s - cpu_s, time.monotonic() - began
    events = options.rounds * options.groups
    rows = sum(1 for _ in changelog(broker.bootstrap)) - before_rows
    found = {
        "events": events,
        "events_per_cpu_s": round(events / cpu_s),
        "rows_per_cpu_s": round(rows / cpu_s),
        "events_per_row": round(events / max(1, rows), 2),
        "bytes_per_event": round((logged_bytes(broker) - before_bytes) / events, 1),
        "wall_s": round(took_s, 1),
        "resident_mb": round(worker.resident_mb),
    }
    found |= _killed(worker, feed, broker, done, options)
    return {**found, **_taken_over(worker, feed, broker, options)} if options.takeover else found


def _taken_over(worker: Worker, feed: Feed, broker: Broker, options: argparse.Namespace) -> dict[str, Any]:
    """How long after the death of one worker another judges all of its groups."""
    second = Worker(worker.folder / "second", broker.bootstrap, worker.code, options.tick)
    try:
        wait("all groups are judged", feed.along(lambda: worker.judged >= feed.groups))
        wait("the second worker is ready", feed.along(second.ready))
        worker.kill()
        began = time.monotonic()
        wait("the second worker judges them", feed.along(lambda: second.judged >= feed.groups))
        return {"judged_after_takeover_s": round(time.monotonic() - began, 1)}
    finally:
        second.kill()


def _killed(
    worker: Worker, feed: Feed, broker: Broker, done: Callable[[], bool], options: argparse.Namespace
) -> dict[str, Any]:
    wrong = 0
    for number in range(options.kills):
        feed.round()
        time.sleep(1.5 * number)
        worker.kill()
        began = time.monotonic()
        worker.start()
        wait("the worker is ready again", worker.ready)
        ready_s = time.monotonic() - began
        wait("all events are applied", done)
        wrong += wrong_groups(broker.bootstrap, feed)
    return (
        {"kills": options.kills, "groups_wrong": wrong, "ready_after_kill_s": round(ready_s, 1)}
        if options.kills
        else {}
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10, help="events of each group")
    parser.add_argument("--events-a-message", type=int, default=1)
    parser.add_argument("--tick", type=float, default=10.0, help="seconds between judgements")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--takeover", action="store_true", help="a second worker takes over at the end")
    parser.add_argument("--against", type=Path, help="a folder with another version of kagent")
    options = parser.parse_args()
    for code in (HERE, options.against):
        if code is not None:
            print(json.dumps({"code": str(code), **measure(code.resolve(), options)}), flush=True)


if __name__ == "__main__":
    main()
