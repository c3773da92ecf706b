"""idle_members: members hold no partition for `idle_after` (a week) since the last rebalance. Severity: info."""

from __future__ import annotations

from collections.abc import Iterator

from kagent.contract.recommendation import Verdict
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.remedies import Remedy
from kagent.detect.signs import NEVER
from kagent.detect.state import JudgeState
from kagent.groups import MemberView
from kagent.lag.observation import Observation
from kagent.policy import Policy

VERDICT = Verdict.IDLE_MEMBERS
SPREAD = False
URGENCY = Urgency.CAN_WAIT
MEMBERS_MAY_HELP = True
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.ASSIGNMENT
REMEDIES = (Remedy.FEWER_MEMBERS,)


def without_partition(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """A sign: a member holds nothing, long after the last rebalance."""
    due = _due_at(state, policy)
    # Until then it is not asked who holds what: that is dearer than the rest of the look.
    if seen.now < due or (seen.roster is not None and any(map(_holds_nothing, seen.roster.members))):
        return due
    return NEVER


def _holds_nothing(member: MemberView) -> bool:
    # By partitions: an assignment may name a topic with none of its partitions.
    return not any(map(len, member.assigned.values()))


SIGNS = (without_partition,)


def _due_at(state: JudgeState, policy: Policy) -> int:
    return state.generation_at + round(policy.idle_after * 1000)


def find(model: GroupModel) -> Iterator[Finding]:
    """The members without a partition."""
    roster = model.roster
    if roster is None or not model.by_member or model.now < _due_at(model.state, model.policy):
        return
    idle = [at for at, member in enumerate(roster.members) if _holds_nothing(member)]
    if idle:
        names = [model.names[at] for at in idle]
        yield Finding(VERDICT, tuple(idle), evidence={"members": names[:50]}, since=model.state.generation_at)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    count = len(finding.members)
    return f"{count} member{'s hold' if count > 1 else ' holds'} no partition."
