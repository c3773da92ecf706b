"""idle_members: members hold no partition for `idle_after` (a week) since the last rebalance. Severity: info."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kagent.contract.recommendation import ActionType, Verdict
from kagent.detect.finding import Finding, Urgency
from kagent.detect.group_model import GroupModel

VERDICT = Verdict.IDLE_MEMBERS
SPREAD = False
URGENCY = Urgency.CAN_WAIT
MEMBERS_MAY_HELP = True
ONE_MEMBER = False
ASKS_ASSIGNMENT = True
ACTIONS = (ActionType.SET_MEMBER_COUNT,)


def find(model: GroupModel) -> Iterator[Finding]:
    """The members without a partition."""
    if not model.by_member or model.now - model.state.generation_at < model.policy.idle_after * 1000:
        return
    held = np.bincount(model.lags.owner[model.lags.owner >= 0], minlength=len(model.names))
    idle = np.flatnonzero(held == 0).tolist()
    if idle:
        names = [model.names[at] for at in idle]
        yield Finding(VERDICT, tuple(idle), evidence={"members": names[:50]}, since=model.state.generation_at)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    count = len(finding.members)
    return f"{count} member{'s hold' if count > 1 else ' holds'} no partition."
