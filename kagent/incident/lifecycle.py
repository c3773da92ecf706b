"""The life of an incident: opened, updated, superseded, resolved; one id from first to last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kagent.contract.recommendation import (
    Action,
    ActionType,
    Outcome,
    Recommendation,
    Resolution,
    Severity,
    Status,
    Verdict,
)
from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.detectors import OF, ONE_MEMBER, SPREAD, more_urgent, open_transaction, skew
from kagent.detect.evidence import LatenessLimits
from kagent.detect.finding import ROWS, Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident, JudgeState, OtherAction
from kagent.incident.followed import followed, unfollowed
from kagent.incident.void import is_void, taken_back_after_s
from kagent.lag.chance import TAIL
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.recommend.render import Diagnosis, compose, diagnose

GROWN = TAIL
"""So is a lateness that has doubled: a dozen updates from a minute to days, and a reader is never wrong by more than half."""
LASTING = ("calm_since", "other_since", "nothing_since", "least_at")
"""Since when something has been so that must last for some time before anything follows from it."""
COUNTS = (ActionType.SET_MEMBER_COUNT, ActionType.RAISE_PARALLELISM)
"""The actions about a number of members."""


@dataclass(frozen=True, slots=True)
class IncidentChange:
    """What a look did to a group's incident: the new state and what to publish."""

    state: JudgeState
    messages: tuple[Recommendation, ...] = ()


def opened(diagnosis: Diagnosis, id_: str) -> IncidentChange:
    """The incident opens."""
    model, state = diagnosis.model, diagnosis.model.state
    message = compose(diagnosis, id_, model.now, Status.OPEN)
    incident = Incident(id=id_, opened_at=model.now, **_stated(diagnosis, message))
    state = replace(state, incident=incident, track=_counted(state, "opened"))
    return IncidentChange(state, (message,))


def _stated(diagnosis: Diagnosis, message: Recommendation) -> dict[str, Any]:
    """What is kept of what a message states."""
    model, made = diagnosis.model, diagnosis.reassignment
    plan = next((a for a in diagnosis.actions if a.type is ActionType.FOLLOW_PLAN), None)
    return {
        "verdict": str(diagnosis.verdict),
        "member": diagnosis.member,
        "message": _slim(message),
        "digest": model.roster.assignment if model.roster else "",
        "sent_at": model.now,
        "skew": model.skew,
        "behind": diagnosis.finding.behind,
        # By names that outlive a restart: carrying a plan out often restarts members, which get new ids.
        "plan": tuple((m.topic, m.partition, m.to) for m in made.plan.moves[:ROWS]) if made and plan else (),
        "others": tuple(_others(diagnosis)),
        "started_with": model.roster.ids if model.roster else (),
        "predicted_skew": round(made.plan.skew_after, 3) if made and plan else None,
        "predicted_drain": _predicted_s(plan) if plan else None,
    }


def _others(diagnosis: Diagnosis) -> Iterator[OtherAction]:
    """The actions in place of the plan that can be carried out, and whose effect shows in who is in the group or what assigns."""
    skews = {option.strategy: round(option.skew, 3) for option in diagnosis.alternatives}
    for action in diagnosis.actions:
        if action.feasible == "no":
            continue
        if action.type is ActionType.SWITCH_ASSIGNOR:
            strategy = str(action.params["strategy"])
            yield OtherAction(assignor=strategy, drain=_predicted_s(action), skew=skews.get(strategy))
        elif action.type in COUNTS and action.params.get("members"):
            members, assignor = action.params["members"], action.params.get("strategy")
            yield OtherAction(assignor, members, drain=_predicted_s(action))


def _predicted_s(action: Action) -> float | None:
    """When the group has likely caught up with it; None where that cannot be promised."""
    return action.gain.get("likely") if action.gain.get("after") is not None else None


def _counted(state: JudgeState, what: str) -> dict[str, int]:
    return {**state.track, what: state.track.get(what, 0) + 1}


