"""A year in which the pipeline skipped something every hour, as a worker reads it: `python benchmarks/gaps.py`.

A real broker and a real worker process. 8,760 progress records of 50 partitions of `__consumer_offsets`, each with a hole before it, then progress without
holes; then what a replay says. As JSON: how long the worker took for the year, its memory before and after, what its status says, and what
it says after the replay.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from worker import EVENTS, HERE, Worker, caught_up, wait

from kagent.contract.events import Beat, encode
from kagent.embedded.broker import Broker
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, load

SOURCES = 50
RECORDS_AN_HOUR = 100


class Progress:
    """What a pipeline says of a log that grows by 100 records an hour."""

    def __init__(self, bootstrap: str) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})

    def say(self, start: int, end: int, time_s: float, run: str = "run", replay: bool = False) -> None:
        sources, ends = list(range(SOURCES)), [end] * SOURCES
        beat = Beat(
            "main", int(time_s * 1000), run, 1.0, replay, sources, [start] * SOURCES, ends, ends, ends
        )
        self.producer.produce(EVENTS, encode(beat), b"main", 0)
        self.producer.poll(0)

    def year(self, hours: int) -> int:
        """The half of each hour is missing; the log's end."""
        began = time.time() - 3600 * hours
        for hour in range(hours):
            end = (hour + 1) * RECORDS_AN_HOUR
            self.say(end - RECORDS_AN_HOUR // 2, end, began + 3600 * hour)
            if hour % 1000 == 0:
                self.producer.flush(60)
        self.producer.flush(60)
        return hours * RECORDS_AN_HOUR


def run(hours: int) -> dict[str, Any]:
    # Progress on more partitions than the topic has is not believed.
    extra = {"offsets.topic.num.partitions": str(SOURCES)}
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker", extra=extra) as broker:
        worker = Worker(Path(name), broker.bootstrap, HERE, 1.0)
        admin, progress = Admin(Cluster(bootstrap=broker.bootstrap)), Progress(broker.bootstrap)
        try:
            ensure(admin, load(worker.config).topics)
            progress.say(0, 0, time.time() - 3600 * hours - 60)
            wait("the worker is ready", worker.ready)
            before, began, cpu_s = worker.resident_mb, time.monotonic(), worker.cpu_s
            end = progress.year(hours)
            wait("the year is read", caught_up(admin, broker.bootstrap))
            found = {
                "gaps": hours * SOURCES,
                "read_s": round(time.monotonic() - began, 1),
                "cpu_s": round(worker.cpu_s - cpu_s, 1),
                "mb_before": round(before),
            }
            said = _said(worker, progress, end)
            found |= {"mb_after": round(worker.resident_mb), "said": said}
            progress.say(0, end, time.time(), "replay", replay=True)
            return {**found, "after_a_replay": _said(worker, progress, end)}
        finally:
            worker.kill()


def _said(worker: Worker, progress: Progress, end: int, seconds: int = 20) -> str:
    """The status, once progress has come for some seconds."""
    for _ in range(seconds):
        progress.say(end, end, time.time())
        progress.producer.flush(60)
        time.sleep(1)
    (cluster,) = worker._answer("api/v1/status")["clusters"]
    return f"{cluster['status']} {cluster.get('reason') or ''}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=int, default=8760)
    print(json.dumps(run(parser.parse_args().hours)), flush=True)


if __name__ == "__main__":
    main()
