"""Where a leader's epoch ended: whether what was read of a log still stands in it (KIP-101, KIP-320).

A log that lost records and grew past its old end looks whole by its offsets alone. ``OffsetForLeaderEpochRequest.json`` version 2, the
oldest that Kafka 4 has, in aiokafka's connections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from kagent.kafka.brokers import Brokers, together

API_KEY = 23
CURRENT_UNKNOWN = -1
"""Instead of the leader's present epoch: it is not compared."""
UNDEFINED = -1
"""The answer of a leader that knows of no such epoch."""


class EpochEndAnswer(Response):
    API_KEY = API_KEY
    API_VERSION = 2
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("error", Int16), ("partition", Int32), ("epoch", Int32), ("end", Int64)),
                ),
            ),
        ),
    )


class EpochEndQuestion(RequestStruct):
    API_KEY = API_KEY
    API_VERSION = 2
    RESPONSE_TYPE = EpochEndAnswer
    SCHEMA = Schema(
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                ("partitions", Array(("partition", Int32), ("current_epoch", Int32), ("epoch", Int32))),
            ),
        ),
    )


class EpochEnd(Request[EpochEndQuestion]):
    """Asks a leader where epochs of its partitions ended; ``epochs``: partition → epoch."""

    API_KEY = API_KEY

    def __init__(self, topic: str, epochs: Mapping[int, int]) -> None:
        self.topic, self.epochs = topic, epochs

    def build(self, request_struct_class: type[EpochEndQuestion]) -> EpochEndQuestion:
        rows = [(partition, CURRENT_UNKNOWN, epoch) for partition, epoch in sorted(self.epochs.items())]
        return request_struct_class([(self.topic, rows)])


async def epoch_ends(
    brokers: Brokers, topic: str, leaders: Sequence[int], epochs: Mapping[int, int]
) -> dict[int, int]:
    """Partition → where this epoch of its leaders ended in its log of now, or UNDEFINED; without those that could not be asked.

    ``leaders``: the node of each partition.
    """
    by_node: dict[int, dict[int, int]] = defaultdict(dict)
    for partition, epoch in epochs.items():
        if leaders[partition] >= 0:
            by_node[leaders[partition]][partition] = epoch
    requests = (brokers.ask(EpochEnd(topic, wanted), node) for node, wanted in by_node.items())
    found: dict[int, int] = {}
    for answer in await together(requests):
        # A leader that does not answer, or leads no longer, costs its partitions until the next time.
        if isinstance(answer, Exception):
            continue
        for _, rows in answer.topics:
            found |= {partition: end for error, partition, _, end in rows if not error}
    return found
