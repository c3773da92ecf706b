"""hot_partition: one partition receives more than any member can process; no assignment helps.

Holds where a partition's own inflow (never its share of the lag) is above 0.95 of the fastest member's capacity, also at the
optimist's ends, at most half of the members that hold any are needed for such partitions, and the rest may fit on the others. Where
most are "hot" there are too few members, or partitions, for everything.
Severity: info, since only the topic's owner can tell whether keys may move.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.facts import NAMED, behind
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.forecast import Placement, best_drain_s
from kagent.detect.group_model import GroupModel
from kagent.detect.late_member import LateMember, Line
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.lag.chance import UNSEEN
from kagent.text import partition_name, rounded, shown

VERDICT = Verdict.HOT_PARTITION
SPREAD = True
URGENCY = Urgency.HELP
MEMBERS_MAY_HELP = True
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.ASSIGNMENT
SIGNS = BEHIND
REMEDIES = (Remedy.SPREAD_KEYS, Remedy.FOLLOW_PLAN)
NEARLY = 1 - UNSEEN
"""From this share on a partition may get as much as the fastest member does, and near that a queue takes hours to drain."""


def holds(member: LateMember) -> dict[str, Any] | None:
    """The evidence that one of the member's partitions is hot, or None."""
    model = member.model
    if not len(member.rows) or not member.measured:
        return None
    usual, least = model.columns.usual_rates * model.cost, model.columns.least_rates * model.cost
    rate, done = model.capacity.rate, member.done_by_peers.max(initial=0.0)
    # Against the fastest member: an assignment could give it the partition. At least it can do what a peer has certainly done.
    fastest, at_most = max(rate.mid.max(), done), max(rate.high.max(), done)
    hot = model.counted & (usual > NEARLY * fastest) & (least > NEARLY * at_most)
    mine = member.rows[hot[member.rows]]
    count = int(hot.sum())
    # Idle members beyond the number of partitions are no measure: what is hot on all that work is not hot by its keys.
    working = len(np.unique(model.owner[model.counted]))
    if not len(mine) or 2 * count > working or not _rest_fits(member, hot, count):
        return None
    at = int(mine[np.argmax(usual[mine])])
    return {
        "row": at,
        "partitions": [list(model.lags.name(int(row))) for row in mine[:NAMED]],
        "inflow_per_s": round(float(model.columns.usual_rates[at]), 2),
        "fastest_per_s": round(float(fastest / model.cost[at]), 2),
    }


def at_other_costs(member: LateMember) -> dict[str, Any] | None:
    """The evidence that one partition is hot at other costs of records that the busy windows allow, or None."""
    return next((hot for case in member.at_other_costs.values() if (hot := holds(case))), None)


# Before rebalance: no assignment helps against a partition that is more than a member can do.
LINES = (Line(holds, VERDICT),)


def _rest_fits(member: LateMember, hot: np.ndarray[Any, np.dtype[np.bool_]], taken: int) -> bool:
    """Whether what is not hot may drain in time on the members that hot partitions leave."""
    model = member.model
    rows = np.flatnonzero(model.counted & ~hot)
    # At most: that the others are too slow for the rest must be known of them, too, and members that were never busy are taken for usual
    # ones. Where more members would help with the rest, none helps with what is hot.
    room = np.sort(model.capacity.rate.high)[::-1][: len(model.names) - taken]
    flow = model.columns.usual_rates[rows] * model.cost[rows]
    work = (model.columns.backlog * model.cost)[rows]
    # Without homes: the question is whether the rest fits at all, not how little has to move.
    homes = np.full(len(rows), -1, np.int32)
    return len(rows) == 0 or bool(
        np.isfinite(best_drain_s(Placement(work, flow, homes), room, member.longest_s))
    )


def named_in(findings: Iterable[Finding]) -> set[tuple[str, int]]:
    """Topic and partition of those that findings call hot: their rows are all of the member concerned."""
    names = (f.evidence["partitions"] for f in findings if f.verdict is VERDICT)
    return {(topic, partition) for some in names for topic, partition in some}


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    topic, partition = model.lags.name(finding.rows[0])
    return (
        f"{partition_name(topic, partition)} alone receives {rounded(e['inflow_per_s'])} records/s; the fastest member processes "
        f"{rounded(e['fastest_per_s'])}. {shown(model.names[finding.members[0]])} is {behind(model, finding)}, and no assignment "
        "lets it catch up."
    )
