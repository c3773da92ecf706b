"""What the coordinator must confirm before a finding is published: decided here alone, for a worker that has just described the group
and for a fresh observation of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kagent.contract.recommendation import Verdict
from kagent.detect.detectors import OF
from kagent.detect.finding import Asks

STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group as its coordinator describes it now. ``state``: in Kafka's words, in any case; ``held``: whether some member holds a
    partition; ``same_assignment``: whether members hold what the finding rests on."""

    state: str
    held: bool
    same_assignment: bool


def refusal(verdict: Verdict, with_members: bool, now: GroupNow) -> str | None:
    """Why the coordinator does not confirm the verdict, a counted reason; None if it does.

    ``with_members``: whether the finding is about a group that has members.
    """
    asks = OF[verdict].ASKS
    if asks is Asks.NOTHING:
        return None
    # A group without members has no state to ask for: only partitions that are held now contradict the finding.
    if not with_members:
        return "group_changed" if now.held else None
    # PreparingRebalance and CompletingRebalance of classic groups are never written to __consumer_offsets, so the records may
    # still show an assignment that no member holds: only DescribeGroups tells.
    if now.state.lower() != STABLE.lower():
        return "not_stable"
    return "assignment_changed" if asks is Asks.ASSIGNMENT and not now.same_assignment else None
