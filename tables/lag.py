"""What a group has committed on a topic: one row a group and topic, with parallel lists over its partitions.

Key ``<cluster>/<group>/<topic>``; a topic's name has no slash. One row for a whole group could pass the broker's message
limit.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Group, Partition
from kagent.group_key import group_key
from kagent.lag.apply_event import commits_after as apply
from kagent.lag.commits import TopicCommits

__all__ = ["NAME", "LagRow", "apply", "commits_of", "key"]
NAME = "lag"


class LagRow(msgspec.Struct):
    """``partition``: of the events topic; ``commits``: kagent.lag.commits.TopicCommits, or its JSON where the row was read.

    A row that waits to be written holds the object: it becomes JSON once a flush, not at every event.
    """

    cluster: Cluster
    group: Group
    topic: str
    partition: Partition
    commits: Any
    version: int = 1

    @property
    def key(self) -> str:
        """The row's key."""
        return key(group_key(self.cluster, self.group), self.topic)


def key(of_group: str, topic: str) -> str:
    """The row's key."""
    return f"{of_group}/{topic}"


def commits_of(row: LagRow) -> TopicCommits:
    """The commits that a row holds. Raises Refused for what no release can have written."""
    return row.commits if isinstance(row.commits, TopicCommits) else TopicCommits.from_row(row.commits)
