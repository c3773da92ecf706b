"""docs/follow.md: its programs run, and its table has every reason."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.follow import Reason
from tests.fixtures.waiting import PATIENCE_S

PAGE = (Path(__file__).parents[2] / "docs" / "follow.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_reason_has_its_row() -> None:
    table = PAGE.split("## What it refuses")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(Reason)


@pytest.mark.kafka
@pytest.mark.parametrize("program", PROGRAMS, ids=["aiokafka", "kafka-python"])
def test_the_programs_read_their_topic(broker: str, program: str) -> None:
    topic, group = f"orders-{uuid.uuid4().hex[:8]}", f"billing-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": broker})
    text = (
        program.replace("localhost:9092", broker)
        .replace('"orders"', f'"{topic}"')
        .replace('"billing"', f'"{group}"')
    )
    assert text.count(broker) == 2
    running = subprocess.Popen(
        [sys.executable, "-u", "-c", text],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    try:
        assert running.stdout is not None
        end = time.monotonic() + 180
        while not select.select([running.stdout], [], [], 0.5)[0]:
            assert running.poll() is None
            assert time.monotonic() < end
            producer.produce(topic, b"an order")  # it reads from when it has joined
            producer.flush(10)
        assert running.stdout.readline() == b"b'an order'\n"
    finally:
        running.kill()
        running.wait(30)
        if running.stdout is not None:
            running.stdout.close()
