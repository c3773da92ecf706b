"""What is remembered of a group's judgement: one row a group.

Key ``<cluster>/<group>``. The open incident stands here with its id, so that a restart neither forgets nor repeats it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.advice.state import JudgeState
from kagent.contract.admission import Cluster, Group, Partition

NAME = "verdicts"


class VerdictRow(msgspec.Struct):
    """``partition``: of the events topic; ``state``: kagent.advice.state.JudgeState as JSON."""

    cluster: Cluster
    group: Group
    partition: Partition
    state: dict[str, Any]
    version: int = 1


def apply(before: JudgeState | None, after: JudgeState) -> dict[str, Any] | None:
    """The row's new content, or None if nothing changed that must outlive the process."""
    if after is before or (before is not None and _lasting(before) == _lasting(after)):
        return None
    return after.to_row()


def _lasting(state: JudgeState) -> dict[str, Any]:
    row = state.to_row()
    row.pop("last_tick", None)
    return row
