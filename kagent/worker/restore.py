"""What the recommendations topic says, taken back as a row: the way out of a death between publishing and writing."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.recommendation import Recommendation, Status
from kagent.detect.state import Incident, JudgeState


def adopt(state: JudgeState | None, published: Recommendation) -> JudgeState | None:
    """The state, agreeing with the last published message: its incident is open, or closed, as the message has it."""
    known = state.incident if state else None
    if published.status is Status.RESOLVED:
        if state is not None and known is not None and known.id == published.id:
            return replace(state, incident=None)
        return state
    # The same incident, or a newer one in the row: the row has more than the message.
    if known is not None and (known.id == published.id or known.opened_at > published.opened_at):
        return state
    incident = Incident(
        id=published.id,
        opened_at=published.opened_at,
        verdict=published.verdict.value,
        # The message does not name the member that the verdict is about: taken to be the one with most work.
        member=max(published.members, key=lambda m: m.work_now or 0).member if published.members else "",
        message=published.model_dump(mode="json", by_alias=True),
        digest=published.basis.digest,
        sent_at=published.as_of,
        skew=published.skew.now or 0.0,
        predicted_skew=published.skew.after,
        plan=tuple((move.topic, move.partition, move.to) for move in published.moves),
        stale=published.stale,
    )
    return replace(state or JudgeState(first_seen=published.opened_at), incident=incident)
