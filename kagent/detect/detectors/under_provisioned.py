"""under_provisioned: more arrives than the members can process; no assignment catches up.

Holds where no assignment was found that catches up in time (an hour, or 20 times its lateness), even with the inflow at its least
and the capacities at their most, and whatever costs of records the busy windows allow: noise and bursts pass the optimist, and the search finds
pigeonholes (five equal partitions on four members).
Severity: ticket where members can be added, else info.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.dealing import deals_by_topic
from kagent.detect.detectors import hot_partition
from kagent.detect.enough_members import needed, too_much_for_any
from kagent.detect.extrapolation import may_be_on_purpose
from kagent.detect.facts import NAMED, behind
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.late_member import LateMember, Line
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.text import counted, few, partition_name, rounded, shown, span

VERDICT = Verdict.UNDER_PROVISIONED
SPREAD = True
URGENCY = Urgency.HELP
MEMBERS_MAY_HELP = True
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.ASSIGNMENT
SIGNS = BEHIND
REMEDIES = (Remedy.MORE_MEMBERS, Remedy.MORE_PARALLELISM, Remedy.MORE_PARTITIONS)


def holds(member: LateMember) -> dict[str, Any] | None:
    """The evidence that the members are too few, or None."""
    if not member.measured or np.isfinite(member.best_for_optimist):
        return None
    # While it is not known which topic costs the time, another assignment might do: then members are not what is missing.
    # Nor where at such costs one partition is more than any member can do.
    does = any(np.isfinite(case.best) for case in member.at_other_costs.values())
    if does or hot_partition.at_other_costs(member):
        return None
    model = member.model
    arrives, usual = float(model.inflow.mid.sum()), model.capacity.usual
    have, number, records = len(model.names), needed(model), model.records_per_work()
    return {
        "needed": number.members,
        "keep_up": number.keep_up,
        "caught_up_s": number.caught_up_s,
        "members": have,
        "never_busy": _never_busy(model),
        "may_be_on_purpose": model.is_all_late_and_unmeasured or may_be_on_purpose(model, member.at),
        "partitions_first": number.members <= have,
        "hot_partitions": [list(model.lags.name(int(row))) for row in too_much_for_any(model)[:NAMED]],
        "pressure": round(arrives / usual / have, 3) if usual > 0 else None,
        "gets_per_s": round(records * arrives, 2),
        "does_per_s": round(records * float(model.capacity.rate.mid.sum()), 2),
    }


def _never_busy(model: GroupModel) -> int:
    """How many members with partitions were never behind, so that their speeds are not known."""
    holds_some = np.unique(model.owner[model.counted])
    return int(np.count_nonzero(~model.capacity.measured[holds_some]))


def is_assumed(finding: Finding) -> bool:
    """Whether it rests on most members being no faster than those few whose speed is known, or on the group not reading so late on purpose."""
    return finding.verdict is VERDICT and (
        _speeds_assumed(finding) or bool(finding.evidence["may_be_on_purpose"])
    )


def _speeds_assumed(finding: Finding) -> bool:
    return bool(2 * finding.evidence["never_busy"] > finding.evidence["members"])


def _drains(member: LateMember) -> dict[str, Any] | None:
    return {} if not member.never_drains or np.isfinite(member.model.drain[member.at]) else None


def _may_be_hot(member: LateMember) -> dict[str, Any] | None:
    """The evidence that one partition is more than any member can do, at costs of records that the busy windows allow, where no assignment
    catches up at the likeliest ones."""
    if not member.measured or np.isfinite(member.best_for_optimist):
        return None
    return hot_partition.at_other_costs(member)


# What drains, however slowly, does not lack members.
LINES = (
    Line(_drains, why="draining"),
    Line(holds, VERDICT),
    Line(_may_be_hot, hot_partition.VERDICT, likely=False),
)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    who = shown(model.names[finding.members[0]])
    more = _first(model) if e["partitions_first"] else _beside_hot_ones(e) or _members(e)
    members = "the one member processes" if e["members"] == 1 else f"the {e['members']} members process"
    both = f"{rounded(e['gets_per_s'])} records/s arrive and {members} {rounded(e['does_per_s'])}"
    late = f"{who} is {behind(model, finding)}"
    # All together they may be quick enough, and the partitions too large to be divided evenly.
    if e["gets_per_s"] < e["does_per_s"]:
        return f"{both}, but no assignment lets each of them keep up: {late}. The group needs {more}{_if(finding)}."
    return f"{both}: {late}, and no assignment is enough. The group needs {more}{_if(finding)}."


def _if(finding: Finding) -> str:
    """What it rests on, where most members' speeds are not known or the lateness is older than what is known of the log ends."""
    were = "was" if finding.evidence["never_busy"] == 1 else "were"
    others = counted(finding.evidence["never_busy"], "member")
    speeds = f", if the {others} that {were} never behind work no faster" if _speeds_assumed(finding) else ""
    purpose = ", unless it reads so late on purpose" if finding.evidence["may_be_on_purpose"] else ""
    return f"{speeds}{purpose}"


def _beside_hot_ones(evidence: Mapping[str, Any]) -> str:
    """What it needs where some partitions are too much for any member, which no number of members changes; empty where none is."""
    hot = [partition_name(*place) for place in evidence["hot_partitions"]]
    alone = "alone receives" if len(hot) == 1 else "alone receive each"
    needs = f"more members, and also finer keys or more partitions: {few(hot)} {alone} more than a member processes"
    return needs if hot else ""


def _members(evidence: Mapping[str, Any]) -> str:
    """How many members it needs, and for what."""
    needed, keep_up, caught_up_s = (evidence[name] for name in ("needed", "keep_up", "caught_up_s"))
    if caught_up_s is None:
        return f"{needed} members"
    within = f"to catch up in about {span(caught_up_s)}"
    return (
        f"{keep_up} members to keep up, {needed} {within}"
        if keep_up < needed
        else f"{needed} members {within}"
    )


def _first(model: GroupModel) -> str:
    """What it takes before more members get anything."""
    # Under range members beyond the largest topic get nothing; dealt out all together, the partitions there are can be enough.
    if deals_by_topic(model) and len(model.placement_rows) > len(model.names):
        return "an assignor other than range, or more partitions, then more members"
    return "more partitions, then more members"
