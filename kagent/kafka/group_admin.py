"""Questions to the coordinators of groups, over aiokafka's connections: groups of every kind, members, committed offsets.

Each question opens its own connections and asks every coordinator for all of its groups at once. ``asked`` runs one; it
blocks and must not be called in an event loop. The functions that it takes are coroutines over :class:`Brokers`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupIdNotFound,
    GroupLoadInProgressError,
    IncompatibleBrokerVersion,
    InvalidGroupIdError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NotCoordinatorForGroupError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
    for_code,
)
from aiokafka.protocol.admin import ListGroupsRequest
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import HeartbeatRequest

from kagent.kafka.brokers import Brokers, NoAnswer, Silences, together
from kagent.kafka.descriptions import (
    Described,
    GroupAnswers,
    Key,
)
from kagent.kafka.group_answers import NEWER, classic, offsets
from kagent.kafka.group_requests import (
    DescribeClassic,
    FetchOffsets,
    FindCoordinators,
)
from kagent.kafka.names import run
from kagent.kafka.silent_client import silent_client
from kagent.settings import Cluster

CHUNK = 500
"""Groups a request."""
UNSEEN = (GroupAuthorizationFailedError, GroupIdNotFound, InvalidGroupIdError, TopicAuthorizationFailedError)
MOVING = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    LeaderNotAvailableError,
    NotCoordinatorForGroupError,
)
UNKNOWN_REQUEST = (IncompatibleBrokerVersion, NotImplementedError, UnsupportedVersionError)
"""The last is what a broker answers that knows the request and has its protocol switched off."""
T = TypeVar("T")


class Moving(Exception):
    """A coordinator or leader is moving or loading: the same question has an answer in a moment."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The groups of the brokers that answered, by protocol type; and why the others list none, by broker."""

    kinds: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    """As ``failed``, where asking again at once is of no use."""


def asked(
    cluster: Cluster,
    deadline: float,
    silences: Silences,
    question: Callable[..., Awaitable[T]],
    *reported: Any,
) -> T:
    """The answer to ``question(brokers, *reported)``, within ``deadline`` s. Raises Moving or aiokafka's KafkaError."""

    async def whole() -> T:
        try:
            async with Brokers(cluster, deadline, silences) as brokers:
                return await question(brokers, *reported)
        except MOVING as error:
            raise Moving(str(error)) from error

    with silent_client():
        # A loop and connections per question: callers are threads, and connections belong to the loop that opened them.
        return run(whole())


async def listed(brokers: Brokers) -> Listing:
    """Every group that may be seen. Raises NoAnswer if no broker answers at all."""
    nodes = list(brokers.nodes)
    # Each broker lists only the groups that it coordinates.
    answers = await together(_listed(brokers, node) for node in nodes)
    found: dict[str, str] = {}
    without: dict[str, NoAnswer] = {}
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, NoAnswer):
            without[str(node)] = answer
        elif not isinstance(answer, Exception):
            found |= answer
    if len(without) == len(nodes):
        raise next(iter(without.values()), KafkaConnectionError("the cluster's metadata names no broker"))
    return Listing(found, *_told_apart(without))


async def _listed(brokers: Brokers, node: int) -> dict[str, str]:
    answer = await brokers.ask(ListGroupsRequest(), node)
    if answer.error_code:
        raise for_code(answer.error_code)("Error listing groups")
    return dict(answer.groups)


async def may_read(brokers: Brokers, group: str) -> bool:
    """Whether our user may be a member of this group: what the heartbeat of a member that does not exist is answered."""
    try:
        # A heartbeat needs READ on the group, as joining does; from a member that does not exist it changes nothing.
        answer = await brokers.ask(HeartbeatRequest(group, -1, ""), await _coordinator(brokers, group))
    except GroupAuthorizationFailedError:
        return False
    error = for_code(answer.error_code) if answer.error_code else None
    if error in MOVING:
        raise error()
    return error is not GroupAuthorizationFailedError


async def described(brokers: Brokers, groups: Sequence[str]) -> GroupAnswers[Described]:
    """The groups. The state of one that does not exist is ``dead``."""
    return await _of_each(brokers, groups, _described)


async def _described(
    brokers: Brokers, node: int, names: Sequence[str], failed: dict[str, str]
) -> dict[str, Described]:
    found = _each(await brokers.ask(DescribeClassic(names), node), classic, failed)
    # DescribeGroups answers ``Dead`` both for a missing group and for one of a newer protocol.
    for question, read in NEWER:
        dead = [name for name in names if name in found and found[name].group.state == "dead"]
        if dead:
            found |= await _of_protocol(brokers, node, question(dead), read, failed)
    return found


async def _of_protocol(
    brokers: Brokers,
    node: int,
    question: Any,
    read: Callable[[dict[str, Any]], Described],
    failed: dict[str, str],
) -> dict[str, Described]:
    """Those of the groups asked for that are of the question's protocol; none on brokers that do not know it."""
    try:
        return _each(await brokers.ask(question, node), read, failed)
    except UNKNOWN_REQUEST:
        return {}


