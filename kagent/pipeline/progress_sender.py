"""Puts a beat in every partition of the events topic, and knows whether it arrived."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException, Producer

from kagent.contract.events import Beat, LogCut, encode
from kagent.kafka.clients import confluent
from kagent.kafka.ends_aside import EndsAside
from kagent.settings import Cluster, Topics

log = logging.getLogger("kagent.pipeline")
WITHIN = 10.0


class ProgressSender:
    """A producer for beats, kept over restarts of the query."""

    def __init__(self, home: Cluster, key: str, topics: Topics) -> None:
        self._key, self._topic, self._partitions = key, topics.events, topics.partitions
        # message.timeout.ms ends below WITHIN, so that flush returns with a delivery report for each message: one that
        # arrived after it was counted as lost would only be repeated by the next beat.
        own = {"linger.ms": 0, "compression.type": "zstd", "log_level": 0, "message.timeout.ms": 8000}
        self._config = confluent(home, **own)
        self._producer = EndsAside(Producer(self._config))
        self._failed: list[Any] = []

    def __enter__(self) -> ProgressSender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Short: at the end a beat that does not arrive harms nothing, readers take silence for blindness.
        self._producer.client.flush(1)

    def send(self, beat: Beat | LogCut) -> bool:
        """Send it to all partitions; true if all have it."""
        arrived = self._arrived(encode(beat))
        if not arrived:
            # librdkafka may keep the leaders of partitions from before its brokers restarted: of a cluster that was back for six
            # minutes, every beat timed out, while clients made meanwhile reached it.
            # https://github.com/confluentinc/confluent-kafka-go/issues/528
            self._producer = EndsAside(Producer(self._config))
        return arrived

    def _arrived(self, value: bytes) -> bool:
        self._failed.clear()
        try:
            # To every partition: a worker reads only those it owns, and must know for each how far its groups are read.
            for partition in range(self._partitions):
                self._producer.client.produce(
                    self._topic, value, key=self._key, partition=partition, on_delivery=self._delivered
                )
            left = self._producer.client.flush(WITHIN)
        except (KafkaException, BufferError) as error:
            reason = error.args[0].str() if isinstance(error, KafkaException) else error
            log.warning("Progress could not be sent: %s.", reason)
            return False
        if left or self._failed:
            log.warning(
                "Progress did not arrive: %s.", self._failed[0].str() if self._failed else "no answer"
            )
        return not (left or self._failed)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)
