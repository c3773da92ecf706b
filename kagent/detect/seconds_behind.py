"""How many seconds a group and each of its members are behind, at least: what lists, pages and explanations show."""

from __future__ import annotations

import numpy as np

from kagent.detect.group_model import GroupModel
from kagent.detect.without_members import UnreadRecords
from kagent.lag.measure import Flags, Floats


def behind_s(model: GroupModel | None, unread: UnreadRecords | None) -> float:
    """Seconds that the group is behind: of its latest member, of the oldest unread record of a stalled partition, which counts for
    no member, or of a group without members. ``model``: None where nothing was behind."""
    oldest = unread.oldest_s if unread is not None else 0.0
    if model is None:
        return oldest
    stands = model.age[0][_waits(model) & model.excluded].max(initial=0.0)
    return float(max(oldest, stands, _lateness(model).max(initial=0.0)))


def is_late(model: GroupModel) -> bool:
    """Whether a member is behind, or a partition stands."""
    return bool((_lateness(model) > 0).any() or (_waits(model) & model.excluded).any())


def members_behind_s(model: GroupModel) -> Floats:
    """Seconds behind per member, stalled partitions included, which the judgement leaves out of the member's work."""
    behind = _lateness(model)
    stands = _waits(model) & model.excluded & (model.owner >= 0)
    np.maximum.at(behind, model.owner[stands], model.age[0][stands])
    return behind


def _lateness(model: GroupModel) -> Floats:
    """Seconds that each member is behind at least: never more than its oldest unread record is known to be old."""
    oldest = np.zeros(len(model.names))
    waits = _waits(model) & (model.owner >= 0)
    # maximum.at: an assignment by index would keep one of a member's partitions, not the greatest.
    np.maximum.at(oldest, model.owner[waits], model.age[0][waits])
    late = np.minimum(model.lateness, oldest)  # without inflow yet, the model's own is as good as endless
    return np.where(late >= 1, late, 0.0)


def _waits(model: GroupModel) -> Flags:
    """Partitions with records that were unread when the group committed."""
    return np.asarray(model.relevant & (model.columns.backlog > 0))
