"""slow_member: a member falls behind with an inflow with which its peers keep up. Restart it; moving is no cure.

A peer proves that a machine can do more, whatever records cost, if it keeps up with more of every topic in which the member falls
behind than the member does while it is busy, and with as much of the others; one that works off a backlog while the member does not
proves what it does while it is busy. Holds where the member falls short of such a proof
by a tenth, also with its speed at its most (by less, once it has got later for half an hour), and where at least two of the peers, or
half of them, process more than it does: one fast machine is no measure. While peers keep up with as much as it gets, and it is not
proven to be slow, nothing is reported: it is neither badly spread nor are there too few members. What the member did itself in the ten
minutes before, with the partitions it has now, is a proof too, and counts like a peer, as long as a peer does more than it does now.
A hot member is never slow: its peers get less than it does.
Severity: ticket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kagent.contract.recommendation import Verdict
from kagent.detect.capacity import RESOLVED
from kagent.detect.facts import behind
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.late_member import LateMember, Line
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.measure import Floats
from kagent.text import counted, rounded, shown

VERDICT = Verdict.SLOW_MEMBER
SPREAD = True
URGENCY = Urgency.HELP
MEMBERS_MAY_HELP = False
MOVES_CURE = False
ONE_MEMBER = True
MEMBER_REMARK = "It makes less progress than the others."
ASKS = Asks.ASSIGNMENT
SIGNS = BEHIND
REMEDIES = (Remedy.RESTART_MEMBER, Remedy.FOLLOW_PLAN)
FEWEST = NOT_CHANCE - 1
"""Rather is one machine slow than two fast."""


def holds(member: LateMember) -> dict[str, Any] | None:
    """The evidence that the member is slow, or None."""
    return _evidence(member, RESOLVED)


def holds_barely(member: LateMember) -> dict[str, Any] | None:
    """The same where it falls short of the proof by less than a tenth, but by more than its speed may be wrong, for long."""
    return _evidence(member, 1.0) if _lasts(member) else None


def _lasts(member: LateMember) -> bool:
    """Whether it has got later for as long as a drain is awaited: no evidence is asked for longer."""
    spell = member.model.member_state(member.at).spell
    return spell is not None and spell.grown_s >= member.model.policy.await_drain


def _evidence(member: LateMember, margin: float) -> dict[str, Any] | None:
    if not member.measured or member.usual_inflow <= 0:
        return None
    (_, speed, most), proven = member.speed, member.proven_by_peers
    least = max(margin * speed, most)
    proofs, before = proven[least < proven], _done_before(member, least)
    # Most late members have neither such a peer nor such a past. And one of many may be a fast machine: peers that get less than the
    # member does prove nothing either way.
    if not (len(proofs) or before) or not _several_do(member, most):
        return None
    return _facts(member, proofs, before)


def _done_before(member: LateMember, least: float) -> float:
    """The work/s that the member itself did before it fell behind, where that is more than this; else 0."""
    # Without a peer that does clearly more now, all may have got slower, as by a database that they share: what one did before that proves
    # nothing either. Asked first: most late members have none, and the past of a member is read from the log ends.
    if not (member.done_by_peers_now > max(RESOLVED * member.speed[1], member.speed[2])).any():
        return 0.0
    return member.proven_before if least < member.proven_before else 0.0


def _facts(member: LateMember, proofs: Floats, before: float) -> dict[str, Any]:
    records, peers = member.model.records_per_work(member.at), float(proofs.max(initial=0.0))
    proof = (
        {"peers_do_per_s": round(records * peers, 2)}
        if peers
        else {"did_before_per_s": round(records * before, 2)}
    )
    return {
        "speed": round(member.speed[1] / max(peers, before), 3),
        "does_per_s": round(records * member.speed[1], 2),
        "gets_per_s": round(records * member.usual_inflow, 2),
        **proof,
        "peers": len(proofs),
    }


def _perhaps(member: LateMember) -> dict[str, Any] | None:
    """Whether it falls behind with as much as its peers keep up with, so that it may be slow though no peer proves it yet."""
    if not member.measured or member.usual_inflow <= 0 or _lasts(member):
        return None
    needed, proven = max(member.speed[1], member.usual_inflow), member.proven_by_peers
    perhaps = (needed < RESOLVED * proven).any() or _done_before(member, needed / RESOLVED)
    return {} if perhaps and _several_do(member, needed, RESOLVED) else None


def _several_do(member: LateMember, amount: float, factor: float = 1.0) -> bool:
    """Whether enough peers, its own past counted as one, did more than this much work/s, each taken for ``factor`` times what it did."""
    more = int((amount < factor * member.done_by_peers).sum()) + (amount < member.proven_before)
    return more >= min(FEWEST, len(member.peers) / 2)


def _pause_is_over(member: LateMember) -> dict[str, Any] | None:
    return {} if member.is_late_by_pause and _moves(member) else None


def _pause_lasts(member: LateMember) -> dict[str, Any] | None:
    return {} if member.is_late_by_pause and not _moves(member) else None


def _moves(member: LateMember) -> bool:
    """Whether it has made progress since it became late, and is not silent now: a client that commits in the background does so
    while its application hangs."""
    known, mine = member.model.member_state(member.at), member.model.owner == member.at
    moved = int(member.model.lags.moved[mine].max(initial=0))
    return known.backlog is not None and moved >= known.backlog.began and not known.silent_s


# Asked before the verdicts about spread. What a peer proves comes first: partitions that are moved off a slow machine leave it slow, and
# hide it. Then a pause: what waits came in it, and the member catches up. Without this line, a pause of 230 s was reported as
# rebalance. Last, who may be slow: what it gets is no reason for another assignment, nor for more members, while its peers keep up with as much.
LINES = (
    Line(holds, VERDICT),
    Line(_pause_is_over, why="after_pause"),
    Line(_pause_lasts, why="pausing"),
    Line(holds_barely, VERDICT, likely=False),
    Line(_perhaps, why="perhaps_slow"),
)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message: what was measured, and the bound that follows."""
    e = finding.evidence
    who = shown(model.names[finding.members[0]])
    return (
        f"{who} is {behind(model, finding)}: it processes {rounded(e['does_per_s'])} of the {rounded(e['gets_per_s'])} records/s that arrive, "
        f"{_proof(e)}{_others(len(finding.members) - 1)}"
    )


def _proof(e: Mapping[str, Any]) -> str:
    """Who did more, and how much."""
    if not e["peers"]:
        return f"and processed at least {rounded(e['did_before_per_s'])} before it fell behind. It works at no more than {e['speed']:.0%} of that speed."
    peers = f"{e['peers']} peers process" if e["peers"] > 1 else "a peer processes"
    return f"while {peers} {rounded(e['peers_do_per_s'])} records/s of the same topics. It works at no more than {e['speed']:.0%} of their speed."


def _others(count: int) -> str:
    """That it is not the only one."""
    if not count:
        return ""
    return f" {counted(count, 'other member')} {'is' if count == 1 else 'are'} too slow as well."
