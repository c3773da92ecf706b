"""The life of an incident: opened, updated, superseded, resolved; one id from first to last."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kagent.advice.load import NONE
from kagent.advice.look import Look
from kagent.advice.message import Story, compose, tell
from kagent.advice.state import Incident, JudgeState
from kagent.advice.verdicts import SPREAD, Finding
from kagent.contract.recommendation import (
    ActionType,
    Outcome,
    Recommendation,
    Resolution,
    Status,
    Verdict,
)
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy

if TYPE_CHECKING:
    from kagent.advice.judge import Judgement

FOLLOWED = 0.8
"""Share of the planned moves that must be in effect for the plan to count as followed."""
CHANGED = 0.25
"""A skew that moved by this share is worth an update."""
LONG = ("assignment", "alternatives", "frontier")
KEPT_MEMBERS = 50


def _judgement(state: JudgeState, look: Look | None = None, **more: Any) -> Judgement:
    from kagent.advice.judge import Judgement

    return Judgement(state, look=look, **more)


def opened(story: Story, id_: str, since: int) -> Judgement:
    """The incident opens."""
    look, state = story.look, story.look.state
    message = compose(story, id_, look.now, Status.OPEN)
    relief = story.relief
    incident = Incident(
        id=id_,
        opened_at=look.now,
        verdict=str(story.verdict),
        member=story.member,
        message=_slim(message),
        digest=look.roster.assignment if look.roster else "",
        sent_at=look.now,
        skew=look.load.skew,
        plan=tuple((m.topic, m.partition, m.to) for m in relief.plan.moves[:200]) if relief else (),
        started_with=look.roster.ids if look.roster else (),
        **_predicted(story),
    )
    state = replace(
        state, incident=incident, streak=None, last_tick=look.now, track=_counted(state, "opened")
    )
    return _judgement(
        state,
        look,
        messages=(message,),
        verdict=incident.verdict,
        skew=incident.skew,
        findings=(story.finding,),
    )


def _predicted(story: Story) -> dict[str, Any]:
    relief, best = story.relief, story.best
    out: dict[str, Any] = {"assignor": None, "members": None}
    if best.type is ActionType.SWITCH_ASSIGNOR:
        out["assignor"] = best.params.get("strategy")
    if best.type in (ActionType.SET_MEMBER_COUNT, ActionType.RAISE_PARALLELISM):
        out["members"] = best.params.get("members")
    if relief is not None and story.verdict in SPREAD:
        out["predicted_skew"] = round(relief.plan.skew_after, 3)
        drain = relief.plan.drain_after
        if drain is not None and drain.max() < float("inf"):
            out["predicted_drain"] = round(float(drain.max()), 1)
    return out


def _counted(state: JudgeState, what: str) -> dict[str, int]:
    return {**state.track, what: state.track.get(what, 0) + 1}


def _slim(message: Recommendation) -> dict[str, Any]:
    """What is kept of a message: enough to send it again as stale or resolved."""
    raw = message.model_dump(mode="json", by_alias=True)
    raw["assignment"], raw["alternatives"] = None, []
    raw["members"] = raw["members"][:KEPT_MEMBERS]
    raw["moves"] = raw["moves"][:KEPT_MEMBERS]
    return raw


def last_message(incident: Incident, **changes: Any) -> Recommendation:
    """The last message of an incident once more, with changes."""
    return Recommendation.model_validate({**incident.message, **changes})


def blinded(seen: Observation, state: JudgeState, policy: Policy) -> Judgement:
    """kagent cannot see the group: what is open is marked stale, once, and stands."""
    incident = state.incident
    if incident is None:
        cleared = replace(state, streak=None) if state.streak else state
        return _judgement(cleared, held="blind")
    if incident.stale:
        return _judgement(state, held="blind", verdict=incident.verdict)
    message = last_message(incident, status=Status.UPDATED, stale=True)
    changed = replace(incident, stale=True, message=_slim(message), sent_at=seen.now, calm=0)
    state = replace(state, incident=changed, last_tick=seen.now)
    return _judgement(state, held="blind", messages=(message,), verdict=incident.verdict)


def carried_on(look: Look, found: list[Finding]) -> Judgement:
    """One more look at a group with an open incident."""
    state = look.state
    incident = state.incident
    assert incident is not None
    messages: list[Recommendation] = []
    incident = _drained_since(look, _noticed(look, incident))
    if incident.superseded and not (state.incident and state.incident.superseded):
        messages.append(last_message(incident, status=Status.SUPERSEDED, as_of=look.as_of))
        incident = replace(incident, sent_at=look.now)
    lead = _still(look, incident, found)
    if lead is None:
        if _too_few_yet(look, incident):
            return _kept(look, replace(incident, calm=0), messages)
        return _calm(look, incident, messages)
    incident = replace(incident, calm=0)
    return _goes_on(look, incident, lead, messages)


def _drained_since(look: Look, incident: Incident) -> Incident:
    if not look.by_member or not drained(look):
        return replace(incident, drained_at=None) if incident.drained_at is not None else incident
    return replace(incident, drained_at=look.as_of) if incident.drained_at is None else incident


def _noticed(look: Look, incident: Incident) -> Incident:
    """Another assignment than the one it rests on: superseded, and followed if it is the one that was advised."""
    roster = look.roster
    if roster is None or not look.by_member:
        return incident
    if roster.assignment == incident.digest and not incident.superseded:
        return incident
    if incident.followed_at is None and followed(roster, incident):
        return replace(incident, superseded=True, followed_at=look.now, changed_at=look.now)
    if not incident.superseded:
        return replace(incident, superseded=True, changed_at=look.now)
    return incident


def followed(roster: Roster, incident: Incident) -> bool:
    """Whether what was advised is in effect."""
    if incident.assignor and roster.protocol == incident.assignor.removeprefix("kip848-"):
        return True
    if incident.members and len(roster.members) == incident.members and roster.ids != incident.started_with:
        return True
    if incident.verdict in (Verdict.SLOW_MEMBER, Verdict.STUCK_MEMBER):
        return incident.member not in roster.names or _another(roster, incident)
    if not incident.plan:
        return False
    held = [(t, p, m) for t, p, m in incident.plan if _holds(roster, t, p, m)]
    return len(held) >= FOLLOWED * len(incident.plan)


def _another(roster: Roster, incident: Incident) -> bool:
    """A member of that name under another id: it was restarted."""
    at = roster.names.index(incident.member)
    return roster.members[at].member_id not in incident.started_with


def _holds(roster: Roster, topic: str, partition: int, member: str) -> bool:
    owners = roster.owners.get(topic)
    if owners is None or partition >= len(owners) or owners[partition] < 0:
        return False
    return bool(roster.names[owners[partition]] == member)


def _still(look: Look, incident: Incident, found: list[Finding]) -> Finding | None:
    """The finding that keeps the incident open; None where it is calm. The lower threshold holds, not the upper one."""
    if found and found[0].ripe:
        return found[0]
    if Verdict(incident.verdict) not in SPREAD or not look.by_member:
        return None
    load, policy = look.load, look.policy
    if load.greatest == NONE:
        return None
    above = load.skew >= policy.lower_threshold
    late = load.behind[load.greatest] >= policy.min_behind / 2
    if above and late:
        rows = tuple(
            at
            for at in range(len(look.lags))
            if look.lags.owner[at] == load.greatest and look.lags.low[at] > 0
        )
        return Finding(Verdict.REBALANCE, (load.greatest,), rows[:200], float(load.behind[load.greatest]))
    return None


def _too_few_yet(look: Look, incident: Incident) -> bool:
    """Whether a group that is too small is still behind: inflow that falls for a minute is no end of it."""
    if incident.verdict != Verdict.UNDER_PROVISIONED or not look.by_member or look.load.greatest == NONE:
        return False
    return bool(look.load.behind[look.load.greatest] >= look.policy.min_behind / 2)


def _calm(look: Look, incident: Incident, messages: list[Recommendation]) -> Judgement:
    """Nothing is the matter now; after enough looks with fresh commits behind them, it is over."""
    state, policy = look.state, look.policy
    newest = int(look.lags.time.max(initial=0))
    if incident.calm == 0:
        incident = replace(incident, calm_commit=newest)
    incident = replace(incident, calm=incident.calm + 1)
    told = newest > incident.calm_commit or not (look.lags.shown > policy.allowed_lag).any()
    unknown = look.by_member and not look.load.known.all()
    over = incident.calm >= policy.evaluations and told and not unknown and not _settling(look, incident)
    if not over or _waits_for_drain(look, incident):
        return _kept(look, incident, messages)
    message = _resolved(look, incident)
    measured = message.outcome.measured_drain_s if message.outcome else None
    cool = max(policy.cooldown, incident.predicted_drain or 0.0)
    state = replace(
        state,
        incident=None,
        streak=None,
        last_tick=look.now,
        cooldown_until=look.now + int(cool * 1000),
        track=_tracked(state, message, measured),
    )
    return _judgement(state, look, messages=(*messages, message), skew=look.load.skew)


def _settling(look: Look, incident: Incident) -> bool:
    """Right after a rebalance lags are the pause's, not the assignment's."""
    return incident.changed_at is not None and look.now - incident.changed_at < look.policy.settle * 1000


def drained(look: Look) -> bool:
    """Whether no member is behind any more."""
    load = look.load
    return bool(load.known.all() and (load.behind <= max(1.0, look.policy.min_behind / 10)).all())


def _waits_for_drain(look: Look, incident: Incident) -> bool:
    """Followed advice is held open until its outcome can be measured, within reason."""
    if incident.followed_at is None or not look.by_member or drained(look):
        return False
    return _in_effect(look, incident)


def _in_effect(look: Look, incident: Incident) -> bool:
    """Whether advice was followed so lately that its effect is still to come."""
    if incident.followed_at is None:
        return False
    policy = look.policy
    patience = min(policy.await_drain, policy.settle + 3 * (incident.predicted_drain or policy.await_drain))
    return look.now - incident.followed_at < patience * 1000


def _tracked(state: JudgeState, message: Recommendation, measured: float | None) -> dict[str, int]:
    track = {**state.track, str(message.resolution): state.track.get(str(message.resolution), 0) + 1}
    if message.resolution is Resolution.FOLLOWED:
        right = measured is not None or (message.outcome and (message.outcome.measured_skew or 9) < 1.5)
        track["right"] = track.get("right", 0) + bool(right)
    return track


def _resolved(look: Look, incident: Incident) -> Recommendation:
    if incident.followed_at is not None:
        how = Resolution.FOLLOWED
    elif look.roster is not None and look.by_member and look.roster.assignment != incident.digest:
        how = Resolution.GROUP_CHANGED
    else:
        how = Resolution.DRAINED
    since = incident.followed_at or incident.opened_at
    until = look.now if not look.by_member else incident.drained_at
    drain = round(max(0, until - since) / 1000, 1) if until is not None else None
    outcome = Outcome(
        predicted_drain_s=incident.predicted_drain,
        measured_drain_s=drain,
        predicted_skew=incident.predicted_skew,
        measured_skew=_skew_left(look),
    )
    return last_message(
        incident,
        status=Status.RESOLVED,
        resolution=how,
        outcome=outcome.model_dump(mode="json"),
        as_of=look.as_of,
        stale=False,
    )


def _skew_left(look: Look) -> float | None:
    """Skew of what work is left; where nobody is behind there is nothing to be skewed."""
    if not look.by_member:
        return None
    return 1.0 if drained(look) else round(look.load.skew, 3)


def _kept(look: Look, incident: Incident, messages: list[Recommendation]) -> Judgement:
    """Still open, nothing new to say; said again once a day."""
    if incident.stale:
        messages = [*messages, last_message(incident, status=Status.UPDATED, stale=False, as_of=look.as_of)]
    elif look.now - incident.sent_at >= look.policy.rewrite_every * 1000:
        messages = [*messages, last_message(incident, as_of=look.as_of)]
    if messages:
        incident = replace(incident, sent_at=look.now, message=_slim(messages[-1]), stale=False)
    state = replace(look.state, incident=incident, last_tick=look.now)
    return _judgement(state, look, messages=tuple(messages), verdict=incident.verdict, skew=look.load.skew)


def _goes_on(look: Look, incident: Incident, lead: Finding, messages: list[Recommendation]) -> Judgement:
    """Still the matter: told again when the verdict, the basis or the measure of it changed."""
    policy = look.policy
    due = look.now - incident.sent_at >= policy.update_every * 1000
    moved = abs(look.load.skew - incident.skew) > CHANGED * incident.skew
    another = lead.kind != _kind(incident.verdict) and not _same_standstill(look, incident, lead)
    incident = replace(incident, other=incident.other + 1 if another else 0)
    if lead.kind == "spread" and _in_effect(look, incident):
        return _kept(look, incident, messages)
    renew = incident.superseded and not _settling(look, incident)
    if not (incident.stale or renew or incident.other >= policy.evaluations or (due and moved)):
        return _kept(look, incident, messages)
    if another and incident.other < policy.evaluations:
        return _kept(look, incident, messages)
    story = tell(look, lead)
    message = compose(story, incident.id, incident.opened_at, Status.UPDATED)
    relief = story.relief
    incident = replace(
        incident,
        verdict=str(story.verdict),
        member=story.member,
        message=_slim(message),
        digest=look.roster.assignment if look.roster else "",
        sent_at=look.now,
        skew=look.load.skew,
        plan=tuple((m.topic, m.partition, m.to) for m in relief.plan.moves[:200]) if relief else (),
        started_with=look.roster.ids if look.roster else (),
        superseded=False,
        followed_at=None,
        stale=False,
        other=0,
        **_predicted(story),
    )
    state = replace(look.state, incident=incident, last_tick=look.now)
    return _judgement(
        state, look, messages=(*messages, message), verdict=incident.verdict, skew=incident.skew
    )


def _same_standstill(look: Look, incident: Incident, lead: Finding) -> bool:
    """Whether it only looks otherwise because the last stable offset was not asked for this time."""
    standing = lead.verdict in (Verdict.STALLED, Verdict.STUCK_MEMBER)
    unasked = bool(lead.rows) and bool((look.lags.stable[list(lead.rows)] < 0).all())
    return incident.verdict == Verdict.BLOCKED_BY_TRANSACTION and standing and unasked


def _kind(verdict: str) -> str:
    return "spread" if Verdict(verdict) in SPREAD else verdict


def expired(state: JudgeState, now: int) -> tuple[JudgeState, Recommendation | None]:
    """A group that is gone, or was not seen for too long: its incident ends."""
    if state.incident is None:
        return state, None
    message = last_message(
        state.incident, status=Status.RESOLVED, resolution=Resolution.EXPIRED, as_of=now, stale=False
    )
    track = {**state.track, "expired": state.track.get("expired", 0) + 1}
    return replace(state, incident=None, streak=None, last_tick=now, track=track), message
