"""Whether an open recommendation may be followed now; if not, the first reason why, as a sentence.

A pure function of the leader's view, what was read of kagent's topics, and the clock. Nothing is mended: a plan that is
not exactly about this group as it stands is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from kagent.contract.recommendation import SCHEMA, ActionType, Recommendation, Status
from kagent.follow.decision_types import Followed, Held, Peer, Reason, Rules, Snapshot, View, digest
from kagent.text import partition_name, shown

LARGEST = 2000
"""Partitions of a plan: more than this a recommendation does not tell, and an assignor has no time for."""
Plan = Mapping[str, Held]
"""Member's name → partitions."""


class NotFollowed(Exception):
    """The recommendation is not followed."""

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(sentence)
        self.reason, self.sentence = reason, sentence


def plan_for(view: View, snapshot: Snapshot | None, now: float, rules: Rules) -> tuple[Followed, Plan]:
    """The plan to follow, by names. Raises NotFollowed."""
    rec = _open(snapshot, now, rules)
    _stands(rec, snapshot, now)
    if rules.latched:
        _refuse(Reason.LATCHED, "following is latched off after too many rebalances in a day")
    names = _members(view, rec)
    _same_counts(view, rec)
    _same_generation(view, rec)
    plan = _exact(view, rec, names)
    _same_holdings(rec, plan, names)
    assert view.roster is not None
    return Followed(plan_id(rec), view.roster), plan


def plan_id(rec: Recommendation) -> str:
    """One per plan: an incident may have several, one after another."""
    return digest(rec.id, rec.as_of)


def _refuse(reason: Reason, sentence: str) -> NoReturn:
    raise NotFollowed(reason, sentence)


def _open(snapshot: Snapshot | None, now: float, rules: Rules) -> Recommendation:
    """What stands on the topic, if it is of use."""
    if rules.off:
        _refuse(Reason.OFF, "following is switched off")
    if snapshot is None:
        _refuse(Reason.UNREACHABLE, "kagent's topics have not been read yet")
    # By when it was read, not by what stands there: a reader that is cut off would follow its last plan for ever.
    age = now - snapshot.read_at
    if age > rules.max_age:
        _refuse(Reason.STALE, f"kagent's topics were last read {age:.0f} s ago")
    rec = snapshot.recommendation
    if snapshot.unreadable or (rec is not None and rec.schema_version != SCHEMA):
        _refuse(Reason.UNREADABLE, "the recommendation cannot be read by this version of kagent")
    if rec is None:
        _refuse(Reason.NOTHING_OPEN, "no recommendation is open")
    if rec.cluster != rules.cluster:
        _refuse(Reason.OTHER_CLUSTER, f"the recommendation is of the cluster {shown(rec.cluster)}")
    if rec.group != rules.group:
        _refuse(Reason.OTHER_GROUP, f"the recommendation is of the group {shown(rec.group)}")
    return rec


def _stands(rec: Recommendation, snapshot: Snapshot | None, now: float) -> None:
    """Whether it is still meant to be acted on."""
    if rec.status is Status.RESOLVED:
        _refuse(Reason.NOTHING_OPEN, "the recommendation is resolved")
    if rec.status is Status.SUPERSEDED:
        _refuse(Reason.SUPERSEDED, "the recommendation is superseded: its advice no longer applies")
    if rec.stale:
        _refuse(Reason.BLIND, "kagent is blind for this group")
    late = now - rec.valid_until / 1000
    if late >= 0:
        _refuse(Reason.EXPIRED, f"the recommendation was valid until {late:.0f} s ago")
    if snapshot is not None and now < snapshot.muted_until:
        _refuse(Reason.MUTED, "the group is muted")
    follow = next((a for a in rec.actions if a.type is ActionType.FOLLOW_PLAN), None)
    if follow is None or follow.feasible != "yes":
        why = f": {shown(follow.reason)}" if follow is not None and follow.reason else ""
        _refuse(Reason.INFEASIBLE, f"following the plan is not among what can be done{why}")
    if not rec.assignment or rec.move_count != len(rec.moves) or not rec.moves:
        _refuse(Reason.NO_PLAN, "the recommendation does not tell a whole plan")
    if sum(map(len, rec.assignment.values())) > LARGEST:
        _refuse(Reason.NO_PLAN, f"the plan has more than {LARGEST} partitions")


