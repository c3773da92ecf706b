"""In which condition a group is. Decided here alone: for the explanation, the API, the page and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from kagent.detect.detectors import stalled_partition
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.seconds_behind import members_behind_s, uncommitted_s

Condition = Literal["open", "suspect", "blind", "no_members", "healthy"]
"""open: an incident is open; suspect: something is the matter, or a member is late or a partition stands and kagent does not know
yet whether it stays so, not published (yet); blind: not judged now; no_members: records wait in a group without members, not published (yet)."""


def condition_of(*, blind: bool, is_open: bool, verdict: str, unread: bool, waits: bool) -> Condition:
    """The condition of a group with this leading verdict; ``unread``: records wait in it, and it has no members; ``waits``: what was
    found needs more evidence, see :func:`waits_for_evidence`."""
    if blind:
        return "blind"
    if is_open:
        return "open"
    if verdict != "balanced":
        return "suspect"
    if unread:
        return "no_members"
    return "suspect" if waits else "healthy"


def waits_for_evidence(model: GroupModel | None, findings: Sequence[Finding]) -> bool:
    """Whether a member is late, or commits nothing while records wait, or a partition stands beside a member with time for it, and there is
    not enough evidence yet to report it."""
    if model is None:
        return False
    if findings or float(uncommitted_s(model).max(initial=0.0)) >= model.policy.min_behind:
        return True
    return is_late_for_now(model) or stalled_partition.next_to_find(model) is not None


def is_late_for_now(model: GroupModel) -> bool:
    """Whether a member is late, and not on purpose: as after a rebalance, when what it is late by may still come from that."""
    late = np.flatnonzero(members_behind_s(model) >= max(model.policy.min_behind, 1.0)).tolist()
    return any(not model.waits_on_purpose(at) for at in late)
