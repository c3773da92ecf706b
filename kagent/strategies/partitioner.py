"""The producer's default partitioner: which partition a record goes to, and what a set of keys does to a topic.

    explicit partition   wins always
    key                  (murmur2(serialised key) & 0x7fffffff) mod n, over all partitions, available or not
    no key, up to 2.3    round robin per topic, from a random start, over the available partitions
    no key, 2.4 to 3.2   one random available partition until the batch is full (KIP-480)
    no key, from 3.3     one partition until batch.size bytes went to it, the next by chance, queues weighed (KIP-794)

murmur2 is Austin Appleby's 32-bit hash with the seed 0x9747b28c, as in ``org.apache.kafka.common.utils.Utils``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

# https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/common/utils/Utils.java (murmur2)
SEED, M, R = 0x9747B28C, 0x5BD1E995, 24
MASK = 0xFFFFFFFF
# Utils.toPositive. Not abs: that is negative for Integer.MIN_VALUE, and gives other partitions for every negative hash.
POSITIVE = 0x7FFFFFFF

Weights = npt.NDArray[np.float64]


def murmur2(key: bytes) -> int:
    """The hash of a serialised key, as a signed 32-bit number.

    >>> murmur2(b"abc")
    479470107
    """
    return int(murmur2_many([key])[0])


def murmur2_many(keys: Sequence[bytes]) -> npt.NDArray[np.int32]:
    """The hashes of many keys, all of one length at a time."""
    hashes = np.zeros(len(keys), np.uint32)
    by_length: dict[int, list[int]] = {}
    for at, key in enumerate(keys):
        by_length.setdefault(len(key), []).append(at)
    for length, places in by_length.items():
        data = np.frombuffer(b"".join(keys[at] for at in places), np.uint8).reshape(len(places), length)
        hashes[places] = _murmur2(data)
    return hashes.view(np.int32)


def _murmur2(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    count, length = data.shape
    m = np.uint32(M)
    blocks = length // 4
    words = np.ascontiguousarray(data[:, : blocks * 4]).view("<u4").reshape(count, blocks)
    h = np.full(count, SEED ^ length, np.uint32)
    for at in range(blocks):
        k = words[:, at] * m
        k ^= k >> np.uint32(R)
        h = h * m ^ k * m
    # Up to three bytes that fill no word. numpy's uint32 wraps as Java's int does, and its right shift is Java's >>>.
    tail = data[:, blocks * 4 :].astype(np.uint32)
    if tail.shape[1]:
        for at in range(tail.shape[1]):
            h ^= tail[:, at] << np.uint32(8 * at)
        h *= m
    h ^= h >> np.uint32(13)
    h *= m
    h ^= h >> np.uint32(15)
    return h


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a record with that key."""
    return (murmur2(key) & POSITIVE) % partitions


def partitions_for(keys: Sequence[bytes], partitions: int) -> npt.NDArray[np.int64]:
    """The partitions of many keys."""
    return (murmur2_many(keys).astype(np.int64) & POSITIVE) % partitions


class Keyless(Protocol):
    """Where records without a key go."""

    def next(self, topic: str, partitions: int, available: Sequence[int], size: int) -> int:
        """The partition of the next record of ``size`` bytes."""
        ...


@dataclass(slots=True)
class RoundRobin:
    """Up to Kafka 2.3: one partition after the other, from a random start per topic."""

    random: Random
    _counters: dict[str, int] = field(default_factory=dict)

    def next(self, topic: str, partitions: int, available: Sequence[int], size: int) -> int:
        """The counter modulo the available partitions, or modulo all of them when none is."""
        counter = self._counters.get(topic)
        if counter is None:
            counter = self.random.getrandbits(32)
        self._counters[topic] = (counter + 1) & MASK
        value = counter & POSITIVE
        return available[value % len(available)] if available else value % partitions


@dataclass(slots=True)
class StickyBatch:
    """Kafka 2.4 to 3.2 (KIP-480): one partition until ``new_batch`` says that its batch is full."""

    random: Random
    _current: dict[str, int] = field(default_factory=dict)

    def next(self, topic: str, partitions: int, available: Sequence[int], size: int) -> int:
        """The topic's current partition."""
        if topic not in self._current:
            self.new_batch(topic, partitions, available)
        return self._current[topic]

    def new_batch(self, topic: str, partitions: int, available: Sequence[int]) -> None:
        """Choose another partition than the current one, if there is another."""
        old = self._current.get(topic)
        choices = list(available) or list(range(partitions))
        if len(choices) > 1 and old is not None and available:
            # StickyPartitionCache draws again while it draws the old one, or a partition would get two batches in a row.
            choices = [choice for choice in choices if choice != old]
        self._current[topic] = self.random.choice(choices)


