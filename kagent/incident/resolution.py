"""How an incident ended: drained, followed or by another change of the group; what was predicted and what was measured."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.recommendation import Outcome, Recommendation, Resolution, Status
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident, JudgeState
from kagent.incident.lateness_left import drained
from kagent.incident.stated import last_message


def resolved(model: GroupModel, incident: Incident) -> Recommendation:
    """The message that ends it, with its outcome (s, skew)."""
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


def tracked(state: JudgeState, message: Recommendation) -> dict[str, int]:
    """The track record of a group with one more incident that ended, and whether following it helped."""
    track = counted(state, str(message.resolution))
    if message.resolution is Resolution.FOLLOWED and message.outcome is not None:
        helped = message.outcome.measured_drain_s is not None or (message.outcome.measured_skew or 9) < 1.5
        track["right"] = track.get("right", 0) + helped
    return track


def counted(state: JudgeState, what: str) -> dict[str, int]:
    """The track record of a group with one more of these."""
    return {**state.track, what: state.track.get(what, 0) + 1}


def expired(state: JudgeState, now: int) -> tuple[JudgeState, Recommendation | None]:
    """A group that is gone, or was not seen for too long: its incident ends."""
    if state.incident is None:
        return state, None
    message = last_message(
        state.incident, status=Status.RESOLVED, resolution=Resolution.EXPIRED, as_of=now, stale=False
    )
    return replace(state, incident=None, last_tick=now, track=counted(state, "expired")), message
