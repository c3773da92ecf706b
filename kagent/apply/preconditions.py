"""Whether the open recommendation of a KIP-848 group can be taken now, by the same checks as the assignors make.

Pure: what was read of kagent's topics, what the coordinator and the cluster say, and the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kagent.assignor import NAME, follows_plans
from kagent.assignor.routes import ROUTES
from kagent.contract.recommendation import GroupKind, Recommendation
from kagent.errors import KagentError
from kagent.follow.decision_types import Held, Peer, Reason, Rules, Snapshot, View, member_name
from kagent.follow.followable import NotFollowed, plan_for
from kagent.kafka.descriptions import Described, MemberDescription, TopicDescription
from kagent.text import shown

CLIENT_ID = "kagent-apply"
"""Of the member by which `kagent apply` moves a group's epoch."""
NO_ASSIGNOR = "no_assignor"
NOT_KIP_848 = "not_kip_848"
NOT_STABLE = "not_stable"
OTHER_TOPIC = "other_topic"
NO_TOPIC_IDS = "no_topic_ids"
HELD = "the group holds what the plan gives already; kagent resolves the recommendation by itself"


class CannotApply(KagentError):
    """The recommendation is not taken. ``reason``: one of ``kagent.follow``'s reasons or of the names above."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """What is to be: member id → partitions. ``names``: member id → the recommendation's name for it."""

    recommendation: Recommendation
    wanted: Mapping[str, frozenset[tuple[str, int]]]
    names: Mapping[str, str]


def checked(
    found: Described,
    snapshot: Snapshot | None,
    topics: Mapping[str, TopicDescription],
    now: float,
    rules: Rules,
    uniform_follows: bool = False,
) -> CheckedPlan:
    """The plan that the group may take now. ``now``: seconds since the epoch. Raises CannotApply."""
    rec = snapshot.recommendation if snapshot else None
    _of_its_kind(found, rules.group, uniform_follows, rec.group_kind if rec else GroupKind.CLASSIC)
    _nobody_at_work(found)
    names = _names(found, rec)
    view = View(
        tuple(_peer(member, names[member.member_id], found, rec) for member in found.group.members),
        {name: topic.partitions for name, topic in topics.items()},
    )
    try:
        _, plan = plan_for(view, snapshot, now, rules)
    except NotFollowed as error:
        taken = error.reason == Reason.OTHER_HOLDINGS and _holds(view, rec)
        raise CannotApply(
            error.reason, f"Nothing is applied: {HELD if taken else error.sentence}."
        ) from error
    assert rec is not None
    _same_topics(rec, topics, plan)
    _settled(found)
    ids = {name: member_id for member_id, name in names.items()}
    return CheckedPlan(rec, {ids[name]: frozenset(held) for name, held in plan.items()}, names)


def _holds(view: View, rec: Recommendation | None) -> bool:
    """Whether the plan is what the group holds already, as after a run that was ended before it could tell."""
    plan = (rec.assignment if rec else None) or {}
    return all(set(plan.get(peer.name or "", ())) == set(peer.held or ()) for peer in view.peers)


def _nobody_at_work(found: Described) -> None:
    # It reads nothing; one that holds partitions is a consumer that somebody gave this client id.
    if any(m.client_id == CLIENT_ID and not m.assigned and not m.target for m in found.group.members):
        raise CannotApply(
            NOT_STABLE,
            "Nothing is applied: the member of another `kagent apply` is in the group. That run is at work, or was ended in "
            "the middle; then its member is gone after the group's session timeout (45 s by default). Try again then.",
        )


def _of_its_kind(found: Described, group: str, uniform_follows: bool, client: GroupKind) -> None:
    name, kind = shown(group), found.group.type
    if found.group.state == "dead":
        raise CannotApply(NOT_KIP_848, f"There is no group {name}: check its name.")
    if kind == "streams":
        raise CannotApply(
            NOT_KIP_848,
            f"{name} is a group of Kafka Streams' own protocol: the broker gives out its tasks, and takes no plan from outside.",
        )
    if kind != "consumer":
        needs = (
            f"; to take a plan it needs {ROUTES[client]}" if kind == "classic" and client in ROUTES else ""
        )
        raise CannotApply(
            NOT_KIP_848,
            f"{name} is a {kind} group, and only groups of the consumer protocol (KIP-848) can be moved from outside{needs}.",
        )
    if not follows_plans(found.group.protocol, uniform_follows):
        raise CannotApply(
            NO_ASSIGNOR,
            f"{name} is assigned by {shown(found.group.protocol)}: put kagent's assignor on every broker (`kagent assignor` "
            f"prints how), then set group.remote.assignor={NAME} in the group's consumers; franz-go's cannot name it: "
            "`kagent assignor --as-uniform`.",
        )


def _names(found: Described, rec: Recommendation | None) -> dict[str, str]:
    """Member id → the recommendation's name of it, else the usual one: the broker too goes by member ids."""
    recommended = {m.member_id: m.member for m in rec.members if m.member_id} if rec else {}
    return {
        m.member_id: recommended.get(m.member_id)
        or f"{member_name(m.instance_id, m.client_id, m.host)} ({m.member_id})"
        for m in found.group.members
    }


def _peer(member: MemberDescription, name: str, found: Described, rec: Recommendation | None) -> Peer:
    reported = found.reported.get(member.member_id)
    topics = reported.topics if reported else None
    if topics is None:  # a regular expression: the broker matches it, and the assignor sees what it matched
        topics = tuple(rec.basis.partitions) if rec else ()
    # Assignors on the broker start from the targets, which members take up over their next heartbeats.
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
    held = member.assigned if member.target is None else member.target
    return Peer(member.member_id, topics, name, tuple(sorted(held)))


def _same_topics(
    rec: Recommendation, topics: Mapping[str, TopicDescription], plan: Mapping[str, Held]
) -> None:
    """Whether the broker will recognise the topics, which it knows by their ids only."""
    for name in sorted({topic for held in plan.values() for topic, _ in held}):
        recommended = rec.topic_ids.get(name)
        if recommended is None:
            raise CannotApply(
                NO_TOPIC_IDS,
                f"Nothing is applied: the recommendation has no id for {shown(name)}; run a newer `kagent worker`.",
            )
        # Deleted and made anew it has another id (KIP-516), and other records under the same partition numbers.
        if recommended != topics[name].id:
            raise CannotApply(
                OTHER_TOPIC, f"Nothing is applied: {shown(name)} was made anew since the recommendation."
            )


def _settled(found: Described) -> None:
    late = [m for m in found.group.members if m.target is not None and m.target != m.assigned]
    if late or found.group.state != "stable":
        raise CannotApply(NOT_STABLE, "Nothing is applied: the group is rebalancing; try again in a moment.")
