"""unstable: the group rebalances over and over.

Holds at `storm_generations` generations within `storm_window`, if some member left and came back four times, or three times more than
another, or, where every member comes and goes in turn (a deployment, a change of scale), if it lasts beyond `deploy_silence` and
three minutes a member, or is more than three deployments in a row make. Where a
partition stands through it while the others move, a record may be the cause, and `stalled` is awaited.
Severity: page from `page_behind` on, else ticket. The coordinator need not call the group stable: an unstable group is the finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kagent.contract.recommendation import GroupKind, Verdict
from kagent.detect.deployments import come_and_go, comes_and_goes_together, may_be_deployment
from kagent.detect.detectors.stalled_partition import stands_through
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.remedies import Remedy
from kagent.detect.signs import NEVER
from kagent.detect.state import JudgeState
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.text import counted, shown, span

VERDICT = Verdict.UNSTABLE
SPREAD = False
URGENCY = Urgency.STANDSTILL
MEMBERS_MAY_HELP = False
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.NOTHING
REMEDIES = (Remedy.STEADY_NUMBER, Remedy.STEADY_MEMBERS)


def restless(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """A sign: as many generations within the window as make a storm."""
    if not state.generations:
        return NEVER
    if generations_within(state, seen.now, policy) >= policy.storm_generations:
        return seen.now
    within = state.generations[-1][0] >= seen.now - policy.storm_window * 1000
    # Their number may seem greater as the window moves on: look again at each tick.
    return seen.now + 1 if within else NEVER


SIGNS = (restless,)


def find(model: GroupModel) -> Iterator[Finding]:
    """The storm, if there is one."""
    state, policy = model.state, model.policy
    turns = generations_within(state, model.now, policy)
    if turns < policy.storm_generations or model.kind in (GroupKind.SIMPLE, GroupKind.SHARE):
        return
    # A consumer that crashes at a record also leaves and joins for ever, and restarting it is no cure.
    if stands_through(model):
        return
    if may_be_deployment(model):
        return
    back = come_and_go(model)
    names = sorted(back, key=lambda n: (-back[n], n))
    codes = tuple(model.names.index(n) for n in names if n in model.names)
    evidence = {
        "generations": turns,
        "window_s": policy.storm_window,
        "come_and_go": names[:20],
        "together": comes_and_goes_together(model),
    }
    behind = float(model.age[0][model.relevant].max(initial=0.0))
    yield Finding(VERDICT, codes, behind=behind, evidence=evidence, since=state.restless_since or model.now)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    return f"The group rebalanced {e['generations']} times in {span(e['window_s'])}{_who(e)}."


def _who(evidence: Mapping[str, Any]) -> str:
    names = evidence["come_and_go"]
    if evidence["together"] and len(names) > 1:
        return f"; {shown(names[0])} and {counted(len(names) - 1, 'other')} leave and rejoin together"
    return f"; {shown(names[0])} leaves and rejoins" if names else ""


def generations_within(state: JudgeState, now: int, policy: Policy) -> int:
    """How many generations the group has gone through within the storm window."""
    since = now - policy.storm_window * 1000
    # By the generations' own numbers, not by the changes that were seen: several can pass between two evaluations.
    inside = [g for t, g in state.generations if t >= since]
    before = [g for t, g in state.generations if t < since]
    return max(inside) - (before[-1] if before else min(inside)) if inside else 0