def _members(view: View, rec: Recommendation) -> dict[str, Peer]:
    """The members by their names, the same here and there."""
    names = view.names
    if names is None:
        _refuse(Reason.FOREIGN_MEMBER, "a member of the group does not say who it is")
    # By names, not by member ids: a classic member that joins again has a new id.
    listed = [member.member for member in rec.members]
    if len(set(listed)) != len(listed):
        _refuse(Reason.OTHER_MEMBERS, "the recommendation names a member twice")
    if missing := sorted(set(listed) - set(names)):
        _refuse(Reason.OTHER_MEMBERS, f"{shown(missing[0])} is in the recommendation but not in the group")
    if extra := sorted(set(names) - set(listed)):
        _refuse(Reason.OTHER_MEMBERS, f"{shown(extra[0])} is in the group but not in the recommendation")
    if ghosts := sorted(set(rec.assignment or ()) - set(names)):
        _refuse(Reason.OTHER_MEMBERS, f"the plan gives partitions to {shown(ghosts[0])}, who is no member")
    return names


def _same_counts(view: View, rec: Recommendation) -> None:
    # A partition that was added since would stay without a member.
    for topic, count in sorted(view.topics.items()):
        if (advised := rec.basis.partitions.get(topic)) != count:
            has = "is not known to the recommendation" if advised is None else f"had {advised} partitions"
            _refuse(Reason.OTHER_COUNTS, f"{shown(topic)} has {count} partitions and {has}")


def _same_generation(view: View, rec: Recommendation) -> None:
    # Not every client's assignor is given the generation; holdings are compared in any case.
    then, now = rec.basis.generation, view.generation
    if then is not None and now is not None and then != now:
        _refuse(
            Reason.OTHER_GENERATION, f"the recommendation is of generation {then}, the group was in {now}"
        )


def _exact(view: View, rec: Recommendation, names: Mapping[str, Peer]) -> Plan:
    """Every subscribed partition exactly once, at a member that subscribes to its topic."""
    assignment = rec.assignment or {}
    plan = {name: tuple(assignment.get(name, ())) for name in names}
    seen: set[tuple[str, int]] = set()
    for name, held in plan.items():
        for pair in held:
            if pair not in view.partitions:
                _refuse(
                    Reason.UNKNOWN_PARTITION,
                    f"the plan has {partition_name(*pair)}, which the group does not read",
                )
            if pair in seen:
                _refuse(Reason.DOUBLED_PARTITION, f"the plan gives {partition_name(*pair)} twice")
            if pair[0] not in names[name].topics:
                _refuse(Reason.NOT_SUBSCRIBED, f"{shown(name)} does not subscribe to {shown(pair[0])}")
            seen.add(pair)
    if missing := min(view.partitions - seen, default=None):
        _refuse(Reason.MISSING_PARTITION, f"the plan gives {partition_name(*missing)} to no member")
    return plan


def _same_holdings(rec: Recommendation, plan: Plan, names: Mapping[str, Peer]) -> None:
    """Whether the members hold what the plan starts from: the plan with its moves taken back."""
    # From other holdings the same plan would move other partitions than the recommendation weighed.
    before = {name: set(held) for name, held in plan.items()}
    for move in rec.moves:
        pair = (move.topic, move.partition)
        if pair not in before.get(move.to, ()) or (move.source is not None and move.source not in before):
            _refuse(
                Reason.NO_PLAN, f"the plan and its moves contradict each other about {partition_name(*pair)}"
            )
        before[move.to].discard(pair)
        if move.source is not None:
            before[move.source].add(pair)
    for name, peer in names.items():
        if peer.held is None:
            _refuse(Reason.OTHER_HOLDINGS, f"{shown(name)} does not say what it holds")
        if set(peer.held) != before[name]:
            _refuse(Reason.OTHER_HOLDINGS, f"{shown(name)} holds other partitions than the plan starts from")
