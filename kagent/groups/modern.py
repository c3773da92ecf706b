"""Consumer, share and streams groups: many records, put together as their coordinator has them in memory.

    state, in this order            consumer            share    streams
    no member                       Empty               Empty    Empty
    topology not validated          –                   –        NotReady
    group epoch > target epoch      Assigning           –        Assigning
    some member not at the target   Reconciling         –        Reconciling
    else                            Stable              Stable   Stable

Source: ``maybeUpdateGroupState`` and ``isReconciledTo`` of ``ConsumerGroup``, ``ShareGroup`` and ``StreamsGroup`` (KIP-848,
KIP-932, KIP-1071). A static member that is away keeps its records, has the epoch -2, and so is at no target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from kagent.groups.client_library import library_of
from kagent.groups.group import GroupView, MemberView, Partitions, topic_id
from kagent.groups.known_records import KnownRecords, Slot
from kagent.groups.streams_tasks import partitions_read, sources_of

Live = dict[str, dict[str, Slot]]
"""The records that stand, by kind and by member or expression."""
# Epoch of a static member that left for now: ConsumerGroupHeartbeatRequest.LEAVE_GROUP_STATIC_MEMBER_EPOCH (KIP-848).
LEFT_FOR_NOW = -2
# MemberState numbers differ: 0 is STABLE in a consumer group, 1 in a streams group.
# https://github.com/apache/kafka/blob/4.3.0/group-coordinator/src/main/java/org/apache/kafka/coordinator/group/modern/MemberState.java
STABLE = {"consumer": 0, "share": 0, "streams": 1}
"""The member state in record 8, 14 or 22 that means: has taken up what it was given."""
NEVER_VALIDATED = -1
TASKS = ("activeTasks", "standbyTasks", "warmupTasks")


def modern(state: KnownRecords, live: Live, family: str, topic_names: Mapping[str, str]) -> GroupView:
    """The group of this family (consumer, share, streams)."""
    names = _Topics(topic_names, live)
    members = tuple(_member(name, live, family, names) for name in sorted(live.get("member", {})))
    target = _number(live, "target_epoch", "assignmentEpoch")
    return GroupView(
        group=state.group,
        type=family,
        state=_state(members, target, live, family),
        protocol_type="consumer" if family == "consumer" else family,
        protocol=_assignor(live),
        generation=_number(live, "epoch", "epoch"),
        target_epoch=target,
        members=members,
        last_change=max(slot.time for slots in live.values() for slot in slots.values()),
        unresolved=tuple(sorted(names.missing)),
        stale=state.stale,
        topology=_value(live, "topology", "") or None,
    )


def _value(live: Live, kind: str, name: str) -> Mapping[str, Any]:
    slot = live.get(kind, {}).get(name)
    return slot.value or {} if slot else {}


def _number(live: Live, kind: str, name: str) -> int | None:
    number: int | None = _value(live, kind, "").get(name)
    return number


def _assignor(live: Live) -> str | None:
    """What most members ask for; None (the broker's default) where no one asks."""
    asked = Counter(
        a for s in live.get("member", {}).values() if s.value and (a := s.value.get("serverAssignor"))
    )
    # The coordinator takes the assignor that most members ask for (KIP-848, "server-side assignors").
    return asked.most_common(1)[0][0] if asked else None


def _state(members: tuple[MemberView, ...], target: int | None, live: Live, family: str) -> str:
    if not members:
        return "Empty"
    # A share group has no revocation to wait for: members share partitions (KIP-932).
    if family == "share":
        return "Stable"
    if family == "streams" and not _validated(live):
        return "NotReady"
    if (_number(live, "epoch", "epoch") or 0) > (target or 0):
        return "Assigning"
    # Compared as the coordinator does: a member is reconciled at the target epoch in state STABLE.
    if any(not m.stable or (m.epoch or 0) != (target or 0) for m in members):
        return "Reconciling"
    return "Stable"


def _validated(live: Live) -> bool:
    """Whether the streams topology was checked against the topics. Before Kafka 4.2 no record says so: then the
    coordinator's giving out tasks does."""
    topology = _number(live, "topology", "epoch")
    validated = _value(live, "epoch", "").get("validatedTopologyEpoch", NEVER_VALIDATED)
    if validated != NEVER_VALIDATED or topology is None:
        return bool(validated == topology)
    targets = (slot.value or {} for slot in live.get("target", {}).values())
    return any(target.get(kind) for target in targets for kind in TASKS)


class _Topics:
    """Topic ids to names, from the caller and from the group's own records, with those it could not tell; what each subtopology reads."""

    def __init__(self, known: Mapping[str, str], live: Live) -> None:
        self.known = known
        self.missing: set[str] = set()
        self.own: dict[str, str] = {}
        self.sources = sources_of(_value(live, "topology", ""))
        # Consumer groups wrote names beside the ids until Kafka 4.0, share groups still do; from 4.1 on a consumer group's ids
        # are known from commits and from metadata only.
        for kind in ("topics", "share_topics"):
            for topics in _value(live, kind, "").values():
                if isinstance(topics, list):
                    self.own |= {topic["topicId"]: topic["topicName"] for topic in topics}

    def partitions(self, listed: Iterable[Mapping[str, Any]] | None) -> Partitions:
        return joined(self._named(listed or ()))

    def _named(self, listed: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[int]]]:
        for tp in listed:
            printed = topic_id(tp["topicId"])
            name = self.known.get(printed) or self.own.get(tp["topicId"])
            if name is not None:
                yield name, tp["partitions"]
            else:
                self.missing.add(printed)


