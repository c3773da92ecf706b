"""What is remembered of a group's judgement: one row a group.

Key ``<cluster>/<group>``. The open incident stands here with its id, so that a restart neither forgets nor repeats it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Cluster, Group, Partition
from kagent.detect.state import JudgeState
from kagent.group_key import group_key

NAME = "verdicts"


class VerdictRow(msgspec.Struct):
    """``partition``: of the events topic; ``state``: kagent.detect.state.JudgeState as JSON."""

    cluster: Cluster
    group: Group
    partition: Partition
    state: dict[str, Any]
    version: int = 1

    @property
    def key(self) -> str:
        """The row's key."""
        return group_key(self.cluster, self.group)


def apply(before: JudgeState | None, after: JudgeState) -> dict[str, Any] | None:
    """The row's new content, or None if nothing changed that must outlive the process."""
    # The time of the last tick alone is no reason to write a row: it changes at every tick.
    if after is before or (before is not None and before.lasting() == after.lasting()):
        return None
    return after.to_row()
