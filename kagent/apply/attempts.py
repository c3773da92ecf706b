"""Who had which group take a plan, and when: a topic, so that the limit holds over processes and machines.

    key    <cluster>/<group>
    value  {"what": "claim" | "withdrawn" | "latched" | "reset", "at": ms since the epoch, "id": of the claim, "by": user}

A process claims before it acts and reads its own claim back: of two at once the one with the lower offset acts, the other
withdraws. Once latched, nothing is applied to the group until somebody resets it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kagent.errors import KafkaError
from kagent.follow.rejoin_budget import Asking, May, may_ask
from kagent.kafka.admin import Admin
from kagent.kafka.admin_errors import sentence
from kagent.kafka.clients import confluent
from kagent.kafka.topics import TopicSpec, ensure
from kagent.settings import Cluster, Topics

CLAIM, WITHDRAWN, LATCHED, RESET = "claim", "withdrawn", "latched", "reset"
ANSWER_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One record of the topic. ``at_ms``: since the epoch."""

    what: str
    at_ms: int
    id: str = ""


def judged(attempts: Iterable[Attempt], now: float, asking: Asking) -> May:
    """Whether the group may be moved now. ``attempts``: of this group, oldest first; ``now``: seconds since the epoch."""
    standing = _since_reset(attempts)
    if latched(standing):
        return May.LATCH
    withdrawn = {attempt.id for attempt in standing if attempt.what == WITHDRAWN}
    claims = [a.at_ms for a in standing if a.what == CLAIM and a.id not in withdrawn]
    return may_ask(claims, now, asking)


def latched(attempts: Iterable[Attempt]) -> bool:
    """Whether nothing is applied to the group any more until somebody resets it."""
    return any(attempt.what == LATCHED for attempt in _since_reset(attempts))


def _since_reset(attempts: Iterable[Attempt]) -> list[Attempt]:
    standing: list[Attempt] = []
    for attempt in attempts:
        standing = [] if attempt.what == RESET else [*standing, attempt]
    return standing


def wanted(topics: Topics) -> TopicSpec:
    """The topic as it must be: a line for each time that a group was moved, for ever."""
    # Not compacted: the limit counts the moves of a day, and compaction keeps only a group's last record. One partition, or two
    # claims would have no order.
    return TopicSpec(topic_name(topics), 1, {"cleanup.policy": "delete", "retention.ms": "-1"})


def topic_name(topics: Topics) -> str:
    """The topic's name."""
    return topics.applied


class Attempts:
    """The attempts of one group, read and written. All calls block and raise KafkaError."""

    def __init__(
        self, cluster: Cluster, topics: Topics, key: str, by: str, clock: Callable[[], float] = time.time
    ) -> None:
        self.cluster, self.topic, self.key, self.by, self.clock = cluster, topic_name(topics), key, by, clock
        ensure(Admin(cluster), topics, needed=[wanted(topics)])

    def claim(self, asking: Asking) -> May:
        """ASK if this process may move the group now; then it counts as moved."""
        known = self.read()
        if latched(known) or judged(known, self.clock(), asking) is May.WAIT:
            return judged(known, self.clock(), asking)  # without a record: the topic is kept for ever
        id_ = uuid.uuid4().hex
        self._write(CLAIM, id_)
        # Read back: the log puts claims made at once in an order, the same for all who read it.
        before: list[Attempt] = []
        for attempt in self.read():
            if attempt.id == id_:
                break
            before.append(attempt)
        may = judged(before, self.clock(), asking)
        if may is not May.ASK:
            self._write(WITHDRAWN, id_)
        if may is May.LATCH and not latched(before):
            self._write(LATCHED, id_)
        return may

    def reset(self) -> None:
        """What was applied before no longer counts."""
        self._write(RESET, "")

    def read(self) -> list[Attempt]:
        """All attempts, oldest first."""
        # librdkafka wants a group also for assign(); nothing is ever committed to this one.
        reader = Consumer(
            confluent(
                self.cluster,
                **{"group.id": "kagent-apply", "enable.auto.commit": False, "log_level": 0},
                **{"auto.offset.reset": "earliest"},
            )
        )
        try:
            return self._read(reader)
        except KafkaException as error:
            asked = f"asked for what {self.topic} has"
            raise KafkaError(sentence(error.args[0], asked, self.cluster.bootstrap)) from error
        finally:
            reader.close()

    def _read(self, reader: Any) -> list[Attempt]:
        partition = TopicPartition(self.topic, 0)
        low, high = reader.get_watermark_offsets(partition, timeout=ANSWER_WITHIN_S)
        reader.assign([TopicPartition(self.topic, 0, low)])
        found: list[Attempt] = []
        until, position = time.monotonic() + ANSWER_WITHIN_S, low
        while position < high:
            message = reader.poll(0.5)
            if time.monotonic() > until:
                self._require_answer()
                raise KafkaError(f"{self.topic} cannot be read: no answer in time.")
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            position = message.offset() + 1
            found += _parsed(message, self.key)
        return found

    def _write(self, what: str, id_: str) -> None:
        failed: list[object] = []
        record = {"what": what, "at": int(self.clock() * 1000), "id": id_, "by": self.by}
        producer = Producer(
            confluent(
                self.cluster, acks="all", log_level=0, **{"message.timeout.ms": int(ANSWER_WITHIN_S * 1000)}
            )
        )
        producer.produce(
            self.topic,
            orjson.dumps(record),
            self.key.encode(errors="surrogatepass"),
            partition=0,
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )
        left = producer.flush(ANSWER_WITHIN_S + 5)
        if failed or left:
            self._require_answer()
            why = str(failed[0]) if failed else "no answer in time"
            raise KafkaError(f"{self.topic} cannot be written ({why}): check the right to write.")

    def _require_answer(self) -> None:
        with Admin(self.cluster) as admin:
            admin.require_answer()


def _parsed(message: Any, key: str) -> list[Attempt]:
    """The attempt, if it is one and of this group; what cannot be read counts for nothing."""
    if message.key() != key.encode(errors="surrogatepass"):
        return []
    try:
        raw = orjson.loads(message.value())
        return [Attempt(str(raw["what"]), int(raw["at"]), str(raw["id"]))]
    except (ValueError, KeyError, TypeError):
        return []
