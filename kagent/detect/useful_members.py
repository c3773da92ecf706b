"""The number of members that would help, for autoscalers: it moves only for reasons that more or fewer members change.

Whether a group is too small is decided by the usual inflow and takes a while. How many members it then needs is another question: a
group that is late and getting later gets what arrives now, whatever was usual, and more without a new wait if it still gets later after that.
Where a finding says how many the group needs, that is the number, at once: its evidence is longer than the wait.
Members that were not needed are taken away again after long; members that come in two steps are two rebalances and a backlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.dealing import greatest, piles_of
from kagent.detect.detectors import OF
from kagent.detect.enough_members import RAISED_MS, Enough, capacity_of
from kagent.detect.evidence import LatenessLimits
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.state import JudgeState, Useful
from kagent.lag.log_ends import LATELY_MS

LOOK_EVERY_MS = LATELY_MS
"""A group that is well is looked at for fewer members once its usual inflow is of other minutes than at the last look."""
SPREAD_ALONE, PARTITIONS, SETTLING = "spread", "partitions", "settling"


def due(state: JudgeState, now: int) -> bool:
    """Whether a group that is well is to be looked at for fewer members."""
    return state.useful is not None and now - state.useful.looked_at >= LOOK_EVERY_MS


def advance(model: GroupModel, findings: Sequence[Finding]) -> JudgeState:
    """The state after a look at how many members would help; the same object where that is not known."""
    state, still = model.state, _still(model, findings)
    capacity = capacity_of(model)
    if not model.by_member or capacity is None or not model.names:
        return state
    have = len(model.names)
    # At first sight the number that is there, at most those that get something: an autoscaler must not act because kagent started.
    known = state.useful or Useful(
        members=min(have, greatest(piles_of(model, np.arange(len(model.counted))))), capacity=capacity
    )
    known = replace(known, capacity=capacity, looked_at=model.now)
    # Waiting starts afresh after a standstill: evidence from before it says nothing of the load after it.
    if still is not None:
        raised_at = known.raised_at if still == SETTLING else 0
        return replace(
            state, useful=replace(known, because=still, more_since=0, fewer_since=0, raised_at=raised_at)
        )
    weighed, named = _weighed(model, Enough.of(model, capacity), known, have), _named(findings)
    if named > weighed.members:
        weighed = _raised(weighed, named, model.now)
    return replace(state, useful=weighed)


def _still(model: GroupModel, findings: Sequence[Finding]) -> str | None:
    """Why the number stands whatever the load, if it does."""
    state = model.state
    leading = [state.incident.verdict] if state.incident is not None else []
    for verdict in (*leading, *(finding.verdict for finding in findings[:1] if finding.verdict)):
        if not OF[Verdict(verdict)].MEMBERS_MAY_HELP:
            return str(verdict)
    if model.now - state.generation_at < model.policy.settle * 1000:
        return SETTLING
    return str(Verdict.STALLED) if state.at_rest_s and not _named(findings) else None


def _named(findings: Sequence[Finding]) -> int:
    """The number that the message of the leading finding names; 0 where it names none."""
    return int(findings[0].evidence.get("needed", 0)) if findings and findings[0].ripe else 0


def _weighed(model: GroupModel, counts: Enough, known: Useful, have: int) -> Useful:
    """What is known after this look: more at once when that has held for a while, fewer after long."""
    now, limits = model.now, LatenessLimits.of(model.policy)
    late = bool((model.lateness >= limits.on_time).any())
    if not late or now - known.raised_at > RAISED_MS:
        known = replace(known, raised_at=0)
    too_little = known.raised_at > 0 and counts.now > known.members
    enough = max(counts.usual, counts.now) if too_little else counts.usual
    because = _because(counts, late, enough, known.members)
    # Members that a person added by hand are why no member is late: they must not be scaled away again.
    if (late or have > known.members) and enough > known.members:
        since = known.more_since or now
        if not too_little and now - since < limits.growing_need * 1000:
            return replace(known, because=because, more_since=since, fewer_since=0)
        return _raised(known, max(enough, counts.now), now)
    fewest = max(counts.fewest, enough)
    return _fewer(model, replace(known, because=because, more_since=0), late, fewest)


def _raised(known: Useful, members: int, now: int) -> Useful:
    return replace(known, members=members, because="", more_since=0, fewer_since=0, raised_at=now)


def _fewer(model: GroupModel, known: Useful, late: bool, fewest: int) -> Useful:
    """Fewer members where they have been enough for as long as the policy's ``cooldown``, and for what the usual inflow looks back on:
    a member that is missed costs a backlog."""
    if late or fewest >= known.members:
        return replace(known, fewer_since=0)
    since = known.fewer_since or model.now
    # As an HPA's stabilization window: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    if model.now - since < max(model.policy.cooldown * 1000, LOOK_EVERY_MS):
        return replace(known, fewer_since=since)
    return replace(known, members=fewest, fewer_since=0)


def _because(counts: Enough, late: bool, enough: int, count: int) -> str:
    """Why no more members than ``count`` help a group that is late; empty where it is not, or more do."""
    if counts.hot:
        return str(Verdict.HOT_PARTITION)
    if not late or enough > count:
        return ""
    return PARTITIONS if count >= counts.usable else SPREAD_ALONE
