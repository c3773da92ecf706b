"""The life of an incident: opened, updated, superseded, resolved; one id from first to last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kagent.contract.recommendation import Recommendation, Status
from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.detectors import SPREAD
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident, JudgeState
from kagent.incident import news
from kagent.incident.assignment_change import in_effect, noticed, settled, settling
from kagent.incident.followed import unfollowed
from kagent.incident.lateness_left import drained, drained_since, still_late, with_nothing_found
from kagent.incident.resolution import counted, expired, resolved, tracked
from kagent.incident.stated import last_message, slim, standing, stated
from kagent.incident.void import is_void, taken_back_after_s
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.recommend.render import Diagnosis, compose, diagnose

LASTING = ("calm_since", "other_since", "nothing_since", "least_at")
"""Since when something has been so that must last for some time before anything follows from it."""


@dataclass(frozen=True, slots=True)
class IncidentChange:
    """What a look did to a group's incident: the new state and what to publish."""

    state: JudgeState
    messages: tuple[Recommendation, ...] = ()


def opened(diagnosis: Diagnosis, id_: str) -> IncidentChange:
    """The incident opens."""
    model, state = diagnosis.model, diagnosis.model.state
    message = compose(diagnosis, id_, model.now, Status.OPEN)
    incident = Incident(id=id_, opened_at=model.now, **stated(diagnosis, message))
    state = replace(state, incident=incident, track=counted(state, "opened"))
    return IncidentChange(state, (message,))


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
        message = last_message(incident, status=standing(incident), stale=True)
        incident = replace(incident, stale=True, message=slim(message), sent_at=seen.now)
        return IncidentChange(
            _with(state, replace(incident, blind_since=since, fresh_since=0), seen.now), (message,)
        )
    # Nothing new: the same object, so that no row is written while kagent stays blind.
    if incident.blind_since and not incident.fresh_since:
        return IncidentChange(state)
    return IncidentChange(_with(state, replace(incident, blind_since=since, fresh_since=0), seen.now))


def _with(state: JudgeState, incident: Incident, now: int) -> JudgeState:
    return replace(state, incident=incident, last_tick=now)


def carried_on(model: GroupModel, found: tuple[Finding, ...]) -> IncidentChange:
    """One more look at a group with an open incident."""
    before = model.state.incident
    assert before is not None
    messages: list[Recommendation] = []
    # In this order: sight first, then whether the assignment changed, then whether the backlog is gone under it.
    incident = drained_since(model, noticed(model, _seen_again(model, before)))
    lead = found[0] if found and found[0].ripe else None
    incident = _found_again(incident) if lead else with_nothing_found(model, incident)
    is_over = lead is None and not still_late(model, incident)
    incident = replace(incident, superseded=incident.superseded or is_void(model, incident, is_over))
    if incident.superseded and not before.superseded:
        messages.append(last_message(incident, status=Status.SUPERSEDED, as_of=model.as_of))
        incident = replace(incident, sent_at=model.now, message=slim(messages[-1]))
    if is_over:
        return _calm(model, incident, messages)
    return _goes_on(model, replace(incident, calm_since=0), lead, messages)


def _found_again(incident: Incident) -> Incident:
    return replace(incident, least_behind=None, least_at=0, nothing_since=0)


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


def _calm(model: GroupModel, incident: Incident, messages: list[Recommendation]) -> IncidentChange:
    """Nothing is the matter now; when that has lasted, the incident is over."""
    since = incident.calm_since or model.now
    incident = replace(incident, calm_since=since)
    # A reassignment ends all spells, so for a while no late member can be found: that is no proof that the cause is gone.
    calm = model.now - since >= taken_back_after_s(model.policy) * 1000
    if not calm or settling(model, incident) or _waits_for_drain(model, incident):
        return _kept(model, incident, messages)
    message = resolved(model, incident)
    # At least as long as the plan needs to work: before that the group is still as late as when it opened.
    cool = max(model.policy.cooldown, incident.predicted_drain or 0.0)
    state = replace(
        model.state,
        incident=None,
        cooldown_until=model.now + int(cool * 1000),
        cooldown_of=incident.verdict,
        cooldown_member=incident.member,
        cooldown_partitions=tuple((t, p) for t, p in incident.message["evidence"].get("partitions", ())),
        track=tracked(model.state, message),
    )
    return IncidentChange(state, (*messages, message))


def _waits_for_drain(model: GroupModel, incident: Incident) -> bool:
    """Followed advice is kept open until its outcome can be measured, within reason."""
    return incident.followed_at is not None and not drained(model) and in_effect(model, incident)


def _kept(model: GroupModel, incident: Incident, messages: list[Recommendation]) -> IncidentChange:
    """Still open, nothing new to state; published again once a day, and when it is visible again."""
    fresh = incident.stale and model.now - incident.fresh_since >= USUAL_GAP_S * 1000
    if fresh:
        again = last_message(incident, status=standing(incident), stale=False)
        messages = [*messages, again]
        incident = replace(incident, stale=False, blind_since=0, fresh_since=0)
    # A new subscriber finds it young, and it outlives a retention that somebody set on the compacted topic.
    elif model.now - incident.sent_at >= model.policy.rewrite_every * 1000:
        messages = [*messages, last_message(incident)]
    if messages:
        incident = replace(incident, sent_at=model.now, message=slim(messages[-1]))
    return IncidentChange(replace(model.state, incident=incident), tuple(messages))


def _goes_on(
    model: GroupModel, incident: Incident, lead: Finding | None, messages: list[Recommendation]
) -> IncidentChange:
    """Still the matter: published again when the verdict, the assignment or the measure of it changed."""
    # A person asked for silence: what was published stands, so that a ticket does not become a page meanwhile; its end is published.
    if lead is None or model.seen.muted:
        return _kept(model, replace(incident, other_since=0), messages)
    # The backlog that is left is the one the plan was made for: it is not news that there still is one. Nor is what a rebalance leaves.
    if lead.verdict in SPREAD and (not settled(model, incident) or in_effect(model, incident)):
        return _kept(model, incident, messages)
    incident = news.with_other_verdict(model, incident, lead)
    if not news.is_news(model, incident, lead):
        return _kept(model, incident, messages)
    return _updated(model, incident, lead, messages)


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
        **stated(diagnosis, message),
    )
    return IncidentChange(replace(model.state, incident=incident), (*messages, message))
