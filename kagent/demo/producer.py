"""The steady load, as a process: a given number of records a second into each partition. ``python -m kagent.demo.producer``."""

from __future__ import annotations

import signal
import sys
import threading
import time

import orjson
from confluent_kafka import Producer

STEP = 0.1
VALUE = b"x" * 100


def main(bootstrap: str, loads: list[dict[str, object]]) -> None:
    """Produce until SIGTERM. ``loads``: topic, rates per partition, backlog per partition."""
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    rates: dict[tuple[str, int], float] = {}
    for load in loads:
        topic = str(load["topic"])
        rates |= {(topic, p): float(rate) for p, rate in enumerate(load["rates"])}  # type: ignore[arg-type, var-annotated]
        for partition, count in enumerate(load["backlog"]):  # type: ignore[arg-type, var-annotated]
            for _ in range(count):
                producer.produce(topic, VALUE, partition=partition)
    began, sent = time.monotonic(), dict.fromkeys(rates, 0)
    while not stop.wait(STEP):
        passed = time.monotonic() - began
        for (topic, partition), rate in rates.items():
            # From the start, not from the last step: rounding and late wake-ups do not add up.
            due = int(rate * passed)
            for _ in range(due - sent[topic, partition]):
                producer.produce(topic, VALUE, partition=partition)
            sent[topic, partition] = due
        producer.poll(0)
    producer.flush(5)


if __name__ == "__main__":
    main(sys.argv[1], orjson.loads(sys.argv[2]))
