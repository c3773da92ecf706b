"""What a group has committed on a topic: one row a group and topic, with parallel lists over its partitions.

Key ``<cluster>/<group>/<topic>``; a topic's name has no slash. One row for a whole group could pass the broker's message
limit.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Group, Partition
from kagent.lag.apply_event import commits_after as apply

__all__ = ["NAME", "LagRow", "apply", "key"]
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