def _slim(message: Recommendation) -> dict[str, Any]:
    """What is kept of a message: enough to send it again as stale or resolved."""
    # In the verdicts table: a whole assignment would make the row larger than Kafka's default limit of 1 MB for a message.
    raw = message.model_dump(mode="json", by_alias=True)
    raw["assignment"], raw["alternatives"] = None, []
    raw["members"] = raw["members"][:ROWS]
    raw["moves"] = raw["moves"][:ROWS]
    return raw


def last_message(incident: Incident, **changes: Any) -> Recommendation:
    """The last message of an incident once more, with changes."""
    return Recommendation.model_validate({**incident.message, **changes})


def blinded(seen: Observation, state: JudgeState, policy: Policy) -> IncidentChange:
    """kagent cannot see the group: what is open stands; it is marked stale after a minute, and ends as expired in the end."""
    incident = state.incident
    if incident is None:
        return IncidentChange(state)
    since = incident.blind_since or seen.now
    # An incident must not stay open for ever: its group may have been deleted while kagent could not see it. But a clock that
    # was set a day ahead, or a worker that was off for a day, has not looked for a day.
    if seen.now - max(since, seen.present_since) >= policy.expire_after * 1000:
        state, message = expired(state, seen.now)
        return IncidentChange(state, (message,) if message else ())
    # A pipeline that is a few seconds late now and then is no news.
    if not incident.stale and seen.now - since >= USUAL_GAP_S * 1000:
        message = last_message(incident, status=_standing(incident), stale=True)
        incident = replace(incident, stale=True, message=_slim(message), sent_at=seen.now)
        return IncidentChange(
            _with(state, replace(incident, blind_since=since, fresh_since=0), seen.now), (message,)
        )
    # Nothing new: the same object, so that no row is written while kagent stays blind.
    if incident.blind_since and not incident.fresh_since:
        return IncidentChange(state)
    return IncidentChange(_with(state, replace(incident, blind_since=since, fresh_since=0), seen.now))


def _standing(incident: Incident) -> Status:
    """How an open incident stands where nothing but its visibility has changed: its plan is not valid again because it is seen."""
    return Status.SUPERSEDED if incident.superseded else Status.UPDATED


def _with(state: JudgeState, incident: Incident, now: int) -> JudgeState:
    return replace(state, incident=incident, last_tick=now)


def carried_on(model: GroupModel, found: tuple[Finding, ...]) -> IncidentChange:
    """One more look at a group with an open incident."""
    before = model.state.incident
    assert before is not None
    messages: list[Recommendation] = []
    # In this order: sight first, then whether the assignment changed, then whether the backlog is gone under it.
    incident = _drained_since(model, _noticed(model, _seen_again(model, before)))
    lead = found[0] if found and found[0].ripe else None
    incident = _found_again(incident) if lead else _moved_on(model, incident)
    is_over = lead is None and not _still_late(model, incident)
    incident = replace(incident, superseded=incident.superseded or is_void(model, incident, is_over))
    if incident.superseded and not before.superseded:
        messages.append(last_message(incident, status=Status.SUPERSEDED))
        incident = replace(incident, sent_at=model.now, message=_slim(messages[-1]))
    if is_over:
        return _calm(model, incident, messages)
    return _goes_on(model, replace(incident, calm_since=0), lead, messages)


def _found_again(incident: Incident) -> Incident:
    return replace(incident, least_behind=None, least_at=0, nothing_since=0)


def _moved_on(model: GroupModel, incident: Incident) -> Incident:
    """With since when nothing has been found, how far behind the latest member is since then, and since when it has been so."""
    incident = replace(incident, nothing_since=incident.nothing_since or model.now)
    behind, before = _latest_s(model), incident.least_behind
    # By as much as counts as late: what a group is late on purpose swings by less. Nor is it over while a member gets later.
    if before is not None and abs(behind - before) <= max(model.policy.min_behind, 1.0):
        return incident
    return replace(incident, least_behind=round(behind, 1), least_at=model.now)


