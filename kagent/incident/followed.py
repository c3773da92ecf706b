"""Whether a group has done what an incident advised."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from kagent.detect.detectors import ONE_MEMBER
from kagent.detect.state import Advised, Incident, OtherAction
from kagent.lag.chance import CLEARLY
from kagent.lag.membership import Roster

FOLLOWED = 1 / CLEARLY
"""Share of the planned moves that must be in effect for the plan to count as followed."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an action predicts: s until all members have caught up, and the skew. A restart predicts nothing."""

    drain: float | None = None
    skew: float | None = None


def followed(roster: Roster, incident: Incident) -> Prediction | None:
    """What the action predicts that is in effect, of the last advice that was published or of that which it replaced; None if none is."""
    # An owner reads a message and acts minutes later, and consumers that carry a plan out join and leave meanwhile: either may
    # bring an update with another plan, which does not make what is done another thing than what was advised.
    given = [one for one in (_published(incident), incident.replaced) if one is not None]
    # Two plans may share most of their moves: the one that is more in effect is the one that was carried out.
    given.sort(key=lambda one: -_share_held(roster, one))
    return next((found for one in given if (found := _of_advice(roster, one)) is not None), None)


def unfollowed(incident: Incident) -> Advised | None:
    """What an update is about to replace, if the group has not followed it."""
    return None if incident.followed_at is not None else _published(incident)


def _published(incident: Incident) -> Advised:
    return Advised(**{field.name: getattr(incident, field.name) for field in fields(Advised)})


def _of_advice(roster: Roster, given: Advised) -> Prediction | None:
    """What the action predicts that is in effect, of all that were advised; None if none is."""
    for other in given.others:
        if _is_other_followed(roster, given, other):
            return Prediction(other.drain, other.skew)
    # Before the restart: members may have been restarted to carry the plan out.
    if _is_plan_followed(roster, given):
        return Prediction(given.predicted_drain, given.predicted_skew)
    return Prediction() if _is_restarted(roster, given) else None


def _is_other_followed(roster: Roster, given: Advised, other: OtherAction) -> bool:
    if other.assignor is not None and roster.protocol != other.assignor.removeprefix("kip848-"):
        return False
    # Other ids too: a group that merely had that number before the message has not followed it.
    return other.members is None or (
        len(roster.members) == other.members and roster.ids != given.started_with
    )


def _is_plan_followed(roster: Roster, given: Advised) -> bool:
    return _share_held(roster, given) >= FOLLOWED


def _share_held(roster: Roster, given: Advised) -> float:
    """The share of the plan's moves that is in effect."""
    held = sum(_holds(roster, topic, partition, member) for topic, partition, member in given.plan)
    return held / len(given.plan) if given.plan else 0.0


def _is_restarted(roster: Roster, given: Advised) -> bool:
    if given.verdict not in ONE_MEMBER:
        return False
    # Under its name or another one: names of pods change. One that merely left was expelled, as it did not poll for too long.
    new = [
        name
        for name, m in zip(roster.names, roster.members, strict=True)
        if m.member_id not in given.started_with
    ]
    return given.member in new or (given.member not in roster.names and bool(new))


def _holds(roster: Roster, topic: str, partition: int, member: str) -> bool:
    holder = int(roster.holder(topic, np.array([partition], np.int64))[0])
    return holder >= 0 and roster.names[holder] == member
