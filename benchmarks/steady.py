"""A worker's memory and answers over a long time: `python benchmarks/steady.py --groups 20000 --minutes 60 --kills 3`.

A real broker and a real worker process. Every group commits each of its partitions once a minute, some seconds behind the log ends of a topic
that grows; the commits are spread over the minute, and progress is told each second, as the pipeline does. The worker is killed (SIGKILL)
and started anew ``--kills`` times, at even distances. One line of JSON every five minutes: resident memory, cores, groups judged at the last
tick; at the end the greatest of each, and how many rows of the changelog differ from what was sent.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic
from worker import HERE, Feed, Worker, caught_up, wait, wrong_groups

from kagent.embedded.broker import Broker
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, load

COMMIT_EVERY_S = 60
RECORDS_A_SECOND = 20
"""Of each partition of the topic that the groups read."""
BEHIND = 5 * RECORDS_A_SECOND
"""Records that a group is behind at most."""


class PacedFeed(Feed):
    """A sixtieth of the groups commits each second."""

    def __init__(self, bootstrap: str, groups: int, partitions: int, together: int) -> None:
        super().__init__(bootstrap, groups, partitions, together)
        self.ends, self.turn = [0] * partitions, 0
        self.offsets = [[0] * partitions for _ in range(groups)]

    def second(self) -> None:
        for partition in range(self.partitions):
            for _ in range(RECORDS_A_SECOND):
                self.producer.produce("orders", b"x", partition=partition)
            self.ends[partition] += RECORDS_A_SECOND
        self.send(range(self.turn, self.groups, COMMIT_EVERY_S))
        self.turn = (self.turn + 1) % COMMIT_EVERY_S
        self.progress()

    def _moved(self, held: list[int]) -> list[int]:
        behind = self.random.randrange(BEHIND)
        return [max(before, end - behind, 0) for before, end in zip(held, self.ends, strict=True)]


def seconds(feed: PacedFeed, minutes: float) -> Iterator[float]:
    """Feeds once a second; gives the seconds since the start."""
    began = time.monotonic()
    for number in range(round(minutes * 60)):
        feed.second()
        yield time.monotonic() - began
        time.sleep(max(0.0, began + number + 1 - time.monotonic()))


class Watch:
    """What the worker's process shows."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.before = worker, (time.monotonic(), worker.cpu_s)
        self.lines: list[dict[str, Any]] = []

    def look(self, at_s: float) -> None:
        now, cpu_s = time.monotonic(), self.worker.cpu_s
        cores = (cpu_s - self.before[1]) / (now - self.before[0])
        self.before = now, cpu_s
        resident_mb = round(self.worker.resident_mb)
        line = {
            "minute": round(at_s / 60, 1),
            "resident_mb": resident_mb,
            "cores": round(cores, 2),
            "judged": self.worker.judged,
        }
        self.lines.append(line)
        print(json.dumps(line), flush=True)

    def restarted(self) -> None:
        self.worker.kill()
        self.worker.start()
        self.before = time.monotonic(), 0.0


def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("orders", options.partitions, 1)])["orders"].result(60)
        worker = Worker(Path(name), broker.bootstrap, HERE, 10.0, max_groups=100_000)
        control = Admin(Cluster(bootstrap=broker.bootstrap))
        ensure(control, load(worker.config).topics)
        feed = PacedFeed(broker.bootstrap, options.groups, options.partitions, 50)
        watch = Watch(worker)
        try:
            _watched(feed, watch, options)
            # Without progress: each would move the end.
            wait("all events are applied", caught_up(control, broker.bootstrap))
            return {
                "greatest_mb": max(line["resident_mb"] for line in watch.lines),
                "judged_at_the_end": watch.lines[-1]["judged"],
                "kills": options.kills,
                "groups_wrong": wrong_groups(broker.bootstrap, feed),
            }
        finally:
            worker.kill()


def _watched(feed: PacedFeed, watch: Watch, options: argparse.Namespace) -> None:
    kills = [options.minutes * 60 * (number + 1) / (options.kills + 1) for number in range(options.kills)]
    look_s = options.look_s
    for at_s in seconds(feed, options.minutes):
        if kills and at_s >= kills[0]:
            kills.pop(0)
            watch.restarted()
        if at_s >= look_s:
            look_s += options.look_s
            watch.look(at_s)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--look-s", type=float, default=300)
    print(json.dumps(run(parser.parse_args())), flush=True)


if __name__ == "__main__":
    main()
