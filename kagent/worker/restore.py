"""What the recommendations topic says, taken back as a row: the way out of a death between publishing and writing."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.recommendation import Recommendation, Status
from kagent.detect.state import Incident, JudgeState


def adopt(state: JudgeState | None, said: Recommendation) -> JudgeState | None:
    """The state, agreeing with the last published message: its incident is open, or closed, as the message has it."""
    known = state.incident if state else None
    if said.status is Status.RESOLVED:
        if state is not None and known is not None and known.id == said.id:
            return replace(state, incident=None)
        return state
    if known is not None and (known.id == said.id or known.opened_at > said.opened_at):
        return state
    incident = Incident(
        id=said.id,
        opened_at=said.opened_at,
        verdict=said.verdict.value,
        member=max(said.members, key=lambda m: m.work_now or 0).member if said.members else "",
        message=said.model_dump(mode="json", by_alias=True),
        digest=said.basis.digest,
        sent_at=said.as_of,
        skew=said.skew.now or 0.0,
        predicted_skew=said.skew.after,
        plan=tuple((move.topic, move.partition, move.to) for move in said.moves),
        stale=said.stale,
    )
    return replace(state or JudgeState(first_seen=said.opened_at), incident=incident)
