"""The history of log ends, coarse, so that time lag and judged lag survive a restart: one row a topic and partition.

Key ``<partition of the events topic>/<cluster>/<topic>``: every partition keeps the topics that its own groups read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Partition

NAME = "ends"


class EndsRow(msgspec.Struct):
    """``partition``: of the events topic; ``history``: kagent.lag.log_ends.EndHistory as JSON."""

    cluster: Cluster
    topic: str
    partition: Partition
    history: dict[str, Any]
    version: int = 1

    @property
    def key(self) -> str:
        """The row's key."""
        return key(self.partition, self.cluster, self.topic)


def key(partition: int, cluster: str, topic: str) -> str:
    """The row's key."""
    return f"{partition}/{cluster}/{topic}"
