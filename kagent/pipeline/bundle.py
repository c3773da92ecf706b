"""Events of several groups in one message. Pure.

What a message costs a worker, whatever is in it (Faust's stream, the Kafka client, the event loop), is many times what an
event costs. So the events of a trigger that go to the same partition share messages, as JSON arrays. A group stays on the
partition that its own key has: there its order is kept, and a reader of single events finds what it always found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from kagent.contract.events import MAX_BYTES
from kagent.pipeline.build import Message
from kagent.strategies.partitioner import partitions_for

Placed = tuple[str, bytes, bytes, int, int | None]
"""topic, key, value, records of the source, and the partition; None leaves it to the producer."""
KEYS_AT_ONCE = 1000
"""Keys hashed in one go: numpy's overhead is shared, and little is held back."""


@dataclass(frozen=True, slots=True)
class Bundling:
    """``events``: the topic of events, with ``partitions``; ``cluster``: the key of a message of several groups; ``most``: events in a
    message; 1 writes each alone."""

    cluster: str
    events: str
    partitions: int
    most: int


@dataclass(slots=True)
class _Bundle:
    """Events for one partition: of ``size`` bytes in all, telling of ``records``."""

    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    size: int = 0
    records: int = 0

    def add(self, message: Message) -> None:
        _, key, value, records = message
        self.keys.append(key)
        self.values.append(value)
        self.size += len(value) + 1  # and a comma
        self.records += records

    def full(self, value: bytes, most: int) -> bool:
        """Whether this event has to go into the next message."""
        # An event alone may be larger than MAX_BYTES: it goes alone, as it always did.
        return len(self.values) >= most or (bool(self.values) and self.size + len(value) > MAX_BYTES)

    def message(self, to: Bundling, partition: int) -> Placed:
        # As without bundling: a cluster of few groups looks the same to every reader.
        if len(self.values) == 1:
            return to.events, self.keys[0], self.values[0], self.records, partition
        return to.events, to.cluster.encode(), b"[" + b",".join(self.values) + b"]", self.records, partition


def bundled(made: Iterable[Message], to: Bundling | None) -> Iterator[Placed]:
    """These messages, with the events of one partition put together; what is no event goes as it is."""
    waiting: dict[int, _Bundle] = {}
    for message, partition in _placed(made, to):
        if to is None or partition is None:
            yield *message, None
            continue
        bundle = waiting.setdefault(partition, _Bundle())
        if bundle.full(message[2], to.most):
            yield bundle.message(to, partition)
            bundle = waiting[partition] = _Bundle()
        bundle.add(message)
    if to is not None:
        yield from (bundle.message(to, partition) for partition, bundle in waiting.items())


def _placed(made: Iterable[Message], to: Bundling | None) -> Iterator[tuple[Message, int | None]]:
    """Each message with the partition that Kafka's producer would give it by its key; None for what is no event."""
    rest = iter(made)
    while chunk := list(islice(rest, KEYS_AT_ONCE)):
        places = partitions_for([key for _, key, _, _ in chunk], to.partitions).tolist() if to else []
        for at, message in enumerate(chunk):
            yield message, places[at] if to is not None and message[0] == to.events else None
