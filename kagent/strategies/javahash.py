"""The orders of Java: of strings, and of what iterates over a HashMap.

Kafka's assignors walk over ``HashMap`` and ``HashSet``, so who gets which partition sometimes hangs on the order in
which Java iterates. These functions say that order without keeping a map: the place of a key is its bucket, and the
keys of a bucket stand in a chain (OpenJDK 17, ``java.util.HashMap``).

    hash      String: h = 31·h + unit over the UTF-16 code units; Integer: the number; all in 32 bits, wrapping
    bucket    (h ^ h >>> 16) & (capacity − 1); capacity is a power of two
    chain     put and add append at the tail, computeIfAbsent at the head; growing keeps the order of those that stay
              together
    growth    the capacity doubles once there are more than 0.75 × capacity keys, and when a chain reaches nine keys
              while the capacity is below 64 (from there on a chain becomes a tree, which is not followed here);
              computeIfAbsent doubles late, at the next call, whether that finds its key or not, and with eight
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint32]

# https://github.com/openjdk/jdk/blob/jdk-17-ga/src/java.base/share/classes/java/util/HashMap.java
INITIAL_CAPACITY = 16
LOAD_FACTOR = 0.75
TREEIFY_THRESHOLD = 8
MIN_TREEIFY_CAPACITY = 64


def string_key(text: str) -> bytes:
    """The sort key of ``String.compareTo``: UTF-16 code units, which differ from code points beyond U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


def string_sorted(names: Iterable[str]) -> list[str]:
    """The names in the order of ``String.compareTo``."""
    listed = list(names)
    # Within ASCII the order of code points is the order of UTF-16 units, and no key has to be made.
    return sorted(listed) if all(map(str.isascii, listed)) else sorted(listed, key=string_key)


def string_ranks(names: Sequence[str]) -> Ints:
    """For each name its place in the order of ``String.compareTo`` (the names are distinct)."""
    ranks = np.empty(len(names), np.int64)
    ranks[string_order(names)] = np.arange(len(names))
    return ranks


def string_order(names: Sequence[str]) -> Ints:
    """The places of the names in the order of ``String.compareTo``."""
    keys = names if all(map(str.isascii, names)) else [string_key(name) for name in names]
    return np.array(sorted(range(len(names)), key=keys.__getitem__), np.int64)


