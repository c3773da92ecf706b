"""Poison on every topic that a worker reads costs the record it is in: nothing restarts, every page answers, the sound group is judged."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.tables.declaration import ROWS
from tests.contract.test_admission import POISON
from tests.fixtures.poison import forty_kinds
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
PARTITION = 0
CHANGELOGS = tuple(ROWS)
BAD_ROWS = [b"", b"not json", b"{}", b"[]", b"null", b'{"cluster": 1}', b"\xff\xfe"]
TICKS = [b"", b"{}", b"[]", b'{"type": "tick"}', b'{"type": "tick", "time": {}}', b'{"type": "summary"}',
         b'{"type": "summary", "summary": 5}', b'{"type": "tick", "time": 99999999999999}']  # fmt: skip
ODD_KEYS = [b"main/x", b"", b"\xff\xfe", b"main/\0", b"main/" + b"k" * 10_000]
MUTES = [b"[]", b"nonsense", b'{"until": "x"}', b'{"until": 1e400}', b'{"until": 99999999999999999999}']


class Pipeline:
    """In the pipeline's place: progress for all sources and a commit of the sound group, every half second."""

    def __init__(self, running: Any) -> None:
        # Spark's producer is idempotent by default (KIP-679): what it sends again after an outage keeps its order.
        self.producer = Producer({"bootstrap.servers": running.broker.bootstrap, "enable.idempotence": True})
        self.offset = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def send(
        self, topic: str, value: bytes | None, key: bytes = b"main/x", partition: int = PARTITION
    ) -> None:
        self.producer.produce(topic, value, key, partition)

    def _run(self) -> None:
        while not self.stopped.wait(0.5):
            now, before = int(time.time() * 1000), self.offset
            self.offset += 1
            commit = TopicOffsets("orders", None, [0], [self.offset], [now], [self.offset])
            event = GroupEvent("main", "sound", 1, now, [commit])
            self.send("kagent-group-events", encode(event), b"main/sound")
            beat = Beat(
                "main", now, "run", 1.0, False, [1], [before], [self.offset], [self.offset], [self.offset]
            )
            for partition in (0, 1):
                self.send("kagent-group-events", encode(beat), b"main", partition)
            self.producer.poll(0)

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.producer.flush(10)


@pytest.fixture(scope="module")
def running(kagent: Callable[..., Any]) -> Any:
    made = kagent()
    made.topic("orders", 1)
    made.start_worker()
    return made


@pytest.fixture(scope="module")
def pipeline(running: Any) -> Iterator[Pipeline]:
    made = Pipeline(running)
    yield made
    made.stop()


