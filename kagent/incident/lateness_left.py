"""How late the members of a group with an open incident still are: that the cause is gone is not the end, the backlog that it left must
be gone too."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.recommendation import Verdict
from kagent.detect.detectors import SPREAD, skew
from kagent.detect.evidence import LatenessLimits
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident


def latest_s(model: GroupModel) -> float:
    """The lateness of the latest member, s."""
    return float(model.lateness.max(initial=0.0))


def drained(model: GroupModel) -> bool:
    """Whether every member is on time, and no partition that has been set aside is late."""
    return not _is_late(model, max(LatenessLimits.of(model.policy).on_time, 1.0))


def _is_late(model: GroupModel, limit_s: float) -> bool:
    # What is set aside is left out of its member's lateness, as it says nothing of the member's work.
    aside = model.excluded & model.relevant & (model.columns.waiting_since > 0)
    return bool((model.lateness >= limit_s).any() or (model.age[0][aside] >= limit_s).any())


def drained_since(model: GroupModel, incident: Incident) -> Incident:
    """With since when every member has been on time."""
    if not drained(model):
        return replace(incident, drained_at=None) if incident.drained_at is not None else incident
    return replace(incident, drained_at=model.as_of) if incident.drained_at is None else incident


def with_nothing_found(model: GroupModel, incident: Incident) -> Incident:
    """With since when nothing has been found, how far behind the latest member is since then, and since when it has been so."""
    incident = replace(incident, nothing_since=incident.nothing_since or model.now)
    behind, before = latest_s(model), incident.least_behind
    # By as much as counts as late: what a group is late on purpose swings by less. Nor is it over while a member gets later.
    if before is not None and abs(behind - before) <= max(model.policy.min_behind, 1.0):
        return incident
    return replace(incident, least_behind=round(behind, 1), least_at=model.now)


def still_late(model: GroupModel, incident: Incident) -> bool:
    """Whether a member is still late: that the cause is gone is not the end, the backlog that it left must be gone too."""
    if skew.is_literal(model.policy):
        # The lower threshold resolves: with the same one, a skew that swings around it would open and resolve all day.
        return Verdict(incident.verdict) in SPREAD and model.skew >= model.policy.lower_threshold
    late = _is_late(model, max(LatenessLimits.of(model.policy).over, 1.0))
    # A group that is late on purpose gets neither nearer nor later; its incident must not stay open for ever. A day without a look, or that a
    # clock jumped over, is no time in which it could.
    since = max(incident.least_at, model.seen.present_since)
    return late and model.now - since < model.policy.await_drain * 1000
