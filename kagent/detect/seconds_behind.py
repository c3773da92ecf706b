"""How many seconds a group and each of its members are behind, at least: what lists, pages and explanations show."""

from __future__ import annotations

import numpy as np

from kagent.detect.group_model import GroupModel
from kagent.detect.signs import young_ms
from kagent.detect.without_members import UnreadRecords
from kagent.lag.measure import Flags, Floats, Longs
from kagent.lag.membership import NOBODY


def behind_s(model: GroupModel | None, unread: UnreadRecords | None) -> float:
    """Seconds that the group is behind: of its latest member, of the oldest unread record of a stalled partition, which counts for
    no member, or of a group without members. ``model``: None where nothing was behind."""
    oldest = unread.oldest_s if unread is not None else 0.0
    if model is None:
        return oldest
    model = model.as_it_is
    stands = model.age[0][_waits(model) & model.excluded].max(initial=0.0)
    return float(max(oldest, stands, _lateness(model).max(initial=0.0)))


def is_late(model: GroupModel) -> bool:
    """Whether a member is behind, or a partition stands."""
    model = model.as_it_is
    return bool((_lateness(model) > 0).any() or (_waits(model) & model.excluded).any())


def members_behind_s(model: GroupModel) -> Floats:
    """Seconds behind per member, stalled partitions included, which the judgement leaves out of the member's work."""
    model = model.as_it_is
    behind = _lateness(model)
    stands = _waits(model) & model.excluded & (model.owner >= 0)
    np.maximum.at(behind, model.owner[stands], model.age[0][stands])
    return behind


def uncommitted_s(model: GroupModel) -> Floats:
    """Age of each member's oldest uncommitted record, s, where the member has committed nothing for longer than usual since that record
    came; else 0. The model's lateness is that of the latest commit, and tells nothing of what came after it."""
    columns, waits = model.columns, _uncommitted(model)
    owner = model.owner[waits]
    # The greatest integer stands for "nothing waits", so that np.minimum.at can find the least.
    since = np.full(columns.members, np.iinfo(np.int64).max)
    np.minimum.at(since, owner, columns.waiting_since[waits])
    oldest = np.zeros(columns.members)
    np.maximum.at(oldest, owner, model.age[0][waits])
    usual = np.array([young_ms(1000 * gap) for gap in columns.gap.tolist()], np.int64)
    return np.where(model.as_of - np.maximum(columns.committed_at, since) > usual, oldest, 0.0)


def without_commit(model: GroupModel) -> Longs:
    """Places of the partitions with records that a member holds and whose group never committed on their topic: how far it is behind
    there is not known."""
    lags = model.lags
    return np.flatnonzero(~lags.known & (lags.owner != NOBODY) & (lags.end > lags.start))


def is_unknown(model: GroupModel) -> bool:
    """Whether a member holds records of which the group's commits do not tell how far behind it is."""
    committed = model.columns.committed_at[np.unique(model.owner[model.owner >= 0])]
    return bool(len(without_commit(model))) or not committed.all()


def _uncommitted(model: GroupModel) -> Flags:
    """Held partitions with records that are not committed now."""
    return np.asarray(model.relevant & (model.owner >= 0) & (model.columns.waiting_since > 0))


def _lateness(model: GroupModel) -> Floats:
    """Seconds that each member is behind at least: at its latest commit; where its commits stay away, as old as its oldest uncommitted record is."""
    late = model.least_lateness
    return np.maximum(np.where(late >= 1, late, 0.0), uncommitted_s(model))


def _waits(model: GroupModel) -> Flags:
    """Partitions with records that were unread when the group committed."""
    return np.asarray(model.relevant & (model.columns.backlog > 0))