def _seen_again(model: GroupModel, incident: Incident) -> Incident:
    if not incident.blind_since:
        return incident
    if not incident.fresh_since:
        incident = replace(incident, **_without_blind_time(model.now, incident))
    # Blind for less than a minute was never published, so there is nothing to take back.
    if not incident.stale:
        return replace(incident, blind_since=0, fresh_since=0)
    return incident if incident.fresh_since else replace(incident, fresh_since=model.now)


def _without_blind_time(now: int, incident: Incident) -> dict[str, Any]:
    """The times since when something lasts, each later by the time in which the group was out of sight."""
    lasting = {name: since for name in LASTING if (since := getattr(incident, name))}
    return {name: now - max(0, incident.blind_since - since) for name, since in lasting.items()}


def _drained_since(model: GroupModel, incident: Incident) -> Incident:
    if not drained(model):
        return replace(incident, drained_at=None) if incident.drained_at is not None else incident
    return replace(incident, drained_at=model.as_of) if incident.drained_at is None else incident


def _latest_s(model: GroupModel) -> float:
    """The lateness of the latest member, s."""
    return float(model.lateness.max(initial=0.0))


def drained(model: GroupModel) -> bool:
    """Whether every member is on time, and no partition that has been set aside is late."""
    return not _is_late(model, max(LatenessLimits.of(model.policy).on_time, 1.0))


def _is_late(model: GroupModel, limit_s: float) -> bool:
    # What is set aside is left out of its member's lateness, as it says nothing of the member's work.
    aside = model.excluded & model.relevant & (model.columns.waiting_since > 0)
    return bool((model.lateness >= limit_s).any() or (model.age[0][aside] >= limit_s).any())


def _noticed(model: GroupModel, incident: Incident) -> Incident:
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
    if incident.followed_at is not None or not _settled(model, incident):
        return incident
    done = followed(roster, incident)
    if done is None:
        return incident
    return replace(
        incident,
        predicted_drain=done.drain,
        predicted_skew=done.skew,
        followed_at=_last_changed(model, incident),
        followed_behind=round(_latest_s(model), 1),
    )


def _rests_on_assignment(incident: Incident) -> bool:
    """Whether what was advised is void under another assignment. A finding about a partition holds under any reader: a member that crashes at
    a record brings another assignment each time."""
    return OF[Verdict(incident.verdict)].ASKS is Asks.ASSIGNMENT


def _settled(model: GroupModel, incident: Incident) -> bool:
    """Whether the group has stayed as it is for so long that its assignment can be judged."""
    return model.as_of - _last_changed(model, incident) >= model.policy.settle * 1000


def _settling(model: GroupModel, incident: Incident) -> bool:
    """Whether the end waits for the group to settle; not for ever, as one that rebalances all the time never does."""
    since = model.now - (incident.changed_at or 0)
    return not _settled(model, incident) and since < model.policy.await_drain * 1000


def _last_changed(model: GroupModel, incident: Incident) -> int:
    """When who is in the group or who holds what last changed under the incident, ms; 0 if it did not."""
    return max(incident.changed_at, model.state.assigned_at) if incident.changed_at is not None else 0


def _still_late(model: GroupModel, incident: Incident) -> bool:
    """Whether a member is still late: that the cause is gone is not the end, the backlog that it left must be gone too."""
    if skew.is_literal(model.policy):
        # The lower threshold resolves: with the same one, a skew that swings around it would open and resolve all day.
        return Verdict(incident.verdict) in SPREAD and model.skew >= model.policy.lower_threshold
    late = _is_late(model, max(LatenessLimits.of(model.policy).over, 1.0))
    # A group that is late on purpose gets neither nearer nor later; its incident must not stay open for ever. A day without a look, or that a
    # clock jumped over, is no time in which it could.
    since = max(incident.least_at, model.seen.present_since)
    return late and model.now - since < model.policy.await_drain * 1000


