"""no_members: a group, or some of its partitions, has no member, and the lag grows.

Holds when a group that had members within a day has had none for `absent_after`, and for twice its longest such absence, while
records arrive that it would have read. Holds too when members are there and partitions of a topic to which one of them
subscribes have had no owner for `absent_after`, while who holds what did not change: a rebalance that was left half done (the
second round of the cooperative protocol, KIP-429), or a faulty assignor. Severity: info.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.facts import named, worst
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND, NEVER
from kagent.detect.state import JudgeState
from kagent.detect.without_members import is_ended, reported_after_ms
from kagent.lag.measure import Flags
from kagent.lag.membership import NOBODY, Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.text import counted, partition_name, span

VERDICT = Verdict.NO_MEMBERS
SPREAD = False
URGENCY = Urgency.CAN_WAIT
MEMBERS_MAY_HELP = False
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.STABLE
REMEDIES = (Remedy.START_MEMBERS, Remedy.ASSIGN_ANEW)


def deserted(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """A sign: the group had members, and has none."""
    return seen.now if state.empty_since else NEVER


SIGNS = (*BEHIND, deserted)


def find(model: GroupModel) -> Iterator[Finding]:
    """The absence, if it matters."""
    roster = model.roster
    if roster is None or roster.type == "simple":
        return
    yield from _half_assigned(model, roster) if roster.members else _deserted(model)


def _deserted(model: GroupModel) -> Iterator[Finding]:
    state = model.state
    if not state.empty_since or is_ended(state, model.now):
        return
    absent = model.now - state.empty_since
    if absent > reported_after_ms(state, model.policy):
        yield from _finding(model, _unread(model), absent, state.empty_since)


def _half_assigned(model: GroupModel, roster: Roster) -> Iterator[Finding]:
    state, lags = model.state, model.lags
    absent = model.as_of - state.assigned_at
    # Topics that are known by id only (KIP-848 assignments) cannot be distinguished from topics without an owner.
    if roster.unresolved or not state.assigned_at or absent <= model.policy.absent_after * 1000:
        return
    without = _unread(model) & (lags.owner == NOBODY)
    if not without.any():  # as in nearly every group: what its members subscribe to need not be gone through
        return
    asked = {topic for member in roster.members for topic in member.subscriptions}
    wanted = np.array([topic in asked for topic in lags.topics], np.bool_)
    yield from _finding(model, without & wanted[lags.topic], absent, state.assigned_at)


def _unread(model: GroupModel) -> Flags:
    lags = model.lags
    return np.asarray(
        lags.known & ~lags.orphaned & (lags.shown > model.policy.allowed_lag) & (lags.inflow > 0)
    )


def _finding(model: GroupModel, unread: Flags, absent_ms: int, since: int) -> Iterator[Finding]:
    if not unread.any():
        return
    rows = worst(unread, model.lags.shown)
    evidence = {
        "absent_s": round(absent_ms / 1000),
        "unread": int(model.lags.shown[unread].sum()),
        "partitions": named(model, rows),
        "members": len(model.roster.members) if model.roster else 0,
    }
    yield Finding(VERDICT, (), rows, float(model.age[0][unread].max()), evidence, since)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    waiting = f"{e['unread']:,} records wait."
    if not e.get("members"):
        return f"The group has had no members for {span(e['absent_s'])}; {waiting}"
    first, more = model.lags.name(finding.rows[0]), len(finding.rows) - 1
    which = partition_name(*first) + (f" and {more} more" if more else "")
    return (
        f"No member has held {which} for {span(e['absent_s'])}, although the group has {counted(e['members'], 'member')}; "
        f"{waiting}"
    )
