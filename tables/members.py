"""Who is in a group: the fold of its membership records, one row a group.

Key ``<cluster>/<group>``. The row remembers each record's source offset, so a replay changes nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Group, Partition, Source
from kagent.group_key import group_key
from kagent.lag.apply_event import membership_after as apply

__all__ = ["NAME", "MembersRow", "apply"]
NAME = "members"


class MembersRow(msgspec.Struct):
    """``partition``: of the events topic; ``source``: of ``__consumer_offsets``; ``state``: GroupState as JSON."""

    cluster: Cluster
    group: Group
    partition: Partition
    source: Source
    state: dict[str, Any] | None
    version: int = 1

    @property
    def key(self) -> str:
        """The row's key."""
        return group_key(self.cluster, self.group)