def _calm(model: GroupModel, incident: Incident, messages: list[Recommendation]) -> IncidentChange:
    """Nothing is the matter now; when that has lasted, the incident is over."""
    since = incident.calm_since or model.now
    incident = replace(incident, calm_since=since)
    # A reassignment ends all spells, so for a while no late member can be found: that is no proof that the cause is gone.
    calm = model.now - since >= taken_back_after_s(model.policy) * 1000
    if not calm or _settling(model, incident) or _waits_for_drain(model, incident):
        return _kept(model, incident, messages)
    message = _resolved(model, incident)
    # At least as long as the plan needs to work: before that the group is still as late as when it opened.
    cool = max(model.policy.cooldown, incident.predicted_drain or 0.0)
    state = replace(
        model.state,
        incident=None,
        cooldown_until=model.now + int(cool * 1000),
        cooldown_of=incident.verdict,
        cooldown_member=incident.member,
        cooldown_partitions=tuple((t, p) for t, p in incident.message["evidence"].get("partitions", ())),
        track=_tracked(model.state, message),
    )
    return IncidentChange(state, (*messages, message))


def _waits_for_drain(model: GroupModel, incident: Incident) -> bool:
    """Followed advice is kept open until its outcome can be measured, within reason."""
    return incident.followed_at is not None and not drained(model) and _in_effect(model, incident)


def _in_effect(model: GroupModel, incident: Incident) -> bool:
    """Whether advice was followed so lately that its effect is still to come."""
    if incident.followed_at is None:
        return False
    # A member that gets later once the rebalance is over was not helped: that is the matter again.
    worse_s = model.policy.settle + model.policy.min_behind
    if incident.followed_behind is not None and _latest_s(model) > incident.followed_behind + worse_s:
        return False
    expected = model.policy.settle + 3 * (incident.predicted_drain or model.policy.await_drain)
    return model.now - incident.followed_at < min(model.policy.await_drain, expected) * 1000


def _tracked(state: JudgeState, message: Recommendation) -> dict[str, int]:
    track = {**state.track, str(message.resolution): state.track.get(str(message.resolution), 0) + 1}
    if message.resolution is Resolution.FOLLOWED and message.outcome is not None:
        helped = message.outcome.measured_drain_s is not None or (message.outcome.measured_skew or 9) < 1.5
        track["right"] = track.get("right", 0) + helped
    return track


def _resolved(model: GroupModel, incident: Incident) -> Recommendation:
    if incident.followed_at is not None:
        how = Resolution.FOLLOWED
    elif _changed_first(model, incident):
        how = Resolution.GROUP_CHANGED
    else:
        how = Resolution.DRAINED
    # From when the advice took effect: what passed before is the operator's time, not the plan's.
    since = incident.followed_at or incident.opened_at
    until = incident.drained_at
    # An action that was not followed predicts nothing of what came.
    is_followed = incident.followed_at is not None
    outcome = Outcome(
        predicted_drain_s=incident.predicted_drain if is_followed else None,
        measured_drain_s=round(max(0, until - since) / 1000, 1) if until is not None else None,
        predicted_skew=incident.predicted_skew if is_followed else None,
        measured_skew=1.0 if model.shown_skew is not None and drained(model) else model.shown_skew,
    )
    return last_message(
        incident,
        status=Status.RESOLVED,
        resolution=how,
        outcome=outcome.model_dump(mode="json"),
        as_of=model.as_of,
        stale=False,
    )


def _changed_first(model: GroupModel, incident: Incident) -> bool:
    """Whether the group has another assignment, and had caught up under none before."""
    if model.roster is None or not model.by_member or model.roster.assignment == incident.digest:
        return False
    drained_at, changed_at = incident.drained_at, incident.changed_at
    return drained_at is None or changed_at is None or changed_at <= drained_at