def joined(pairs: Iterable[tuple[str, list[int]]]) -> Partitions:
    """Topic → its partitions, sorted; a topic may come several times. Numbers below 0 are none."""
    found: dict[str, set[int]] = {}
    for topic, partitions in pairs:
        # A client may write any number into its assignment; the coordinator passes it on unread.
        found.setdefault(topic, set()).update(number for number in partitions if number >= 0)
    return {topic: tuple(sorted(partitions)) for topic, partitions in found.items()}


def _member(name: str, live: Live, family: str, names: _Topics) -> MemberView:
    value, current, target = (_value(live, kind, name) for kind in ("member", "current", "target"))
    # Java and librdkafka write an empty expression where they have none.
    regex = value.get("subscribedTopicRegex") or None
    matched = _value(live, "regex", regex).get("topics", ()) if regex else ()
    classic = (value.get("classicMemberMetadata") or {}).get("supportedProtocols") or []
    epoch = current.get("memberEpoch")
    assigned, to_be, pending = _held(family, names, current, target)
    sources = chain.from_iterable(names.sources.values())
    subscribed = sources if family == "streams" else value.get("subscribedTopicNames", ())
    return MemberView(
        member_id=name,
        instance_id=value.get("instanceId"),
        client_id=value["clientId"],
        host=value["clientHost"],
        rack=value.get("rackId") or None,
        subscriptions=tuple(dict.fromkeys([*subscribed, *matched])),
        regex=regex,
        assigned=assigned,
        target=to_be,
        pending_revocation=pending,
        epoch=epoch,
        stable=current.get("state", STABLE[family]) == STABLE[family],
        classic=bool(classic),
        away=epoch == LEFT_FOR_NOW,
        rebalance_timeout_ms=value.get("rebalanceTimeoutMs"),
        # The broker assigns here, so no assignment tells of a client.
        library=library_of(classic[0]["name"], classic[0].get("metadata_decoded") or {}, {})
        if classic
        else None,
        protocols=tuple(protocol["name"] for protocol in classic),
    )


def _held(
    family: str, names: _Topics, current: Mapping[str, Any], target: Mapping[str, Any]
) -> tuple[Partitions, Partitions, Partitions]:
    """What a member holds, is to hold, and is giving up."""
    if family == "streams":
        lists = (current.get(TASKS[0]), target.get(TASKS[0]), current.get(f"{TASKS[0]}PendingRevocation"))
        assigned, to_be, pending = (joined(partitions_read(tasks or (), names.sources)) for tasks in lists)
    else:
        lists = (
            current.get("assignedPartitions"),
            target.get("topicPartitions"),
            current.get("partitionsPendingRevocation"),
        )
        assigned, to_be, pending = (names.partitions(listed) for listed in lists)
    return assigned, to_be, pending
