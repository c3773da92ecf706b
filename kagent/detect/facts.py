"""What several detectors ask of a group: the worst places, names for evidence, where a transaction is open."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.detect.group_model import GroupModel
from kagent.lag.measure import Flags, Floats
from kagent.lag.membership import NOBODY

# Bounds of a message: places listed in its evidence, and places that a finding keeps.
NAMED = 20
ROWS = 200


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


def at_stable(model: GroupModel) -> Flags:
    """Partitions whose commit stands at the last stable offset while the log goes on beyond it: a transaction is open."""
    lags, allowed = model.lags, model.policy.allowed_lag
    # UNKNOWN (-1) where a sample came without last stable offsets, or the partition's leader did not answer.
    open_ = (lags.stable >= 0) & (lags.stable < lags.end - allowed)
    return np.asarray(open_ & (lags.committed >= lags.stable - allowed))


def few_moves(model: GroupModel, topic: str) -> bool:
    """Whether the group has been seen to commit to the topic less than three times: its cadence is unknown."""
    row = model.seen.commits.get(topic)
    return row is None or row.commits < 3
