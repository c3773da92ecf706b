"""rebalance: the work is badly spread, today's assignment does not catch up in time, and a feasible one does.

Holds where the best assignment catches up in time (an hour, or 20 times its lateness), and today's never does, or takes
`hold` longer, and a share of `min_gain` of its time, while the skew is at or above `threshold`. With the forecast at its likeliest values;
or, where the member gets a tenth more than the mean and never catches up, at the optimist's ends alone, or at other costs of
records that its busy windows allow: then the plan "may not be enough".
With `min_behind: 0` and `hold: 0` every crossing of `threshold` is reported, whatever the forecast.
Severity: ticket where an action is feasible, else info.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.capacity import RESOLVED
from kagent.detect.detectors import hot_partition
from kagent.detect.facts import behind, named
from kagent.detect.finding import ROWS, Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.late_member import LateMember, Line
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.policy import Policy
from kagent.text import shown, span

VERDICT = Verdict.REBALANCE
SPREAD = True
URGENCY = Urgency.HELP
MEMBERS_MAY_HELP = True
MOVES_CURE = True
ONE_MEMBER = False
ASKS = Asks.ASSIGNMENT
SIGNS = BEHIND
REMEDIES = (
    Remedy.WAIT,
    Remedy.FOLLOW_PLAN,
    Remedy.SWITCH_ASSIGNOR,
    Remedy.MORE_MEMBERS,
    Remedy.OTHER_PROCESS,
    Remedy.MORE_PARTITIONS_TOO,
)
COSTLY_TOPIC, ITS_SHARE = "costly_topic", "costly_topic_share"


def holds(member: LateMember) -> dict[str, Any] | None:
    """The evidence that another assignment catches up, or None."""
    model, best = member.model, member.best
    # A speed that was never measured is taken from the peers, or from the inflow itself: a T from that proves nothing.
    if np.isinf(best) or not member.measured:
        return None
    now = model.longest_drain
    saves = _gains(model, now, best) and model.skew >= model.policy.threshold
    if not (np.isinf(now) or saves) or hot_partition.at_other_costs(member):
        return None
    return _evidence(member, best, enough=True)


def _gains(model: GroupModel, now_s: float, best_s: float) -> bool:
    """Whether an assignment that drains in ``best_s`` is worth its moves, where today's takes ``now_s``."""
    return np.isinf(now_s) or now_s - best_s >= max(model.policy.hold, model.policy.min_gain * now_s)


def may_help(member: LateMember) -> dict[str, Any] | None:
    """The evidence that another assignment may catch up, where the likeliest values say that none does."""
    if (
        _gets_more(member)
        and member.measured
        and member.never_drains
        and np.isfinite(member.best_for_optimist)
        # Where today's assignment may be as good, it is not the assignment that is in doubt.
        and _gains(member.model, float(member.model.drain_low.max()), member.best_for_optimist)
    ):
        return _evidence(member, member.best_for_optimist, enough=False)
    likely = member.measured and member.never_drains and np.isfinite(member.best)
    if likely and hot_partition.at_other_costs(member):
        return _evidence(member, member.best, enough=False)
    for (topic, share), case in member.at_other_costs.items():
        if _gets_more(case) and np.isfinite(case.best):
            return _evidence(case, case.best, enough=False) | {COSTLY_TOPIC: topic, ITS_SHARE: share}
    return None


# At the optimist's ends too. With the likeliest values alone, two partitions at 94 % of a member each stay undecided for ever.
LINES = (Line(holds, VERDICT), Line(may_help, VERDICT, likely=False))


def _gets_more(member: LateMember) -> bool:
    return member.inflow[1] > RESOLVED * float(member.model.inflow.mid.mean())


def model_of(model: GroupModel, finding: Finding) -> GroupModel:
    """The model that a finding was made with: the group's, or the one in which records cost otherwise."""
    topic = finding.evidence.get(COSTLY_TOPIC)
    if topic is None:
        return model
    done = LateMember(model, finding.members[0]).done
    return model.at_costs(model.mix.at_share(topic, finding.evidence[ITS_SHARE], done))


def _evidence(member: LateMember, best: float, enough: bool) -> dict[str, Any]:
    now, records = member.model.longest_drain, member.model.records_per_work(member.at)
    return {
        "drain_now_s": None if np.isinf(now) else round(now),
        "drain_best_s": round(best),
        "may_not_be_enough": not enough,
        "gets_per_s": round(records * member.inflow[1], 2),
        "does_per_s": round(records * member.speed[1], 2),
        "partitions": named(member.model, member.heaviest),
    }


def is_literal(policy: Policy) -> bool:
    """Whether the policy asks for every crossing of the threshold."""
    return policy.min_behind <= 0 and policy.hold <= 0


def crossing(model: GroupModel, floor: float) -> Iterator[Finding]:
    """The crossing of a threshold by the skew of the work, whatever it means for the time to catch up."""
    at = model.worst
    if at < 0 or model.skew < floor:
        return
    drain = model.longest_drain
    evidence = {"drain_now_s": None if np.isinf(drain) else round(drain), "may_not_be_enough": False}
    if np.isfinite(drain):
        evidence["drains_in_s"] = round(drain)
    rows = tuple(model.rows_of(at)[:ROWS].tolist())
    yield Finding(
        VERDICT, (at,), rows, float(model.lateness[at]), evidence, since=int(model.columns.committed_at[at])
    )


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message; the number of partitions to move is added where the plan is known."""
    e = finding.evidence
    who = shown(model.names[finding.members[0]])
    low, high = model.seconds_of_work
    total = high.sum() - high[finding.members[0]] + low[finding.members[0]]
    share = low[finding.members[0]] / total if total > 0 else 1.0
    drains = e.get("drain_now_s")
    ends = (
        "and does not catch up at its present speed"
        if drains is None
        else f"and needs {span(drains)} more to catch up"
    )
    # Of the number that is published beside the sentence: rounded anew it could differ by a hundredth.
    skew = "" if model.shown_skew is None else f" (skew {model.shown_skew:.2f})"
    return f"{who} holds {share:.0%} of the group's backlog, is {behind(model, finding)}{skew} {ends}"
