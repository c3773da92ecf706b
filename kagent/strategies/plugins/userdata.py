"""The sticky assignors' user data, as Java writes it, so that members of all clients understand each other.

array   int32 count, then per topic: string (int16 length, UTF-8), int32 count, int32 per partition
int32   generation (since Kafka 2.3; the first version lacks it)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

Pairs = list[tuple[str, int]]

NO_GENERATION = -1


def encode(owned: Iterable[tuple[str, int]], generation: int) -> bytes:
    """The bytes that say what a member owns, and since which generation."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in owned:
        by_topic.setdefault(topic, []).append(partition)
    return _topics(by_topic) + struct.pack(">i", generation)


def _topics(by_topic: Mapping[str, list[int]]) -> bytes:
    parts = [struct.pack(">i", len(by_topic))]
    for topic, partitions in by_topic.items():
        name = topic.encode("utf-8")
        parts.append(
            struct.pack(f">h{len(name)}si{len(partitions)}i", len(name), name, len(partitions), *partitions)
        )
    return b"".join(parts)


def decode(data: bytes | None) -> tuple[Pairs, int | None]:
    """What a member says it owns, and its generation.

    None without a generation; bytes that are not user data say nothing, in generation −1, as in Java.
    """
    if not data:
        return [], None
    try:
        return _decoded(data)
    except (struct.error, UnicodeDecodeError, ValueError):
        return [], NO_GENERATION


def _decoded(data: bytes) -> tuple[Pairs, int | None]:
    owned: Pairs = []
    # No version stands before it: what follows the partitions tells whether a generation was written.
    (topics,) = struct.unpack_from(">i", data)
    at = 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data, at)
        if length < 0:
            raise ValueError(length)
        (name, count) = struct.unpack_from(f">{length}si", data, at + 2)
        at += 6 + length
        # Checked before unpacking: a damaged count would ask for two billion numbers.
        if not 0 <= count <= (len(data) - at) // 4:
            raise ValueError(count)
        owned.extend(
            (name.decode("utf-8"), partition) for partition in struct.unpack_from(f">{count}i", data, at)
        )
        at += 4 * count
    if at == len(data):
        return owned, None
    (generation,) = struct.unpack_from(">i", data, at)
    return owned, generation
