"""Another assignment than the one that an incident rests on: whether it supersedes what was advised, and whether it was advised."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.recommendation import Verdict
from kagent.detect.detectors import OF
from kagent.detect.finding import Asks
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident
from kagent.incident.followed import followed
from kagent.incident.lateness_left import latest_s


def noticed(model: GroupModel, incident: Incident) -> Incident:
    """Another assignment than the one it rests on: superseded, and followed if it stays and is one that was advised."""
    roster = model.roster
    if roster is None or not model.by_member:
        return incident
    # Once another assignment superseded it, it stays so: a group that rebalances twice may well return to the digest it had.
    was_changed = incident.superseded and incident.changed_at is not None
    if roster.assignment == incident.digest and not was_changed:
        return incident
    if not incident.superseded and _rests_on_assignment(incident):
        incident = replace(incident, superseded=True, changed_at=model.now)
    elif incident.changed_at is None:
        incident = replace(incident, changed_at=model.now)
    # A rolling restart passes through many assignments and numbers of members.
    if incident.followed_at is not None or not settled(model, incident):
        return incident
    done = followed(roster, incident)
    if done is None:
        return incident
    return replace(
        incident,
        predicted_drain=done.drain,
        predicted_skew=done.skew,
        followed_at=last_changed(model, incident),
        followed_behind=round(latest_s(model), 1),
    )


def _rests_on_assignment(incident: Incident) -> bool:
    """Whether what was advised is void under another assignment. A finding about a partition holds under any reader: a member that crashes at
    a record brings another assignment each time."""
    return OF[Verdict(incident.verdict)].ASKS is Asks.ASSIGNMENT


def settled(model: GroupModel, incident: Incident) -> bool:
    """Whether the group has stayed as it is for so long that its assignment can be judged."""
    return model.as_of - last_changed(model, incident) >= model.policy.settle * 1000


def settling(model: GroupModel, incident: Incident) -> bool:
    """Whether the end waits for the group to settle; not for ever, as one that rebalances all the time never does."""
    since = model.now - (incident.changed_at or 0)
    return not settled(model, incident) and since < model.policy.await_drain * 1000


def last_changed(model: GroupModel, incident: Incident) -> int:
    """When who is in the group or who holds what last changed under the incident, ms; 0 if it did not."""
    return max(incident.changed_at, model.state.assigned_at) if incident.changed_at is not None else 0


def in_effect(model: GroupModel, incident: Incident) -> bool:
    """Whether advice was followed so lately that its effect is still to come."""
    if incident.followed_at is None:
        return False
    # A member that gets later once the rebalance is over was not helped: that is the matter again.
    worse_s = model.policy.settle + model.policy.min_behind
    if incident.followed_behind is not None and latest_s(model) > incident.followed_behind + worse_s:
        return False
    expected = model.policy.settle + 3 * (incident.predicted_drain or model.policy.await_drain)
    return model.now - incident.followed_at < min(model.policy.await_drain, expected) * 1000
