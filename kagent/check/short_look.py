"""Groups that are late and that a look was too short to judge. Pure.

A look cuts its waiting times to what it has room for, but not the evidence that a lateness stays: after a few seconds a group that is an
hour behind looks like one whose next commit is a moment away, and must not count as healthy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kagent.check.judge_cluster import PARTS, Checkup, unread_groups
from kagent.detect.capacity import USABLE
from kagent.detect.evidence import LatenessLimits
from kagent.detect.group_model import GroupModel
from kagent.policy import Policy


def least_look_s(policy: Policy) -> float:
    """The shortest look that has room for the evidence: ``min_behind``, and as much as a backlog that drains needs.

    The evidence is a share of ``hold``, and ``hold`` is cut to a part of the look: so it grows with the look, until ``hold`` is whole.
    """
    # The rest of the look is for commits, samples and ticks.
    behind, need = (
        policy.min_behind / USABLE,
        policy.evidence * LatenessLimits.of(policy).draining_need / USABLE,
    )
    share = need / (PARTS * policy.hold) if policy.hold else 0.0
    return min(behind + need, behind / (1 - share)) if share < 1 else behind + need


def unjudged(checkup: Checkup) -> Iterator[tuple[str, float]]:
    """Each group that is late and for which the look was too short, and how long a look it needs, s."""
    # Nobody reads them, and no longer look tells whether somebody will.
    unread = unread_groups(checkup)
    for group in sorted(checkup.groups.keys() - unread.keys()):
        state, least_s = checkup.state(group), least_look_s(checkup.policies(group))
        if (
            checkup.seconds < least_s
            and state is not None
            and state.incident is None
            and _late(checkup, group)
        ):
            yield group, least_s


def _late(checkup: Checkup, group: str) -> bool:
    """Whether some unread record is, or may be, as old as ``min_behind``."""
    watched = checkup.groups[group]
    if watched.seen is None or not watched.seen.consumes:
        return False
    # A model even where a cheap look found nothing: within seconds that tells nothing of records that were there before.
    _, (model, _) = checkup.explained(group)
    return any(_topic_late(model, code) for code in range(len(model.lags.topics)))


def _topic_late(model: GroupModel, code: int) -> bool:
    lags, ends = model.lags, model.seen.ends[model.lags.topics[code]]
    rows = np.flatnonzero(model.relevant & (lags.topic == code) & (lags.shown > model.policy.allowed_lag))
    partitions, times = lags.partition[rows], np.full(len(rows), model.seen.now)
    late_s, older = ends.late(partitions, lags.committed[rows], times)
    # Where nothing arrives no rate says how long ago the records came that were there before the look.
    unknown = older & (ends.end[partitions] == ends.at(0)[partitions])
    return bool((unknown | (late_s >= model.policy.min_behind)).any())