async def committed(
    brokers: Brokers, groups: Sequence[str], require_stable: bool
) -> GroupAnswers[dict[Key, int]]:
    """All committed offsets of these groups. ``require_stable``: none where a transaction's commit is pending."""

    async def ask(
        brokers: Brokers, node: int, names: Sequence[str], failed: dict[str, str]
    ) -> dict[str, dict[Key, int]]:
        # A group that may not be seen has no commits.
        none: dict[str, dict[Key, int]] = {name: {} for name in names}
        try:
            answer = await brokers.ask(FetchOffsets(names, require_stable), node)
        except UNKNOWN_REQUEST:
            # Before Kafka 3.0, which has KIP-709: one group per request, and pending transactions stay unknown.
            return none | await _committed_one_by_one(brokers, node, names, failed)
        return none | _each(answer, offsets, failed)

    return await _of_each(brokers, groups, ask)


async def _committed_one_by_one(
    brokers: Brokers, node: int, names: Sequence[str], failed: dict[str, str]
) -> dict[str, dict[Key, int]]:
    found: dict[str, dict[Key, int]] = {}
    for name in names:
        answer = (await brokers.ask(OffsetFetchRequest(name, None), node)).to_object()
        found |= _each_of([{**answer, "group": name}], offsets, failed)
    return found


async def _of_each(
    brokers: Brokers,
    groups: Sequence[str],
    ask: Callable[[Brokers, int, Sequence[str], dict[str, str]], Awaitable[dict[str, T]]],
) -> GroupAnswers[T]:
    """The answers of all coordinators for their groups; one that does not answer costs its own."""
    failed: dict[str, str] = {}
    chunks = await _chunks(brokers, groups, failed)
    # To all coordinators at once: one that is slow delays its own groups only.
    answers = await together((ask(brokers, node, names, failed) for node, names in chunks), *UNKNOWN_REQUEST)
    found: dict[str, T] = {}
    without: dict[str, NoAnswer] = {}
    too_old: dict[str, str] = {}
    for (node, names), answer in zip(chunks, answers, strict=True):
        if isinstance(answer, NoAnswer):
            without |= dict.fromkeys(names, answer)
        elif isinstance(answer, Exception):
            too_old |= dict.fromkeys(names, _too_old(brokers, node))
        else:
            found |= answer
    unreached, silent = _told_apart(without)
    failed |= unreached
    answered = {name: one for name, one in found.items() if name not in failed}
    return GroupAnswers(answered, failed, {**silent, **too_old})


def _too_old(brokers: Brokers, node: int) -> str:
    host, port = brokers.nodes[node].address
    return f"broker {node} at {host}:{port} is too old for this question"


def _told_apart(without: Mapping[str, NoAnswer]) -> tuple[dict[str, str], dict[str, str]]:
    """Those whose broker cannot be reached, as one that ends may be followed by another; and those whose broker is silent."""
    unreached = {name: str(error) for name, error in without.items() if not error.silent}
    return unreached, {name: str(error) for name, error in without.items() if error.silent}


async def _chunks(
    brokers: Brokers, groups: Sequence[str], failed: dict[str, str]
) -> list[tuple[int, list[str]]]:
    """The groups by coordinator, in chunks; those that have none are ``failed``."""
    by_node: dict[int, list[str]] = defaultdict(list)
    for at in range(0, len(groups), CHUNK):
        names = groups[at : at + CHUNK]
        try:
            # One request for many groups (KIP-699): asked one by one, 10,000 groups would take 10,000 round trips.
            answer = await brokers.ask_any(FindCoordinators(names))
        except UNKNOWN_REQUEST:  # before Kafka 3.0
            nodes = await _coordinators_one_by_one(brokers, names, failed)
        else:
            nodes = _each(answer, lambda raw: raw["node_id"], failed, "coordinators")
        for name, node in nodes.items():
            by_node[node].append(name)
    return [
        (node, names[at : at + CHUNK])
        for node, names in by_node.items()
        for at in range(0, len(names), CHUNK)
    ]


async def _coordinators_one_by_one(
    brokers: Brokers, names: Sequence[str], failed: dict[str, str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        answer = (await brokers.ask_any(FindCoordinatorRequest(name, 0))).to_object()
        found |= _each_of([{**answer, "group": name}], lambda raw: int(raw["coordinator_id"]), failed)
    return found


async def _coordinator(brokers: Brokers, group: str) -> int:
    answer = await brokers.ask_any(FindCoordinatorRequest(group, 0))
    if answer.error_code:
        raise for_code(answer.error_code)(f"Unable to get coordinator id for {group}")
    return int(answer.coordinator_id)


def _each(
    answer: Any, read: Callable[[dict[str, Any]], T], failed: dict[str, str], part: str = "groups"
) -> dict[str, T]:
    """The coordinators' answer for each group, without those that may not be seen; why there is none, for those that ``failed``."""
    return _each_of(answer.to_object()[part], read, failed)


def _each_of(
    answers: Iterable[dict[str, Any]], read: Callable[[dict[str, Any]], T], failed: dict[str, str]
) -> dict[str, T]:
    found: dict[str, T] = {}
    for raw in answers:
        error = for_code(raw["error_code"]) if raw["error_code"] else None
        if error is None:
            found[raw["group"]] = read(raw)
        # One partition of __consumer_offsets without a coordinator, or one group that it stumbles over, costs no other group.
        elif error not in UNSEEN:
            failed[raw["group"]] = error.message or str(error())
    return found