def _kept(model: GroupModel, incident: Incident, messages: list[Recommendation]) -> IncidentChange:
    """Still open, nothing new to state; published again once a day, and when it is visible again."""
    fresh = incident.stale and model.now - incident.fresh_since >= USUAL_GAP_S * 1000
    if fresh:
        again = last_message(incident, status=_standing(incident), stale=False)
        messages = [*messages, again]
        incident = replace(incident, stale=False, blind_since=0, fresh_since=0)
    # A new subscriber finds it young, and it outlives a retention that somebody set on the compacted topic.
    elif model.now - incident.sent_at >= model.policy.rewrite_every * 1000:
        messages = [*messages, last_message(incident)]
    if messages:
        incident = replace(incident, sent_at=model.now, message=_slim(messages[-1]))
    return IncidentChange(replace(model.state, incident=incident), tuple(messages))


def _goes_on(
    model: GroupModel, incident: Incident, lead: Finding | None, messages: list[Recommendation]
) -> IncidentChange:
    """Still the matter: published again when the verdict, the assignment or the measure of it changed."""
    # A person asked for silence: what was published stands, so that a ticket does not become a page meanwhile; its end is published.
    if lead is None or model.seen.muted:
        return _kept(model, replace(incident, other_since=0), messages)
    # The backlog that is left is the one the plan was made for: it is not news that there still is one. Nor is what a rebalance leaves.
    settled = _settled(model, incident)
    if lead.verdict in SPREAD and (not settled or _in_effect(model, incident)):
        return _kept(model, incident, messages)
    other = str(lead.verdict) != incident.verdict and not _same_standstill(model, incident, lead)
    since = (incident.other_since or model.now) if other else 0
    incident = replace(incident, other_since=since)
    if other and not more_urgent(lead, incident.verdict) and _may_swing_back(model, lead, since):
        return _kept(model, incident, messages)
    due = model.now - incident.sent_at >= model.policy.update_every * 1000 and not _may_be_over(model, lead)
    # A plan for members that are gone is replaced, but only once the new assignment has settled.
    news = other or (incident.superseded and settled) or _names_more(model, incident, lead)
    # Of a group that is seen now and then figures are no news: publishing them would take `stale` back, and it would be on and off.
    figures = (due and (_moved(model, incident, lead) or _runs_out(model, incident))) or _escalates(
        model.policy, incident, lead
    )
    if not news and (incident.stale or not figures):
        return _kept(model, incident, messages)
    return _updated(model, incident, lead, messages)


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


def _may_swing_back(model: GroupModel, lead: Finding, since: int) -> bool:
    """Whether another verdict, which has led ``since`` then (ms), is no news yet."""
    # Verdicts near a boundary swing from look to look; each change would be a notification.
    if model.now - since < taken_back_after_s(model.policy) * 1000:
        return True
    # While a late group drains, what was published stands, whatever the spread of the rest looks like.
    return lead.verdict in SPREAD and model.longest_drain < float("inf")


def _updated(
    model: GroupModel, incident: Incident, lead: Finding, messages: list[Recommendation]
) -> IncidentChange:
    diagnosis = diagnose(model, lead)
    message = compose(diagnosis, incident.id, incident.opened_at, Status.UPDATED)
    incident = replace(
        incident,
        superseded=False,
        followed_at=None,
        stale=False,
        blind_since=0,
        fresh_since=0,
        other_since=0,
        replaced=unfollowed(incident),
        **_stated(diagnosis, message),
    )
    return IncidentChange(replace(model.state, incident=incident), (*messages, message))


def _same_standstill(model: GroupModel, incident: Incident, lead: Finding) -> bool:
    """Whether it only looks otherwise because the last stable offset was not asked for this time."""
    return incident.verdict == open_transaction.VERDICT and open_transaction.looks_like(model, lead)


def expired(state: JudgeState, now: int) -> tuple[JudgeState, Recommendation | None]:
    """A group that is gone, or was not seen for too long: its incident ends."""
    if state.incident is None:
        return state, None
    message = last_message(
        state.incident, status=Status.RESOLVED, resolution=Resolution.EXPIRED, as_of=now, stale=False
    )
    return replace(state, incident=None, last_tick=now, track=_counted(state, "expired")), message
