"""``__consumer_offsets`` read live by confluent-kafka: no group is joined and nothing is committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as Code

from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.clients import confluent
from kagent.offsets import OFFSETS_TOPIC
from kagent.settings import Cluster

BATCH = 500
FATAL = {Code.TOPIC_AUTHORIZATION_FAILED, Code.UNKNOWN_TOPIC_OR_PART}
"""Not GROUP_AUTHORIZATION_FAILED: librdkafka looks for the group's coordinator, but a reader that assigns itself needs none."""
EOF: int = Code._PARTITION_EOF


def partitions(admin: Admin) -> int:
    """The number of partitions of the topic. Raises KafkaError where it is not to be seen."""
    found = admin.topic_names().get(OFFSETS_TOPIC)
    if not found:
        raise KafkaError(
            f"{admin.cluster.bootstrap} shows no {OFFSETS_TOPIC}: no group has committed yet, or a right to read it is missing "
            "(`kagent acls` prints what is needed)."
        )
    return found


@contextmanager
def reader(cluster: Cluster, count: int, from_beginning: bool, **more: Any) -> Iterator[Consumer]:
    """A consumer of all partitions that sees no records of aborted transactions. Raises KafkaError in a sentence."""
    config = {
        "group.id": "kagent-decode",  # asked for by the client; no group is joined and nothing committed
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        # 500 by default: how long a broker holds a fetch back on a quiet topic, and with it the end of a read.
        "fetch.wait.max.ms": 100,
        **more,
    }
    start = OFFSET_BEGINNING if from_beginning else OFFSET_END
    consumer = Consumer(confluent(cluster, **config))
    try:
        # Assigned, not subscribed: joining a group needs READ on it, and a second reader would take half of the partitions.
        consumer.assign([TopicPartition(OFFSETS_TOPIC, p, start) for p in range(count)])
        yield consumer
    except KafkaException as error:
        raise KafkaError(
            f"{OFFSETS_TOPIC} of {cluster.bootstrap} cannot be read ({error.args[0].str()})."
        ) from error
    finally:
        consumer.close()


def polled(consumer: Consumer, timeout_s: float, ended: set[int] | None = None) -> Iterator[Message]:
    """The records of one poll. ``ended``: takes the partitions read to their end (with ``enable.partition.eof``).

    Raises KafkaException for errors that waiting does not mend.
    """
    for message in consumer.consume(BATCH, timeout_s):
        problem = message.error()
        if problem is None:
            yield message
        elif problem.code() == EOF and ended is not None:
            ended.add(message.partition() or 0)
        elif problem.fatal() or problem.code() in FATAL:
            raise KafkaException(problem)
