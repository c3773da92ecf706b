"""The group as it stands, derived from the records that are remembered of it.

Type, state and epochs follow the broker's ``ClassicGroup``, ``ConsumerGroup`` and ``StreamsGroup`` (KIP-848, KIP-1071).
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kagent.groups.library import library_of
from kagent.groups.state import GroupState, Slot

Partitions = Mapping[str, tuple[int, ...]]
LEFT_FOR_NOW = -2
STABLE_STATE = {"consumer": 0, "share": 0, "streams": 1}


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member. ``assigned``: what it holds now, topic → partitions; ``target``: what it is to hold (KIP-848)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    subscriptions: tuple[str, ...]
    regex: str | None = None
    assigned: Partitions = field(default_factory=dict)
    target: Partitions | None = None
    pending_revocation: Partitions = field(default_factory=dict)
    epoch: int | None = None
    stable: bool = True
    classic: bool = False
    """Speaks the classic protocol within a KIP-848 group (an upgrade under way)."""
    away: bool = False
    """A static member that left for now; what it held is kept for it."""
    rebalance_timeout_ms: int | None = None
    library: str | None = None
    """``java``, ``librdkafka``, ``python`` or ``faust`` where its blobs tell."""

    @property
    def name(self) -> str:
        """The name that outlives a restart: instance id, else client id and host."""
        return (
            self.instance_id
            or f"{self.client_id}{self.host if self.host.startswith('/') else '/' + self.host}"
        )


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group. ``generation``: of a classic group, else the group epoch. Times in ms. ``unresolved``: topic ids without a
    name; what is held of them is missing from the members' ``assigned``."""

    group: str
    type: str
    state: str
    protocol_type: str | None
    protocol: str | None
    generation: int | None
    target_epoch: int | None
    members: tuple[MemberView, ...]
    last_change: int
    unresolved: tuple[str, ...] = ()
    stale: bool = False
    topology: Mapping[str, Any] | None = None

    def holder(self) -> dict[tuple[str, int], MemberView]:
        """Who holds each partition now."""
        return {(t, p): m for m in self.members for t, ps in m.assigned.items() for p in ps}


def topic_id(canonical: str) -> str:
    """Kafka's printed form (22 characters of base64) of a topic id in canonical UUID text."""
    return urlsafe_b64encode(uuid.UUID(canonical).bytes).decode().rstrip("=")


def view(state: GroupState | None, topic_names: Mapping[str, str], group: str = "") -> GroupView:
    """The group as it stands. ``topic_names``: topic id (printed form) → name.

    A group without a record of membership is ``simple``: it only commits.
    """
    if state is None or not state.live:
        return _simple(state, group)
    of: dict[str, dict[str, Slot]] = {}
    for (kind, name), slot in state.slots.items():
        if slot.value is not None:
            of.setdefault(kind, {})[name] = slot
    modern = _modern_type(of)
    if modern is None and "classic" in of:
        return _classic(state, of["classic"][""])
    return _modern(state, of, modern or "consumer", topic_names)


def _simple(state: GroupState | None, group: str) -> GroupView:
    last = max((s.time for s in state.slots.values()), default=0) if state else 0
    name = state.group if state else group
    return GroupView(
        name, "simple", "Empty", None, None, None, None, (), last, stale=bool(state and state.stale)
    )


def _modern_type(of: Mapping[str, Mapping[str, Slot]]) -> str | None:
    newest: tuple[int, str] | None = None
    for slots in of.values():
        for slot in slots.values():
            kind = next((k for k in ("Consumer", "Share", "Streams") if slot.record.startswith(k)), None)
            if kind and (newest is None or slot.offset > newest[0]):
                newest = (slot.offset, kind.lower())
    classic = of.get("classic", {}).get("")
    if newest and classic and classic.offset > newest[0]:
        return None  # downgraded: left-over tombstones are still to come
    return newest[1] if newest else None


def _classic(state: GroupState, slot: Slot) -> GroupView:
    value = slot.value or {}
    kind = value["protocolType"] or None
    members = tuple(_classic_member(m, value) for m in value["members"])
    simple = not members and kind is None
    return GroupView(
        group=state.group,
        type="simple" if simple else "classic",
        state="Stable" if members else "Empty",
        protocol_type=kind,
        protocol=value["protocol"],
        generation=value["generation"],
        target_epoch=None,
        members=members,
        last_change=slot.time,
        stale=state.stale,
    )


def _classic_member(member: Mapping[str, Any], group: Mapping[str, Any]) -> MemberView:
    said = member.get("subscription_decoded") or {}
    given = member.get("assignment_decoded") or {}
    timeout = member.get("rebalanceTimeout", -1)
    return MemberView(
        member_id=member["memberId"],
        instance_id=member.get("groupInstanceId"),
        client_id=member["clientId"],
        host=member["clientHost"],
        rack=said.get("rackId") or None,
        subscriptions=tuple(said.get("topics", ())),
        assigned=_joined((tp["topic"], tp["partitions"]) for tp in given.get("assignedPartitions", ())),
        epoch=group["generation"],
        classic=True,
        rebalance_timeout_ms=timeout if timeout >= 0 else member["sessionTimeout"],
        library=library_of(group["protocol"], said, given),
    )