def page(running: Any, path: str) -> tuple[int, str]:
    import yaml

    port = yaml.safe_load(running.config.read_text())["worker"]["web_port"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def judged(running: Any) -> bool:
    """Whether the sound group was judged lately and every page answers."""
    state = running.state(since=time.time() - 3)
    return bool(state and state.judged == 1) and page(running, "/metrics")[0] == 200


def counted(running: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in page(running, "/metrics")[1].splitlines():
        if line.startswith(("kagent_records_refused_total{", "kagent_rows_refused_total{")):
            name, value = line.rsplit(" ", 1)
            found[name] = int(float(value))
    return found


def letter_reasons(running: Any) -> list[str]:
    """Of each of kagent's own dead letters; others of these tests send poison to their topic too, and may have run before."""
    found = []
    for _, value in running.read("kagent-dead-letters"):
        with suppress(orjson.JSONDecodeError, TypeError, KeyError):
            found.append(orjson.loads(value or b"")["reason"])
    return found


def events_refused(running: Any) -> int:
    return sum(count for name, count in counted(running).items() if 'what="event"' in name)


def test_no_record_on_any_topic_stops_or_restarts_a_worker(running: Any, pipeline: Pipeline) -> None:
    running.eventually("the sound group is judged", lambda: judged(running))
    future = int(time.time() * 1000) + 10 * 365 * 86_400_000
    far = Beat("main", future, "other", 1.0, False, [1], [10**12], [10**12], [10**12], [10**12])
    foreign = GroupEvent("elsewhere", "g", 1, 1, [TopicOffsets("orders", None, [0], [1], [1], [1])])
    # A second try of this test meets what the first one left on the same worker: only what is added counts.
    before = counted(running)
    letters = len(letter_reasons(running))

    for _ in range(20):
        for data, _reason in POISON.values():
            pipeline.send("kagent-group-events", data[:900_000])
        pipeline.send("kagent-group-events", encode(far), b"main")
        pipeline.send("kagent-group-events", encode(foreign))
        for tick in TICKS:
            pipeline.send("kagent-ticks", tick)
        for place, mute in enumerate(MUTES):
            pipeline.send("kagent-mutes", mute, f"main/{place}".encode())
        pipeline.send("kagent-recommendations", b"\xff{", b"main/sound")
        pipeline.send("kagent-recommendations", b'{"id": 1}', b"main/sound")

    sent = 20 * (len(POISON) + 2)
    earlier = sum(count for name, count in before.items() if 'what="event"' in name)
    running.eventually("all poison is counted", lambda: events_refused(running) >= earlier + sent)
    running.eventually("the sound group is judged all the same", lambda: judged(running))
    assert page(running, "/api/groups")[0] == 200
    assert [g["group"] for g in json.loads(page(running, "/api/groups")[1])["groups"]] == ["sound"]
    found = counted(running)
    found.subtract(before)
    assert found['kagent_records_refused_total{reason="unknown_cluster",what="event"}'] == 20
    assert found['kagent_records_refused_total{reason="time_ahead",what="event"}'] == 20
    assert sum(n for name, n in found.items() if 'what="mute"' in name) >= 20 * len(MUTES)
    # The worker counts a record first and writes it to the dead letters after.
    running.eventually("all poison is kept", lambda: len(letter_reasons(running)) - letters >= sent)
    reasons = set(letter_reasons(running))
    assert {"not_json", "wrong_shape", "unequal_columns", "out_of_bounds", "time_ahead"} <= reasons
    assert "Traceback" not in running.log("worker")


def test_a_thousand_records_of_forty_kinds_on_each_topic_cost_themselves(
    running: Any, pipeline: Pipeline
) -> None:
    running.eventually("the sound group is judged", lambda: judged(running))
    before = events_refused(running)
    group = {"type": "group", "cluster": "elsewhere", "group": "g", "source": 3, "time": 1}
    kinds = forty_kinds(group)
    for topic in ("group-events", "ticks", "mutes", "recommendations", "dead-letters"):
        for at in range(1_000 // len(kinds)):
            for place, data in enumerate(kinds.values()):
                pipeline.send(f"kagent-{topic}", data, ODD_KEYS[place % len(ODD_KEYS)] + b"%d" % at)
            pipeline.producer.flush(30)

    running.eventually("each is counted", lambda: events_refused(running) >= before + 1_000)
    running.eventually("the sound group is judged all the same", lambda: judged(running))
    assert [g["group"] for g in json.loads(page(running, "/api/groups")[1])["groups"]] == ["sound"]
    assert running.processes["worker"].poll() is None
    assert "Traceback" not in running.log("worker")


def refused_tables(running: Any) -> set[str]:
    rows = (name for name in counted(running) if name.startswith("kagent_rows_refused"))
    return {table for name in rows for table in re.findall(r'table="(\w+)"', name)}


def test_rows_of_any_shape_on_the_changelogs_do_not_keep_a_worker_from_starting(
    running: Any, pipeline: Pipeline
) -> None:
    # Before that the worker may not have made its changelogs, and what is sent to them would be lost.
    running.eventually("the sound group is judged", lambda: judged(running))
    running.stop("worker")
    for table in CHANGELOGS:
        for place, row in enumerate(BAD_ROWS):
            for partition in (0, 1):
                pipeline.send(f"kagent-{table}-changelog", row, orjson.dumps(f"main/bad-{place}"), partition)
                pipeline.send(f"kagent-{table}-changelog", row, b"\xff" * (place + 1), partition)
    pipeline.producer.flush(PATIENCE_S)

    running.start_worker()
    # Both: the page answers before the rows are read, and the state may still be what the worker before it said.
    running.eventually(
        "the rows are refused and the sound group is judged again",
        lambda: refused_tables(running) >= {"members", "lag", "verdicts"} and judged(running),
    )

    assert [g["group"] for g in json.loads(page(running, "/api/groups")[1])["groups"]] == ["sound"]
    assert "Traceback" not in running.log("worker")
