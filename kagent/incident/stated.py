"""What is kept of a message that was published, and how it is published again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kagent.contract.recommendation import Action, ActionType, Recommendation, Status
from kagent.detect.finding import ROWS
from kagent.detect.state import Incident, OtherAction
from kagent.recommend.render import Diagnosis

COUNTS = (ActionType.SET_MEMBER_COUNT, ActionType.RAISE_PARALLELISM)
"""The actions about a number of members."""


def stated(diagnosis: Diagnosis, message: Recommendation) -> dict[str, Any]:
    """What is kept of what a message states."""
    model, made = diagnosis.model, diagnosis.reassignment
    plan = next((a for a in diagnosis.actions if a.type is ActionType.FOLLOW_PLAN), None)
    return {
        "verdict": str(diagnosis.verdict),
        "member": diagnosis.member,
        "message": slim(message),
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


def slim(message: Recommendation) -> dict[str, Any]:
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


def standing(incident: Incident) -> Status:
    """How an open incident stands where nothing but its visibility has changed: its plan is not valid again because it is seen."""
    return Status.SUPERSEDED if incident.superseded else Status.UPDATED
