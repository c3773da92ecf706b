"""What several detectors ask of a group: the worst places, names for evidence, where a transaction is open."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.detect.finding import ROWS, Finding
from kagent.detect.group_model import GroupModel
from kagent.lag.bound import Bound
from kagent.lag.measure import Flags, Floats, held_up
from kagent.lag.membership import NOBODY
from kagent.text import span

NAMED: Bound = 20
"""Places that are listed in the evidence of a message."""


def worst(which: Flags, by: Floats | npt.NDArray[np.int64], limit: int = ROWS) -> tuple[int, ...]:
    """The places where it holds, greatest first."""
    rows = np.flatnonzero(which)
    return tuple(rows[np.argsort(-by[rows], kind="stable")][:limit].tolist())


def named(model: GroupModel, rows: tuple[int, ...]) -> list[list[Any]]:
    """Topic and partition of the first of these places."""
    return [list(model.lags.name(at)) for at in rows[:NAMED]]


def holders(model: GroupModel, rows: tuple[int, ...]) -> tuple[int, ...]:
    """Codes of the members that hold these partitions, each once."""
    return tuple(dict.fromkeys(int(model.owner[at]) for at in rows if model.owner[at] != NOBODY))


def behind(model: GroupModel, finding: Finding) -> str:
    """How late the worst member is, in words; at least so where its oldest unread record is older than the known log ends."""
    at = finding.members[0]
    older = model.counted & (model.owner == at) & (model.columns.backlog > 0) & model.age[1]
    is_more = older.any() and model.lateness[at] > finding.behind
    return f"{'at least ' if is_more else ''}{span(finding.behind)} behind"


def at_stable(model: GroupModel) -> Flags:
    """Partitions whose commit stands at the last stable offset while the log goes on beyond it: a transaction is open."""
    return held_up(model.lags, model.policy.allowed_lag)


def cadence_s(model: GroupModel, topic: str) -> float | None:
    """The usual time between two commits of a partition of the topic; None where it is unknown (``usual_gaps_ms``)."""
    gap_ms = model.columns.usual_gaps_ms.get(topic)
    return None if gap_ms is None else gap_ms / 1000
