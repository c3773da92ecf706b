"""Whether what is found of a group with an open incident is worth another message."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.recommendation import Severity
from kagent.detect.detectors import OF, ONE_MEMBER, SPREAD, more_urgent, open_transaction
from kagent.detect.finding import Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident
from kagent.incident.assignment_change import settled
from kagent.incident.void import taken_back_after_s
from kagent.lag.chance import TAIL
from kagent.policy import Policy

GROWN = TAIL
"""So is a lateness that has doubled: a dozen updates from a minute to days, and a reader is never wrong by more than half."""


def with_other_verdict(model: GroupModel, incident: Incident, lead: Finding) -> Incident:
    """With since when another verdict than the published one leads; 0 if none does."""
    other = str(lead.verdict) != incident.verdict and not _same_standstill(model, incident, lead)
    return replace(incident, other_since=(incident.other_since or model.now) if other else 0)


def is_news(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether another message is due: for another verdict, another assignment, more members, or figures that mislead."""
    if incident.other_since:
        return more_urgent(lead, incident.verdict) or not _may_swing_back(model, incident, lead)
    # A plan for members that are gone is replaced, but only once the new assignment has settled.
    if (incident.superseded and settled(model, incident)) or _names_more(model, incident, lead):
        return True
    # Of a group that is seen now and then figures are no news: publishing them would take `stale` back, and it would be on and off.
    return not incident.stale and (
        _escalates(model.policy, incident, lead) or _misleads(model, incident, lead)
    )


def _misleads(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether what was published is old enough to be published again, and its figures do not hold any more."""
    if model.now - incident.sent_at < model.policy.update_every * 1000 or _may_be_over(model, lead):
        return False
    return _moved(model, incident, lead) or _runs_out(model, incident)


def _names_more(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether the same is found of more members than the message named, some time after it."""
    others = [len(action["params"].get("others", ())) for action in incident.message["actions"]]
    named = 1 + max(others, default=0)
    waited = model.now - incident.sent_at >= taken_back_after_s(model.policy) * 1000
    return waited and lead.verdict in ONE_MEMBER and len(lead.members) > named


def _moved(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether the figures that were published mislead by now."""
    later = lead.behind >= GROWN * incident.behind > 0
    # A skew that changed by as much as a plan must gain is worth an update, where the skew is the matter.
    uneven = abs(model.skew - incident.skew) > model.policy.min_gain * incident.skew
    return later or (lead.verdict in SPREAD and uneven)


def _may_be_over(model: GroupModel, lead: Finding) -> bool:
    """Whether by what came in the last minute the member catches up much sooner than by what usually comes: its lateness goes on to rise
    while it reads what came at the worst time, and the load may be gone."""
    if lead.verdict not in SPREAD or not lead.members:
        return False
    at = lead.members[0]
    return bool(model.drain_as_lately(at) * TAIL < model.drain[at])


def _runs_out(model: GroupModel, incident: Incident) -> bool:
    """Whether what was published may not be acted on any more before the next time that it can be published: what still holds must
    not be refused as expired by those who follow it."""
    left_ms = int(incident.message["valid_until"]) - model.now
    return left_ms < model.policy.update_every * 1000


def _escalates(policy: Policy, incident: Incident, lead: Finding) -> bool:
    """Whether a standstill that was published as a ticket is a page by now."""
    ticket = incident.message.get("severity") == Severity.TICKET and lead.verdict not in policy.severity
    return ticket and OF[lead.decided].URGENCY is Urgency.STANDSTILL and lead.behind >= policy.page_behind


def _may_swing_back(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether another verdict is no news yet."""
    # Verdicts near a boundary swing from look to look; each change would be a notification.
    if model.now - incident.other_since < taken_back_after_s(model.policy) * 1000:
        return True
    # While a late group drains, what was published stands, whatever the spread of the rest looks like.
    return lead.verdict in SPREAD and model.longest_drain < float("inf")


def _same_standstill(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether it only looks otherwise because the last stable offset was not asked for this time."""
    return incident.verdict == open_transaction.VERDICT and open_transaction.looks_like(model, lead)
