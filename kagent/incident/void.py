"""Whether what was advised no longer applies, though the group has the assignment for which it was advised."""

from __future__ import annotations

from kagent.detect.detectors import skew
from kagent.detect.evidence import LatenessLimits
from kagent.detect.group_model import GroupModel
from kagent.detect.start_position import next_offset
from kagent.detect.state import Incident
from kagent.policy import Policy


def is_void(model: GroupModel, incident: Incident, is_over: bool) -> bool:
    """Whether the record that it names has been passed, or nothing is the matter any more but the backlog that it left, which can take hours
    to drain; ``is_over``: that backlog is gone as well."""
    if _is_passed(model, incident):
        return True
    # Between the two thresholds of the literal policy nothing is found, and what was published still holds.
    if is_over or not incident.nothing_since or skew.is_literal(model.policy):
        return False
    since = max(incident.nothing_since, model.seen.present_since)
    return model.now - since >= taken_back_after_s(model.policy) * 1000


def taken_back_after_s(policy: Policy) -> float:
    """How long something else must have been so that what was published is taken back, s: that nothing is the matter and no member late,
    or that another verdict leads. As long as the most evidence that a verdict needs, and at least a commit more."""
    return max(LatenessLimits.of(policy).draining_need, policy.cadence)


def _is_passed(model: GroupModel, incident: Incident) -> bool:
    """Whether the group has committed beyond a record that an action names: to go there now would read again all that came after it."""
    for params in (action["params"] for action in incident.message["actions"]):
        if "offset" in params:
            committed = next_offset(model.seen, params["topic"], params["partition"])
            if committed is not None and committed > params["offset"]:
                return True
    return False
