"""What a group has committed on a topic: one row a group and topic, with parallel lists over its partitions.

Key ``<cluster>/<group>/<topic>``; a topic's name has no slash. One row for a whole group could pass the broker's message
limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Group, Partition
from kagent.contract.events import GroupEvent, TopicOffsets, TopicTombstones
from kagent.lag.commits import TopicCommits
from kagent.lag.commits import apply as commit

NAME = "lag"


class LagRow(msgspec.Struct):
    """``partition``: of the events topic; ``commits``: kagent.lag.commits.TopicCommits as JSON."""

    cluster: Cluster
    group: Group
    topic: str
    partition: Partition
    commits: dict[str, Any]
    version: int = 1


def key(group_key: str, topic: str) -> str:
    """The row's key."""
    return f"{group_key}/{topic}"


def apply(known: Mapping[str, TopicCommits], event: GroupEvent) -> dict[str, TopicCommits]:
    """The topics whose rows the event changes, by name. What is older than what is known changes nothing."""
    changed: dict[str, TopicCommits] = {}
    updates: list[TopicOffsets | TopicTombstones] = [*event.offsets, *event.tombstones]
    for update in updates:
        before = changed.get(update.topic) or known.get(update.topic)
        after = commit(before, update)
        if after is not before:
            changed[update.topic] = after
    return changed
