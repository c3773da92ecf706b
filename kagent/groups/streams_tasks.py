"""What the tasks of a group of Kafka Streams' own protocol read (KIP-1071), in the field names of its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Topology = Mapping[str, Any]


def sources_of(topology: Topology) -> dict[str, list[str]]:
    """Subtopology id → the topics that it reads."""
    # The coordinator answers null, and no empty list, for a group without a topology.
    return {sub["subtopologyId"]: _read_by(sub) for sub in topology.get("subtopologies") or ()}


def _read_by(subtopology: Mapping[str, Any]) -> list[str]:
    repartition = (topic["name"] for topic in subtopology["repartitionSourceTopics"])
    return [*subtopology["sourceTopics"], *repartition]


def partitions_read(
    tasks: Iterable[Mapping[str, Any]], sources: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, list[int]]]:
    """Topic and partitions of each task's topics: task p of a subtopology reads partition p of each of them.

    A topic with fewer partitions than its subtopology has tasks is not recognised: neither records nor answers have partition counts.
    """
    for task in tasks:
        for topic in sources.get(task["subtopologyId"], ()):
            yield topic, task["partitions"]
