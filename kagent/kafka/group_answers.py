"""Answers of coordinators about one group each, read into descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from kagent.groups.streams_tasks import partitions_read, sources_of
from kagent.kafka.descriptions import (
    Described,
    GroupDescription,
    Key,
    MemberDescription,
    MemberReport,
    uuid_text,
)
from kagent.kafka.group_requests import DescribeConsumer, DescribeShare, DescribeStreams
from kagent.offsets import DecodeError
from kagent.offsets.blobs import assignment, subscription


def offsets(raw: dict[str, Any]) -> dict[Key, int]:
    """The committed offsets of one group."""
    return {
        (topic["topic"], part["partition"]): part["offset"]
        for topic in raw["topics"] or ()
        for part in topic["partitions"] or ()
        # Offset -1 is a partition without a commit.
        if not part["error_code"] and part["offset"] >= 0
    }


def classic(raw: dict[str, Any]) -> Described:
    """A group of the classic protocol."""
    members, reported = [], {}
    for member in raw["members"]:
        given = _assignment(member["assignment"])
        members.append(_member(member, _assigned(given)))
        reported[member["member_id"]] = _subscribed(member["metadata"], given.get("version"))
    simple = not raw["protocol_type"]
    group = GroupDescription(
        raw["group"], raw["state"].lower(), "classic", raw["protocol"] or "", simple, tuple(members)
    )
    return Described(group, reported)


def _assignment(blob: bytes | None) -> dict[str, Any]:
    try:
        return assignment(blob) if blob else {}
    except DecodeError:
        return {}  # the assignor's own format: nothing is known of what it holds


def _assigned(given: dict[str, Any]) -> frozenset[Key]:
    parts = given.get("assignedPartitions", ())
    # As in the records: a client may write any number into its assignment.
    return frozenset(
        (part["topic"], number) for part in parts for number in part["partitions"] if number >= 0
    )


def _subscribed(blob: bytes | None, assignment_version: int | None) -> MemberReport:
    try:
        reported = subscription(blob) if blob else {}
    except DecodeError:
        reported = {}
    topics = reported.get("topics")
    return MemberReport(
        None if topics is None else tuple(topics),
        reported.get("rackId") or None,
        reported.get("generationId"),
        subscription=reported or None,
        assignment_version=assignment_version,
    )


def _consumer(raw: dict[str, Any]) -> Described:
    members, reported = [], {}
    ids: dict[str, str] = {}
    for member in raw["members"]:
        held, target = _held(member["assignment"], ids), _held(member["target"], ids)
        members.append(_member(member, held, target))
        known = None if member["regex"] else tuple(member["topics"] or ())
        reported[member["member_id"]] = MemberReport(
            known, member["rack"] or None, member["epoch"], member["regex"] or None
        )
    state = raw["state"].lower()
    group = GroupDescription(raw["group"], state, "consumer", raw["assignor"], False, tuple(members))
    return Described(group, reported, raw["group_epoch"], ids)


def _streams(raw: dict[str, Any]) -> Described:
    members, reported = [], {}
    sources = sources_of(raw["topology"])
    topics = tuple(dict.fromkeys(chain.from_iterable(sources.values())))
    for member in raw["members"]:
        held, target = (_active(member[kind], sources) for kind in ("assignment", "target"))
        members.append(_member(member, held, target))
        reported[member["member_id"]] = MemberReport(topics, member["rack"] or None, member["epoch"])
    group = GroupDescription(raw["group"], raw["state"].lower(), "streams", "", False, tuple(members))
    return Described(group, reported, raw["group_epoch"], streams=raw)


def _share(raw: dict[str, Any]) -> Described:
    members, reported = [], {}
    ids: dict[str, str] = {}
    for member in raw["members"]:
        held = _held(member["assignment"], ids)
        members.append(_member({**member, "instance_id": None}, held, held))
        topics = tuple(member["topics"] or ())
        reported[member["member_id"]] = MemberReport(topics, member["rack"] or None, member["epoch"])
    state = raw["state"].lower()
    group = GroupDescription(raw["group"], state, "share", raw["assignor"], False, tuple(members))
    return Described(group, reported, raw["group_epoch"], ids)


NEWER: tuple[tuple[Callable[[Sequence[str]], Any], Callable[[dict[str, Any]], Described]], ...] = (
    (DescribeConsumer, _consumer),
    (DescribeStreams, _streams),
    (DescribeShare, _share),
)
"""The request of each newer kind of group, and the reader of its answer."""


def _active(tasks: dict[str, Any], sources: Mapping[str, Sequence[str]]) -> frozenset[Key]:
    """What the active tasks read."""
    read = partitions_read(tasks["activeTasks"], sources)
    return frozenset((topic, number) for topic, numbers in read for number in numbers)


def _held(answer: dict[str, Any], ids: dict[str, str]) -> frozenset[Key]:
    found = set()
    for part in answer["topic_partitions"] or ():
        ids[part["topic_name"]] = uuid_text(part["topic_id_high"], part["topic_id_low"])
        found |= {(part["topic_name"], number) for number in part["partitions"]}
    return frozenset(found)


def _member(
    raw: dict[str, Any], held: frozenset[Key], target: frozenset[Key] | None = None
) -> MemberDescription:
    return MemberDescription(
        raw["member_id"], raw["instance_id"] or None, raw["client_id"], raw["host"], held, target
    )
