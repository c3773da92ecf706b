"""Why a finding is not published: every hard gate, each with its reason in words."""

from __future__ import annotations

from kagent.detect.detectors import OF, ONE_MEMBER, SPREAD, more_urgent, skew
from kagent.detect.finding import Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.incident.confirmation import STABLE

READY = frozenset({STABLE, "Empty"})
REASONS = {
    "ignored": "the settings leave this group out (`ignore`, or one of the built-in patterns)",
    "blind": "kagent cannot see the group now, so nothing opens and nothing resolves",
    "unwatched": "the log ends were not known at its last commit; it is judged again after its next one",
    "muted": "the group is muted",
    "cooldown": "an incident of it that was as urgent was resolved a short time ago",
    "not_stable": "the group is rebalancing",
    "settling": "the group rebalanced a short time ago: the lag may come from that pause, and not from which member holds which partition",
    "evidence": "there is not enough evidence yet that the group stays behind",
    "votes": "most judgements so far found something else",
    "unsure": "the measurements do not yet tell what is wrong",
    "swing": "the inflow is higher than usual, but within its usual swings; if that goes on, it is reported",
    "draining": "at the present speed the member catches up by itself",
    "pausing": "the member paused, and makes no progress yet; if that goes on, it is reported as stuck",
    "after_pause": "the member is late because it paused; the pause is over, and it catches up by itself",
    "perhaps_slow": "its peers keep up with as much as it gets, so it may be slow, but the measurements do not show it yet",
    "set_aside": "the group could not be judged; it is tried again when its data changes",
}


def leading_first(model: GroupModel, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings, in a cooldown the first of those that it lets through at the head: what may not open now hides nothing that may."""
    if model.now >= model.state.cooldown_until:
        return findings
    lead = next((found for found in findings if found.ripe and _is_news(model, found)), None)
    return findings if lead is None else (lead, *(other for other in findings if other is not lead))


def suppression_reason(model: GroupModel, lead: Finding) -> str | None:
    """Why this finding is not published now; None if it may be."""
    if model.seen.muted:
        return "muted"
    if model.now < model.state.cooldown_until and not _is_news(model, lead):
        return "cooldown"
    if not lead.ripe:
        return waits_for(model, lead) or "evidence"
    return _spread_only(model) if lead.verdict in SPREAD else None


def waits_for(model: GroupModel, lead: Finding) -> str | None:
    """What a finding that is not ripe waits for, as in ``REASONS``; None if nothing is named."""
    # No evidence opens an incident about what drains within `hold`: a spell goes on below the limits at which it begins.
    late = lead.verdict in SPREAD and lead.missing == "evidence"
    return "draining" if late and _drains_in_time(model, lead.members[0]) else lead.missing


def _drains_in_time(model: GroupModel, member: int) -> bool:
    """Whether the member catches up in time by itself, by the likeliest values."""
    return bool(model.capacity.measured[member]) and float(model.drain[member]) <= model.policy.hold


def _is_news(model: GroupModel, lead: Finding) -> bool:
    """Whether it is news beside what resolved a short time ago: more urgent than that was, a standstill as late as a page, or something else; each
    crossing where the policy asks for them."""
    if lead.verdict is None:
        return False
    if lead.verdict in SPREAD and skew.is_literal(model.policy):
        return True
    if more_urgent(lead, model.state.cooldown_of) or _is_something_else(model, lead):
        return True
    return OF[lead.decided].URGENCY is Urgency.STANDSTILL and lead.behind >= model.policy.page_behind


def _is_something_else(model: GroupModel, lead: Finding) -> bool:
    """Whether a member falls behind after what was no such thing, or something is the matter with another member, or with other partitions."""
    # A cooldown is for a group that falls behind again and again; that a transaction ended, or members came back, says nothing of its spread,
    # nor its spread of a transaction.
    before, after = model.state.cooldown_of, lead.verdict
    if (before in SPREAD) != (after in SPREAD):
        return bool(before) and not _can_wait(lead)
    then, now = set(model.state.cooldown_partitions), _named_partitions(lead)
    if before != after:
        # What is said of the whole group holds for each of its members.
        return before in SPREAD and (after in ONE_MEMBER or bool(now)) and _is_another_member(model, lead)
    if after in ONE_MEMBER:
        return _is_another_member(model, lead)
    return bool(then and now) and not then & now


def _is_another_member(model: GroupModel, lead: Finding) -> bool:
    return model.state.cooldown_member not in {"", *(model.names[at] for at in lead.members)}


def _named_partitions(lead: Finding) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partition in lead.evidence.get("partitions", ())}


def _can_wait(lead: Finding) -> bool:
    return OF[lead.decided].URGENCY is Urgency.CAN_WAIT


def _spread_only(model: GroupModel) -> str | None:
    roster = model.roster
    # Groups without members known to the coordinator (assign(), Flink) never rebalance.
    if not model.by_member:
        return None
    if roster is None or roster.state not in READY or roster.stale:
        return "not_stable"
    return "settling" if model.settles else None