def string_hashes(names: Sequence[str]) -> Hashes:
    """``String.hashCode`` of each name, as unsigned 32 bits."""
    units = np.frombuffer("".join(names).encode("utf-16-le", "surrogatepass"), "<u2").astype(np.uint32)
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    if int(lengths.sum()) != len(units):  # some are beyond U+FFFF and take two units
        lengths = np.array([len(name.encode("utf-16-le", "surrogatepass")) // 2 for name in names])
    # Strings of one length are a matrix: one product with the powers of 31, wrapping at 32 bits as Java's int does.
    if len(units) and (lengths == lengths[0]).all():
        return units.reshape(len(names), -1) @ _powers(int(lengths[0]))
    hashes, starts = np.zeros(len(names), np.uint32), np.cumsum(lengths) - lengths
    for length in (np.flatnonzero(np.bincount(lengths)[1:]) + 1).tolist():
        rows = np.flatnonzero(lengths == length)
        hashes[rows] = units[starts[rows, None] + np.arange(length)] @ _powers(length)
    return hashes


@lru_cache(maxsize=1024)
def _powers(length: int) -> Hashes:
    """Powers of 31, the greatest first."""
    return np.multiply.accumulate(np.array([1] + [31] * (length - 1), np.uint32))[::-1]


def partition_hash(topic_hash: int, partition: int) -> int:
    """``TopicPartition.hashCode``."""
    return (31 * (31 + partition) + topic_hash) & 0xFFFFFFFF


def capacity_for(expected: int) -> int:
    """The capacity of ``new HashMap<>(expected)``: the next power of two."""
    return 1 << max(0, expected - 1).bit_length()


def copy_capacity(size: int) -> int:
    """The capacity of ``new HashSet<>(collection)`` of that size."""
    return capacity_for(max(int(size / LOAD_FACTOR) + 1, INITIAL_CAPACITY))


def order_of_puts(hashes: Hashes, capacity: int = INITIAL_CAPACITY) -> Ints:
    """Positions of the distinct keys in iteration order, having been put in the order given."""
    spread = hashes ^ (hashes >> np.uint32(16))
    # A stable sort by bucket is the iteration: within a bucket the chain keeps the order of the puts, also when it is split.
    grown = _grown(spread, capacity)
    return np.argsort(spread & np.uint32(grown - 1), kind="stable")


def order_of_computes(hashes: Hashes, asked_again: bool) -> Ints:
    """The same for keys that came in by ``computeIfAbsent``; ``asked_again``: a call followed the last new key."""
    spread = hashes ^ (hashes >> np.uint32(16))
    count = len(spread)
    capacity = INITIAL_CAPACITY
    # computeIfAbsent doubles before it looks, when the size is already beyond the limit; put doubles after it inserted.
    while (count if asked_again else count - 1) > LOAD_FACTOR * capacity:
        capacity *= 2
    if capacity < MIN_TREEIFY_CAPACITY and count >= TREEIFY_THRESHOLD:
        capacity = _computed_with_chains(spread.tolist(), asked_again)
    # It inserts at the head of the chain, so the latest of a bucket is met first.
    latest_first = np.arange(count)[::-1]
    bucket = (spread & np.uint32(capacity - 1))[latest_first]
    ordered: Ints = latest_first[np.argsort(bucket, kind="stable")]
    return ordered


def _computed_with_chains(spread: list[int], asked_again: bool) -> int:
    capacity = INITIAL_CAPACITY
    for size, key in enumerate(spread):
        if size > LOAD_FACTOR * capacity:
            capacity *= 2
        crowd = sum(not (key ^ earlier) & (capacity - 1) for earlier in spread[: size + 1])
        if crowd >= TREEIFY_THRESHOLD and capacity < MIN_TREEIFY_CAPACITY:
            capacity *= 2
    return capacity * 2 if asked_again and len(spread) > LOAD_FACTOR * capacity else capacity


def _grown(spread: Hashes, capacity: int) -> int:
    final = capacity
    while len(spread) > LOAD_FACTOR * final:
        final *= 2
    # treeifyBin: a chain of nine keys doubles a small table, so the number of keys alone does not say the capacity.
    if final < MIN_TREEIFY_CAPACITY and len(spread) > TREEIFY_THRESHOLD:
        return _grown_with_chains(spread.tolist(), capacity)
    return final


def _grown_with_chains(spread: list[int], capacity: int) -> int:
    chains = [0] * capacity
    for size, key in enumerate(spread, 1):
        bucket = key & (capacity - 1)
        chains[bucket] += 1
        full = size > LOAD_FACTOR * capacity
        if full or (chains[bucket] > TREEIFY_THRESHOLD and capacity < MIN_TREEIFY_CAPACITY):
            capacity *= 2
            chains = [0] * capacity
            for earlier in spread[:size]:
                chains[earlier & (capacity - 1)] += 1
    return capacity


class HashSet:
    """A ``java.util.HashSet`` of integers' stand-ins, kept only where elements come and go between two looks.

    ``first()`` is what ``iterator().next()`` gives. Sets here stay small: it is a list of chains.
    """

    __slots__ = ("_chains", "_size")

    def __init__(self) -> None:
        self._chains: list[list[tuple[int, int]]] = [[] for _ in range(INITIAL_CAPACITY)]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, element: int, hash_code: int) -> None:
        """Add an element that is not there yet, under its Java hash."""
        spread = hash_code ^ (hash_code >> 16)
        chain = self._chains[spread & (len(self._chains) - 1)]
        chain.append((element, spread))
        self._size += 1
        crowded = len(chain) > TREEIFY_THRESHOLD and len(self._chains) < MIN_TREEIFY_CAPACITY
        if crowded or self._size > LOAD_FACTOR * len(self._chains):
            self._grow()

    def remove(self, element: int, hash_code: int) -> None:
        """Remove an element; the table never shrinks."""
        spread = hash_code ^ (hash_code >> 16)
        self._chains[spread & (len(self._chains) - 1)].remove((element, spread))
        self._size -= 1

    def first(self) -> int:
        """The element that iteration meets first."""
        return next(chain[0][0] for chain in self._chains if chain)

    def _grow(self) -> None:
        capacity = 2 * len(self._chains)
        chains: list[list[tuple[int, int]]] = [[] for _ in range(capacity)]
        for chain in self._chains:
            for element, spread in chain:
                chains[spread & (capacity - 1)].append((element, spread))
        self._chains = chains
