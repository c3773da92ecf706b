"""Questions to the coordinators of groups, over aiokafka's connections: groups of every kind, members, committed offsets.

Each question opens its own connections and asks every coordinator for all of its groups at once. ``asked`` runs one; it
blocks and must not be called in an event loop. The functions that it takes are coroutines of an admin client.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupIdNotFound,
    GroupLoadInProgressError,
    IncompatibleBrokerVersion,
    InvalidGroupIdError,
    NotCoordinatorForGroupError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
    for_code,
)
from aiokafka.protocol.group import HeartbeatRequest

from kagent.groups.streams_tasks import partitions_read, sources_of
from kagent.kafka.aiokafka_internals import send
from kagent.kafka.clients import aiokafka
from kagent.kafka.descriptions import (
    Described,
    GroupAnswers,
    GroupDescription,
    Key,
    MemberDescription,
    MemberReport,
)
from kagent.kafka.group_requests import (
    DescribeClassic,
    DescribeConsumer,
    DescribeShare,
    DescribeStreams,
    FetchOffsets,
    FindCoordinators,
)
from kagent.offsets import DecodeError
from kagent.offsets.blobs import assignment, subscription
from kagent.settings import Cluster

CHUNK = 500
"""Groups a request."""
UNSEEN = (GroupAuthorizationFailedError, GroupIdNotFound, InvalidGroupIdError, TopicAuthorizationFailedError)
MOVING = (GroupCoordinatorNotAvailableError, GroupLoadInProgressError, NotCoordinatorForGroupError)
UNKNOWN_REQUEST = (IncompatibleBrokerVersion, NotImplementedError, UnsupportedVersionError)
"""The last is what a broker answers that knows the request and has its protocol switched off."""
T = TypeVar("T")


class Moving(Exception):
    """A coordinator is moving or loading: the same question has an answer in a moment."""


def asked(cluster: Cluster, deadline: float, question: Callable[..., Awaitable[T]], *reported: Any) -> T:
    """The answer to ``question(admin, *reported)``. Raises Moving, aiokafka's KafkaError or TimeoutError (after ``deadline`` s)."""

    async def whole() -> T:
        admin = AIOKafkaAdminClient(**aiokafka(cluster, request_timeout_ms=int(deadline * 1000)))
        try:
            await admin.start()
            return await question(admin, *reported)
        except MOVING as error:
            raise Moving(str(error)) from error
        finally:
            await admin.close()

    with _quiet():
        # A loop and a client per question: callers are threads, and aiokafka's connections belong to the loop that opened them.
        return asyncio.run(asyncio.wait_for(whole(), deadline))


async def kinds(admin: AIOKafkaAdminClient) -> dict[str, str]:
    """Every group that may be seen: name → protocol type (``consumer``, ``share``, ``streams``, ``connect``, ``""``…)."""
    # aiokafka asks every broker: each lists only the groups that it coordinates.
    return dict(await admin.list_consumer_groups())


async def may_read(admin: AIOKafkaAdminClient, group: str) -> bool:
    """Whether our user may be a member of this group: what the heartbeat of a member that does not exist is answered."""
    try:
        # A heartbeat needs READ on the group, as joining does; from a member that does not exist it changes nothing.
        answer = await admin._send_request(
            HeartbeatRequest(group, -1, ""), await admin.find_coordinator(group)
        )
    except GroupAuthorizationFailedError:
        return False
    error = for_code(answer.error_code) if answer.error_code else None
    if error in MOVING:
        raise error()
    return error is not GroupAuthorizationFailedError


async def described(admin: AIOKafkaAdminClient, groups: Sequence[str]) -> GroupAnswers[Described]:
    """The groups. The state of one that does not exist is ``dead``."""
    found: dict[str, Described] = {}
    failed: dict[str, str] = {}
    for node, names in await _chunks(admin, groups, failed):
        answer = await send(admin, DescribeClassic(names), node)
        found |= _each(answer, _classic, failed)
        # DescribeGroups answers ``Dead`` both for a missing group and for one of a newer protocol.
        for question, read in NEWER:
            dead = [name for name in names if name in found and found[name].group.state == "dead"]
            if dead:
                found |= await _of_protocol(admin, node, question(dead), read, failed)
    return GroupAnswers({name: group for name, group in found.items() if name not in failed}, failed)


async def _of_protocol(
    admin: AIOKafkaAdminClient,
    node: int,
    question: Any,
    read: Callable[[dict[str, Any]], Described],
    failed: dict[str, str],
) -> dict[str, Described]:
    """Those of the groups asked for that are of the question's protocol; none on brokers that do not know it."""
    try:
        return _each(await send(admin, question, node), read, failed)
    except UNKNOWN_REQUEST:
        return {}


