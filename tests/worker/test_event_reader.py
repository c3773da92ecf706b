"""What a message of the events topic costs, however many events in it are not let in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from kagent.contract.admission import MAX_EVENTS
from kagent.contract.events import encode
from kagent.lag.observation import TopicInfo
from kagent.offsets import OFFSETS_TOPIC
from kagent.worker.dead_letters import DeadLetters
from kagent.worker.event_reader import LETTERS, EventReader
from tests.worker.test_engine import commit, desk, event
from tests.worker.test_event_sources import beat, sources


class Message:
    topic, partition, offset, key = "kagent-group-events", 0, 0, b"main"
    timestamp, timestamp_type = 0.0, 0

    def __init__(self, value: bytes) -> None:
        self.value = value


@dataclass
class Letters:
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def send(self, key: bytes, value: bytes) -> None:
        self.sent.append(orjson.loads(value))


class Ours:
    def built(self, partition: int) -> bool:
        return True


class Outbox:
    def hold(self, partition: int, message: Any) -> None: ...

    def urgent(self, partition: int) -> bool:
        return False


async def nothing_to_learn() -> None: ...


def reader(engine: Any, letters: Any, learn_sources: Callable[[], Awaitable[None]] = nothing_to_learn) -> Any:
    unused: Any = None
    ownership: Any = Ours()
    outbox: Any = Outbox()
    return EventReader(engine, ownership, outbox, DeadLetters(engine, letters), unused, learn_sources)


async def test_the_clusters_are_asked_for_their_partitions_once_and_before_the_first_event() -> None:
    engine, letters, asked = desk(), Letters(), []

    async def learn_sources() -> None:
        asked.append(dict(engine.counts))
        engine.logs.described("main", {OFFSETS_TOPIC: TopicInfo(50)})

    made = reader(engine, letters, learn_sources)
    for _ in range(2):
        await made.take(Message(encode(beat(list(range(10_000))))))

    assert [counts.get("events", 0) for counts in asked] == [0]
    assert [letter["reason"] for letter in letters.sent] == ["no_such_partition"] * 2
    assert sources(engine.coverage[0]) == list(range(50))


@pytest.mark.slow
async def test_thousands_of_bad_events_in_one_message_are_counted_each_and_cost_a_few_letters() -> None:
    engine, letters = desk(), Letters()
    made = reader(engine, letters)
    bad = b"{}," * 3_000 + b"[]," * 2_000

    await made.take(Message(b"[" + bad + event("sound", [commit(0, 5, 1)]) + b"]"))

    assert len(letters.sent) == LETTERS
    assert engine.counts["dead_letters"] == LETTERS
    assert engine.refused == {("event", "missing_field"): 3_000, ("event", "wrong_shape"): 2_000}
    assert "main/sound" in engine.index.entries(0)


async def test_more_events_than_a_pipeline_puts_into_one_message_are_refused_as_one() -> None:
    engine, letters = desk(), Letters()
    made = reader(engine, letters)

    await made.take(Message(b"[" + b"{}," * MAX_EVENTS + b"{}]"))

    assert [letter["reason"] for letter in letters.sent] == ["too_large"]
