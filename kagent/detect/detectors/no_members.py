"""no_members: a group has lost its members and its lag grows.

Holds when a group that had members within a day has had none for `absent_after`, and for twice its longest such absence, while
records arrive that it would have read. Severity: info.
"""

from __future__ import annotations

from collections.abc import Iterator

from kagent.contract.recommendation import ActionType, Verdict
from kagent.detect.facts import worst
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.text import span

VERDICT = Verdict.NO_MEMBERS
SPREAD = False
PAGES = False
ASKS_ASSIGNMENT = False
ACTIONS = (ActionType.SET_MEMBER_COUNT,)
DAY_MS = 86_400_000


def find(model: GroupModel) -> Iterator[Finding]:
    """The absence, if it matters."""
    state, roster, policy = model.state, model.roster, model.policy
    if roster is None or roster.members or not state.empty_since or roster.type == "simple":
        return
    if model.now - state.members_at > DAY_MS:
        return
    absent, lags = model.now - state.empty_since, model.lags
    grows = lags.known & ~lags.orphaned & (lags.shown > policy.allowed_lag) & (lags.inflow > 0)
    if absent > max(policy.absent_after * 1000, 2 * state.longest_absence) and grows.any():
        evidence = {"absent_s": round(absent / 1000), "unread": int(lags.shown[grows].sum())}
        behind = float(model.age[0][grows].max())
        yield Finding(VERDICT, (), worst(grows, lags.shown), behind, evidence, state.empty_since)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    return f"The group has had no members for {span(e['absent_s'])}; {e['unread']} records wait."