async def committed(
    admin: AIOKafkaAdminClient, groups: Sequence[str], require_stable: bool
) -> GroupAnswers[dict[Key, int]]:
    """All committed offsets of these groups. ``require_stable``: none where a transaction's commit is pending."""
    found: dict[str, dict[Key, int]] = {name: {} for name in groups}
    failed: dict[str, str] = {}
    for node, names in await _chunks(admin, groups, failed):
        try:
            answer = await send(admin, FetchOffsets(names, require_stable), node)
        except UNKNOWN_REQUEST:
            # Before Kafka 3.0, which has KIP-709: one group per request, and pending transactions stay unknown.
            for name in names:
                found[name] = await _committed(admin, name, node)
        else:
            found |= _each(answer, _offsets, failed)
    return GroupAnswers({name: offsets for name, offsets in found.items() if name not in failed}, failed)


async def _committed(admin: AIOKafkaAdminClient, group: str, node: int) -> dict[Key, int]:
    try:
        answer = await admin.list_consumer_group_offsets(group, node)
    except UNSEEN:
        return {}
    return {
        (tp.topic, tp.partition): reported.offset for tp, reported in answer.items() if reported.offset >= 0
    }


async def _chunks(
    admin: AIOKafkaAdminClient, groups: Sequence[str], failed: dict[str, str]
) -> list[tuple[int, list[str]]]:
    """The groups by coordinator, in chunks; those that have none are ``failed``."""
    by_node: dict[int, list[str]] = defaultdict(list)
    for at in range(0, len(groups), CHUNK):
        names = groups[at : at + CHUNK]
        try:
            # One request for many groups (KIP-699): asked one by one, 10,000 groups would take 10,000 round trips.
            answer = await send(admin, FindCoordinators(names))
        except UNKNOWN_REQUEST:  # before Kafka 3.0
            nodes = {name: await admin.find_coordinator(name) for name in names}
        else:
            nodes = _each(answer, lambda raw: raw["node_id"], failed, "coordinators")
        for name, node in nodes.items():
            by_node[node].append(name)
    return [
        (node, names[at : at + CHUNK])
        for node, names in by_node.items()
        for at in range(0, len(names), CHUNK)
    ]


def _each(
    answer: Any, read: Callable[[dict[str, Any]], T], failed: dict[str, str], part: str = "groups"
) -> dict[str, T]:
    """The coordinators' answer for each group, without those that may not be seen; why there is none, for those that ``failed``."""
    found: dict[str, T] = {}
    for raw in answer.to_object()[part]:
        error = for_code(raw["error_code"]) if raw["error_code"] else None
        if error is None:
            found[raw["group"]] = read(raw)
        # One partition of __consumer_offsets without a coordinator, or one group that it stumbles over, costs no other group.
        elif error not in UNSEEN:
            failed[raw["group"]] = error.message or str(error())
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences what the client logs: the error that follows has the same information."""
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _offsets(raw: dict[str, Any]) -> dict[Key, int]:
    return {
        (topic["topic"], part["partition"]): part["offset"]
        for topic in raw["topics"] or ()
        for part in topic["partitions"] or ()
        # Offset -1 is a partition without a commit.
        if not part["error_code"] and part["offset"] >= 0
    }


def _classic(raw: dict[str, Any]) -> Described:
    members, reported = [], {}
    for member in raw["members"]:
        members.append(_member(member, _assigned(member["assignment"])))
        reported[member["member_id"]] = _subscribed(member["metadata"])
    simple = not raw["protocol_type"]
    group = GroupDescription(
        raw["group"], raw["state"].lower(), "classic", raw["protocol"] or "", simple, tuple(members)
    )
    return Described(group, reported)


def _assigned(blob: bytes | None) -> frozenset[Key]:
    try:
        parts = assignment(blob)["assignedPartitions"] if blob else ()
    except DecodeError:
        return frozenset()  # the assignor's own format: nothing is known of what it holds
    # As in the records: a client may write any number into its assignment.
    return frozenset(
        (part["topic"], number) for part in parts for number in part["partitions"] if number >= 0
    )


def _subscribed(blob: bytes | None) -> MemberReport:
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
        ids[part["topic_name"]] = _id(part["topic_id_high"], part["topic_id_low"])
        found |= {(part["topic_name"], number) for number in part["partitions"]}
    return frozenset(found)


def _id(high: int, low: int) -> str:
    # The protocol carries a UUID as one value of 16 bytes; Kafka prints it as base64 without padding.
    raw = (high % 2**64).to_bytes(8, "big") + (low % 2**64).to_bytes(8, "big")
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _member(
    raw: dict[str, Any], held: frozenset[Key], target: frozenset[Key] | None = None
) -> MemberDescription:
    return MemberDescription(
        raw["member_id"], raw["instance_id"] or None, raw["client_id"], raw["host"], held, target
    )