@dataclass(slots=True)
class StickyBytes:
    """From Kafka 3.3 (KIP-794): one partition until ``batch_size`` bytes went to it, the next by chance.

    With ``queues`` (batches waiting per available partition) a partition is the likelier the shorter its queue.
    """

    random: Random
    batch_size: int = 16384
    queues: Mapping[str, Sequence[int]] = field(default_factory=dict)
    _current: dict[str, int] = field(default_factory=dict)
    _produced: dict[str, int] = field(default_factory=dict)

    def next(self, topic: str, partitions: int, available: Sequence[int], size: int) -> int:
        """The topic's current partition; the switch comes after the record that fills the batch."""
        if topic not in self._current:
            self._current[topic] = self._choose(topic, partitions, available)
        chosen = self._current[topic]
        produced = self._produced.get(topic, 0) + size
        if produced >= self.batch_size:
            produced = 0
            self._current[topic] = self._choose(topic, partitions, available)
        self._produced[topic] = produced
        return chosen

    def _choose(self, topic: str, partitions: int, available: Sequence[int]) -> int:
        # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/producer/internals/BuiltInPartitioner.java
        drawn = self.random.getrandbits(31)
        queues = self.queues.get(topic, ())
        # BuiltInPartitioner turns its table off where all queues are equal: then any partition will do.
        if len(queues) == len(available) and len(set(queues)) > 1:
            table = list(accumulate(max(queues) + 1 - queue for queue in queues))
            return available[bisect_right(table, drawn % table[-1])]
        return available[drawn % len(available)] if available else drawn % partitions


@dataclass(slots=True)
class Partitioner:
    """The default partitioner with one of the three ways for records without a key."""

    keyless: Keyless
    ignore_keys: bool = False
    """``partitioner.ignore.keys``: treat every record as one without a key."""

    def choose(
        self,
        topic: str,
        partitions: int,
        key: bytes | None = None,
        partition: int | None = None,
        available: Sequence[int] | None = None,
        size: int = 0,
    ) -> int:
        """The partition of one record; ``available`` are the partitions with a leader, all of them by default."""
        if partition is not None:
            return partition
        if key is not None and not self.ignore_keys:
            return partition_for(key, partitions)
        return self.keyless.next(
            topic, partitions, range(partitions) if available is None else available, size
        )


@dataclass(frozen=True, slots=True)
class KeySkew:
    """What a set of keys with weights (records, or bytes) does to a topic with this number of partitions."""

    partitions: int
    load: Weights
    """Weight per partition."""
    skew: float
    """Greatest ÷ mean load; 1 is even."""
    bound: float
    """The least skew that any number of keys per partition could have here: one key is never split."""
    hot: tuple[tuple[int, bytes, float], ...]
    """(partition, key, share of that partition's load) of the heaviest keys in the most loaded partition."""


def key_skew(keys: Sequence[bytes], weight: npt.ArrayLike, partitions: int, top: int = 5) -> KeySkew:
    """How keys spread over ``partitions``; call it with other numbers to see what they would give.

    ``bound`` is greatest key ÷ mean load, or 1 if that is less: above it more partitions do not help, re-keying does.
    """
    weights = np.asarray(weight, np.float64)
    where = partitions_for(keys, partitions)
    load = np.bincount(where, weights=weights, minlength=partitions).astype(np.float64, copy=False)
    mean = float(load.mean())
    if not mean:
        return KeySkew(partitions, load, 1.0, 1.0, ())
    fullest = int(np.argmax(load))
    inside = np.flatnonzero(where == fullest)
    heaviest = inside[np.argsort(-weights[inside], kind="stable")][:top]
    hot = tuple((fullest, keys[at], float(weights[at] / load[fullest])) for at in heaviest.tolist())
    skew, bound = float(load.max()) / mean, max(1.0, float(weights.max()) / mean)
    return KeySkew(partitions, load, skew, bound, hot)


KEYLESS: Mapping[Literal["round-robin", "sticky-batch", "sticky-bytes"], type[Keyless]] = {
    "round-robin": RoundRobin,
    "sticky-batch": StickyBatch,
    "sticky-bytes": StickyBytes,
}
"""The three ways for records without a key, oldest first."""
