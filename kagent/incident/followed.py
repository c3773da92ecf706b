"""Whether a group has done what an incident advised."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from kagent.detect.detectors import ONE_MEMBER
from kagent.detect.state import Advised, Incident
from kagent.lag.membership import Roster

FOLLOWED = 0.8
"""Share of the planned moves that must be in effect for the plan to count as followed."""


def advice(roster: Roster, incident: Incident) -> Advised | None:
    """The advice that is in effect: the last one that was published, or the one that it replaced; None if neither is."""
    # An owner reads a message and acts minutes later, and consumers that carry a plan out join and leave meanwhile: either may
    # bring an update with another plan, which does not make what is done another thing than what was advised.
    given = (_published(incident), incident.replaced)
    return next((one for one in given if one is not None and in_effect(roster, one)), None)


def promised(roster: Roster, incident: Incident, done: Advised) -> Incident:
    """The incident, to be held against what the action that was followed predicted. A restart predicts nothing."""
    drain, skew = done.predicted_drain, done.predicted_skew
    if _is_other_followed(roster, done):
        drain, skew = done.other_drain, done.other_skew
    elif done.verdict in ONE_MEMBER:
        drain = skew = None
    return replace(incident, predicted_drain=drain, predicted_skew=skew)


def unfollowed(incident: Incident) -> Advised | None:
    """What an update is about to replace, if the group has not followed it."""
    return None if incident.followed_at is not None else _published(incident)


def _published(incident: Incident) -> Advised:
    return Advised(**{field.name: getattr(incident, field.name) for field in fields(Advised)})


def in_effect(roster: Roster, given: Advised) -> bool:
    """Whether what was advised is in effect."""
    if _is_other_followed(roster, given):
        return True
    if given.verdict in ONE_MEMBER:
        return given.member not in roster.names or _another(roster, given)
    if not given.plan:
        return False
    held = [(t, p, m) for t, p, m in given.plan if _holds(roster, t, p, m)]
    return len(held) >= FOLLOWED * len(given.plan)


def _is_other_followed(roster: Roster, given: Advised) -> bool:
    """Whether another assignor, or another number of members, is in effect as advised."""
    if given.assignor and roster.protocol == given.assignor.removeprefix("kip848-"):
        return True
    # Other ids too: a group that merely had that number before the message has not followed it.
    return bool(given.members) and len(roster.members) == given.members and roster.ids != given.started_with


def _another(roster: Roster, given: Advised) -> bool:
    """A member of that name under another id: it was restarted."""
    at = roster.names.index(given.member)
    return roster.members[at].member_id not in given.started_with


def _holds(roster: Roster, topic: str, partition: int, member: str) -> bool:
    holder = int(roster.holder(topic, np.array([partition], np.int64))[0])
    return holder >= 0 and roster.names[holder] == member
