"""Who is in a group: the fold of its membership records, one row a group.

Key ``<cluster>/<group>``. The row remembers each record's source offset, so a replay changes nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Group, Partition
from kagent.contract.events import GroupEvent
from kagent.groups import GroupState
from kagent.groups import apply_all as fold
from kagent.offsets import Record

NAME = "members"


class MembersRow(msgspec.Struct):
    """``partition``: of the events topic; ``source``: of ``__consumer_offsets``; ``state``: GroupState as JSON."""

    cluster: Cluster
    group: Group
    partition: Partition
    source: int
    state: dict[str, Any] | None
    version: int = 1


def apply(state: GroupState | None, event: GroupEvent) -> GroupState | None:
    """The group after the event's records, in log order. A record that is older than what is known changes nothing."""
    return fold(state, [(Record.from_json(r.record), r.source_offset, r.time) for r in event.records])
