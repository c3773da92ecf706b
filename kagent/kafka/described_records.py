"""The records of ``__consumer_offsets`` that a coordinator's description of a group stands for.

For a group whose own records are no longer known here. A coordinator tells no generation of a classic group and no offsets, so what
it writes later takes the place of these, key by key. A streams group's description does not hold its tasks as its records do.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kagent.groups.modern import STABLE, TASKS
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
    if group.state not in SETTLED or group.type not in MAKERS:
        return None
    return MAKERS[group.type](found)


def _classic(found: Described) -> list[Record]:
    group = found.group
    members = [_classic_member(found, member) for member in group.members]
    value = {
        "protocolType": "consumer",
        "generation": None,
        "protocol": group.protocol or None,
        "leader": None,
        "members": members,
    }
    return [Record("GroupMetadata", 2, 3, {"group": group.group}, value)]


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
        "assignment_decoded": {"version": report and report.assignment_version, "assignedPartitions": held},
    }


def _consumer(found: Described) -> list[Record]:
    return _of_family("Consumer", found, {"epoch": found.epoch}, _consumer_member)


def _share(found: Described) -> list[Record]:
    return _of_family("Share", found, {"epoch": found.epoch}, _share_member)


def _streams(found: Described) -> list[Record]:
    answer = found.streams or {}
    topology = answer["topology"]
    by_id = {member["member_id"]: member for member in answer["members"]}
    # A group that is settled has a topology that was validated.
    about = {"epoch": found.epoch, "validatedTopologyEpoch": topology["epoch"]}
    records = _of_family("Streams", found, about, lambda _, member: _streams_member(by_id[member.member_id]))
    return [*records, Record("StreamsGroupTopology", 23, 0, _key(found), _topology(topology))]


MAKERS: Mapping[str, Callable[[Described], list[Record]]] = {
    "classic": _classic,
    "consumer": _consumer,
    "share": _share,
    "streams": _streams,
}
NUMBERS = {"Consumer": (3, 6, 5, 7, 8), "Share": (11, 12, 10, 13, 14), "Streams": (17, 20, 19, 21, 22)}
"""Record types of a family: group, target epoch; member, its target and its current assignment."""
MemberValues = Callable[[Described, MemberDescription], tuple[dict[str, Any], ...]]


def _of_family(
    family: str, found: Described, about: Mapping[str, Any], member_values: MemberValues
) -> list[Record]:
    """The records of a group of this family; ``member_values``: those of a member, its target and its current assignment."""
    group, epoch, *of_member = NUMBERS[family]
    key = _key(found)
    names = ("MemberMetadata", "TargetAssignmentMember", "CurrentMemberAssignment")
    made = [
        Record(f"{family}GroupMetadata", group, 0, key, dict(about)),
        Record(f"{family}GroupTargetAssignmentMetadata", epoch, 0, key, {"assignmentEpoch": found.epoch}),
    ]
    for member in found.group.members:
        values = zip(names, of_member, member_values(found, member), strict=True)
        own = {**key, "memberId": member.member_id}
        made += [Record(f"{family}Group{name}", number, 0, own, value) for name, number, value in values]
    return made


def _key(found: Described) -> dict[str, str]:
    return {"groupId": found.group.group}


def _consumer_member(found: Described, member: MemberDescription) -> tuple[dict[str, Any], ...]:
    report = found.reported.get(member.member_id)
    about, target, current = _share_member(found, member)
    about |= {
        "instanceId": member.instance_id,
        "subscribedTopicRegex": report.regex if report else None,
        "serverAssignor": found.group.protocol or None,
    }
    return about, target, {**current, "partitionsPendingRevocation": []}


def _share_member(found: Described, member: MemberDescription) -> tuple[dict[str, Any], ...]:
    report = found.reported.get(member.member_id)
    about = {
        "rackId": report.rack if report else None,
        "clientId": member.client_id,
        "clientHost": member.host,
        "subscribedTopicNames": list(report.topics or ()) if report else [],
    }
    target = member.assigned if member.target is None else member.target
    current = {
        "memberEpoch": report.generation if report else found.epoch,
        "state": STABLE["share"],
        "assignedPartitions": _with_ids(found, member.assigned),
    }
    return about, {"topicPartitions": _with_ids(found, target)}, current


def _streams_member(member: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    about = {
        "instanceId": member["instance_id"],
        "rackId": member["rack"],
        "clientId": member["client_id"],
        "clientHost": member["host"],
    }
    current = {
        "memberEpoch": member["epoch"],
        "state": STABLE["streams"],
        **_tasks(member["assignment"]),
        "activeTasksPendingRevocation": [],
    }
    return about, _tasks(member["target"]), current


def _tasks(held: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: [{name: task[name] for name in ("subtopologyId", "partitions")} for task in held[kind] or ()]
        for kind in TASKS
    }


def _topology(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What each subtopology reads and writes; how its topics are to be made is not needed here."""
    subtopologies = [
        {
            "subtopologyId": sub["subtopologyId"],
            "sourceTopics": list(sub["sourceTopics"] or ()),
            "repartitionSinkTopics": list(sub["repartitionSinkTopics"] or ()),
            "stateChangelogTopics": [{"name": topic["name"]} for topic in sub["stateChangelogTopics"] or ()],
            "repartitionSourceTopics": [
                {"name": topic["name"]} for topic in sub["repartitionSourceTopics"] or ()
            ],
        }
        for sub in answer["subtopologies"] or ()
    ]
    return {"epoch": answer["epoch"], "subtopologies": subtopologies}


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