def _joined(pairs: Any) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic, partitions in pairs:
        found.setdefault(topic, []).extend(partitions)
    return {topic: tuple(sorted(partitions)) for topic, partitions in found.items()}


def _modern(
    state: GroupState, of: Mapping[str, Mapping[str, Slot]], kind: str, topic_names: Mapping[str, str]
) -> GroupView:
    names = _Names(topic_names, of)
    epoch = _number(of, "epoch", "epoch")
    target = _number(of, "target_epoch", "assignmentEpoch")
    regexes = {name: tuple(slot.value["topics"]) for name, slot in of.get("regex", {}).items() if slot.value}
    members = tuple(
        _modern_member(name, slot, of, kind, names, regexes, target)
        for name, slot in sorted(of.get("member", {}).items())
    )
    assignors = sorted(
        {a for s in of.get("member", {}).values() if s.value and (a := s.value.get("serverAssignor"))}
    )
    topology = of.get("topology", {}).get("")
    return GroupView(
        group=state.group,
        type=kind,
        state=_state(members, epoch, target, of, topology),
        protocol_type="consumer" if kind == "consumer" else kind,
        protocol=assignors[0] if len(assignors) == 1 else None,
        generation=epoch,
        target_epoch=target,
        members=members,
        last_change=max((s.time for slots in of.values() for s in slots.values()), default=0),
        unresolved=tuple(sorted(names.missing)),
        stale=state.stale,
        topology=topology.value if topology else None,
    )


def _number(of: Mapping[str, Mapping[str, Slot]], kind: str, name: str) -> int | None:
    slot = of.get(kind, {}).get("")
    return int(slot.value[name]) if slot and slot.value else None


def _state(
    members: tuple[MemberView, ...],
    epoch: int | None,
    target: int | None,
    of: Mapping[str, Mapping[str, Slot]],
    topology: Slot | None,
) -> str:
    if not [m for m in members if not m.away]:
        return "Empty"
    group = of.get("epoch", {}).get("")
    if topology and topology.value and group and group.value:
        validated = group.value.get("validatedTopologyEpoch", -1)
        if validated not in (-1, topology.value["epoch"]):
            return "NotReady"
    if epoch is not None and epoch > (target if target is not None else -1):
        return "Assigning"
    if any(not m.stable or m.epoch != target for m in members if not m.away):
        return "Reconciling"
    return "Stable"


class _Names:
    """Topic ids to names, from the caller and from the group's own records; remembers those it could not tell."""

    def __init__(self, known: Mapping[str, str], of: Mapping[str, Mapping[str, Slot]]) -> None:
        self.known = known
        self.own: dict[str, str] = {}
        self.missing: set[str] = set()
        for kind in ("topics", "share_topics"):
            slot = of.get(kind, {}).get("")
            for topics in (slot.value or {}).values() if slot else ():
                self.own |= {t["topicId"]: t["topicName"] for t in topics if isinstance(t, Mapping)}

    def partitions(self, listed: Any) -> dict[str, tuple[int, ...]]:
        found = []
        for tp in listed or ():
            printed = topic_id(tp["topicId"])
            name = self.known.get(printed) or self.own.get(tp["topicId"])
            if name is None:
                self.missing.add(printed)
            else:
                found.append((name, tp["partitions"]))
        return _joined(found)


def _modern_member(
    name: str,
    slot: Slot,
    of: Mapping[str, Mapping[str, Slot]],
    kind: str,
    names: _Names,
    regexes: Mapping[str, tuple[str, ...]],
    target_epoch: int | None,
) -> MemberView:
    value = slot.value or {}
    current = _value(of, "current", name)
    target = _value(of, "target", name)
    regex = value.get("subscribedTopicRegex") or None
    named = tuple(value.get("subscribedTopicNames", ()))
    classic = (value.get("classicMemberMetadata") or {}).get("supportedProtocols") or []
    epoch = current.get("memberEpoch")
    said = classic[0].get("metadata_decoded", {}) if classic else {}
    return MemberView(
        member_id=name,
        instance_id=value.get("instanceId"),
        client_id=value["clientId"],
        host=value["clientHost"],
        rack=value.get("rackId") or None,
        subscriptions=tuple(dict.fromkeys([*named, *(regexes.get(regex, ()) if regex else ())])),
        regex=regex,
        assigned=names.partitions(current.get("assignedPartitions")) if kind != "streams" else {},
        target=names.partitions(target.get("topicPartitions")) if kind != "streams" else None,
        pending_revocation=names.partitions(current.get("partitionsPendingRevocation"))
        if kind != "streams"
        else {},
        epoch=epoch,
        stable=current.get("state", 0) == STABLE_STATE[kind],
        classic=bool(classic),
        away=epoch == LEFT_FOR_NOW,
        rebalance_timeout_ms=value.get("rebalanceTimeoutMs"),
        library=library_of(classic[0]["name"], said, {}) if classic else None,
    )


def _value(of: Mapping[str, Mapping[str, Slot]], kind: str, name: str) -> Mapping[str, Any]:
    slot = of.get(kind, {}).get(name)
    return slot.value if slot and slot.value else {}
