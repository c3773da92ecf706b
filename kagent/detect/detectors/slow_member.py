"""slow_member: a member falls behind with an inflow with which its peers keep up. Restart it; moving is no cure.

Holds where at least half of the peers that are on time get, of every topic that the member has, at least its inflow ÷ 1.15 (g:
the least such ratio), and its speed over its inflow is below 0.9·g, also with the speed at its most. A peer that gets as much
of everything and keeps up proves it, whatever records cost; a hot member is never slow.
Severity: ticket.
"""

from __future__ import annotations

from typing import Any

from kagent.contract.recommendation import ActionType, Verdict
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.late_member import AS_MUCH, LateMember
from kagent.text import shown, span

VERDICT = Verdict.SLOW_MEMBER
SPREAD = True
PAGES = False
ASKS_ASSIGNMENT = True
ACTIONS = (ActionType.RESTART_MEMBER, ActionType.FOLLOW_PLAN)
SLOWER = 0.9
"""Ten per cent is what twelve capacity windows resolve."""


def holds(member: LateMember) -> dict[str, Any] | None:
    """The evidence that the member is slow, or None."""
    if not member.measured or member.inflow[1] <= 0 or not member.keeping_up:
        return None
    ratios = [member.gets_as_much(peer) for peer in member.keeping_up]
    enough = [ratio for ratio in ratios if ratio >= 1 / AS_MUCH]
    if 2 * len(enough) < len(ratios):
        return None
    least, (_, speed, most), arrives = min(enough), member.speed, member.inflow[1]
    if speed / arrives >= SLOWER * least or most / arrives >= least:
        return None
    return {
        "speed": round(min(1.0, speed / arrives / least), 3),
        "does_per_s": round(speed, 2),
        "gets_per_s": round(arrives, 2),
        "peers": len(enough),
    }


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message: what was measured, and the bound that follows."""
    e = finding.evidence
    who = shown(model.names[finding.members[0]])
    return (
        f"{who} is {span(finding.behind)} behind: it processes {e['does_per_s']:g} records/s of {e['gets_per_s']:g} that arrive, "
        f"while {e['peers']} peer{'s that get' if e['peers'] > 1 else ' that gets'} as much keep{'' if e['peers'] > 1 else 's'} "
        f"up: it works at {e['speed']:.0%} of their speed at most."
    )
