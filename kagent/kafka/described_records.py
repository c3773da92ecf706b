"""The records of ``__consumer_offsets`` that a coordinator's description of a group stands for.

For a group whose own records are no longer known here. A coordinator tells no generation of a classic group and no offsets, so what
it writes later takes the place of these, key by key. A streams group's description does not hold its tasks as its records do.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any

from kagent.kafka.descriptions import Described, Key, MemberDescription
from kagent.offsets import Record

SETTLED = ("stable", "empty")
"""States in which the members and what they hold are what they will stay."""


def records_of(found: Described) -> list[Record] | None:
    """The membership records of the group; none for one that only commits. None where the description does not tell them (now)."""
    group = found.group
    # A group of which nothing but offsets is left, or which simple consumers commit for, is dead or empty and has no protocol.
    if group.type == "classic" and not group.members and (group.simple or group.state == "dead"):
        return []
    if group.state not in SETTLED or group.type not in ("classic", "consumer"):
        return None
    return [_classic(found)] if group.type == "classic" else _consumer(found)


def _classic(found: Described) -> Record:
    group = found.group
    members = [_classic_member(found, member) for member in group.members]
    value = {
        "protocolType": "consumer",
        "generation": None,
        "protocol": group.protocol or None,
        "leader": None,
        "members": members,
    }
    return Record("GroupMetadata", 2, 3, {"group": group.group}, value)


def _classic_member(found: Described, member: MemberDescription) -> dict[str, Any]:
    report = found.reported.get(member.member_id)
    held = [{"topic": topic, "partitions": numbers} for topic, numbers in _by_topic(member.assigned).items()]
    return {
        "memberId": member.member_id,
        "groupInstanceId": member.instance_id,
        "clientId": member.client_id,
        "clientHost": member.host,
        "sessionTimeout": None,
        "subscription_decoded": report.subscription if report else None,
        "assignment_decoded": {"assignedPartitions": held},
    }


def _consumer(found: Described) -> list[Record]:
    key = {"groupId": found.group.group}
    made = [
        Record("ConsumerGroupMetadata", 3, 0, key, {"epoch": found.epoch}),
        Record("ConsumerGroupTargetAssignmentMetadata", 6, 0, key, {"assignmentEpoch": found.epoch}),
    ]
    for member in found.group.members:
        made += _consumer_member(found, member, {**key, "memberId": member.member_id})
    return made


def _consumer_member(found: Described, member: MemberDescription, key: Mapping[str, str]) -> list[Record]:
    report = found.reported.get(member.member_id)
    about = {
        "instanceId": member.instance_id,
        "rackId": report.rack if report else None,
        "clientId": member.client_id,
        "clientHost": member.host,
        "subscribedTopicNames": list(report.topics or ()) if report else [],
        "subscribedTopicRegex": report.regex if report else None,
        "serverAssignor": found.group.protocol or None,
    }
    current = {
        "memberEpoch": report.generation if report else found.epoch,
        "state": 0,  # stable: the group is
        "assignedPartitions": _with_ids(found, member.assigned),
        "partitionsPendingRevocation": [],
    }
    target = member.assigned if member.target is None else member.target
    return [
        Record("ConsumerGroupMemberMetadata", 5, 0, key, about),
        Record(
            "ConsumerGroupTargetAssignmentMember",
            7,
            0,
            key,
            {"topicPartitions": _with_ids(found, target)},
        ),
        Record("ConsumerGroupCurrentMemberAssignment", 8, 0, key, current),
    ]


def _with_ids(found: Described, held: Iterable[Key]) -> list[dict[str, Any]]:
    return [
        {"topicId": _canonical(found.topic_ids[topic]), "partitions": numbers}
        for topic, numbers in _by_topic(held).items()
        if topic in found.topic_ids
    ]


def _by_topic(held: Iterable[Key]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(held):
        found.setdefault(topic, []).append(number)
    return found


def _canonical(printed: str) -> str:
    """A topic id as records have it: the text of a UUID."""
    return str(uuid.UUID(bytes=urlsafe_b64decode(f"{printed}==")))
