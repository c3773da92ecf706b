"""Questions that confluent-kafka cannot put: groups of every kind, what members subscribe to, names with a NUL in them.

They go through aiokafka's connections (``kagent.kafka.requests``). All functions block and must not be called in an
event loop.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.errors import KafkaError as ClientError

from kagent.errors import KafkaError
from kagent.kafka.admin import Admin, Group, Key, Member
from kagent.kafka.clients import aiokafka
from kagent.kafka.requests import DescribeClassic, DescribeConsumer
from kagent.offsets import DecodeError
from kagent.offsets.blobs import assignment, subscription
from kagent.settings import Cluster

DEADLINE = 30.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Said:
    """What a member said of itself. ``topics`` is None where it cannot be known (a regular expression, a foreign blob).

    ``generation``: of a classic member, the one it was in when it joined last; of a KIP-848 member, its epoch.
    """

    topics: tuple[str, ...] | None
    rack: str | None = None
    generation: int | None = None
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """A group with what its members said, by member id, and its epoch (KIP-848) or None."""

    group: Group
    said: dict[str, Said] = field(default_factory=dict)
    epoch: int | None = None
    topic_ids: dict[str, str] = field(default_factory=dict)


def listed(cluster: Cluster) -> dict[str, str]:
    """Every group that may be seen: name → protocol type (``consumer``, ``share``, ``streams``, ``connect``, ``""``…)."""

    async def question(admin: AIOKafkaAdminClient) -> dict[str, str]:
        return dict(await admin.list_consumer_groups())

    return _asked(cluster, "asked for its groups", question)


def described(cluster: Cluster, group: str) -> Described | None:
    """The group with its members' subscriptions; None if there is none, or it may not be described."""

    async def question(admin: AIOKafkaAdminClient) -> Described | None:
        node = await admin.find_coordinator(group)
        answer = await admin._send_request(DescribeClassic(group), node)
        found = _classic(answer.to_object()["groups"][0])
        if found is not None:
            return found
        try:
            answer = await admin._send_request(DescribeConsumer(group), node)
        except (IncompatibleBrokerVersion, NotImplementedError):
            return None
        return _consumer(answer.to_object()["groups"][0])

    return _asked(cluster, "asked to describe a group", question)


def committed(cluster: Cluster, group: str) -> dict[Key, int]:
    """All committed offsets of a group, whatever its name."""

    async def question(admin: AIOKafkaAdminClient) -> dict[Key, int]:
        found = await admin.list_consumer_group_offsets(group)
        return {(tp.topic, tp.partition): said.offset for tp, said in found.items() if said.offset >= 0}

    return _asked(cluster, "asked for committed offsets", question)


@contextmanager
def _quiet() -> Iterator[None]:
    """What the client logs is said by the error that follows."""
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _asked(cluster: Cluster, doing: str, question: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
    async def whole() -> T:
        admin = AIOKafkaAdminClient(**aiokafka(cluster, request_timeout_ms=int(DEADLINE * 1000)))
        try:
            await admin.start()
            return await question(admin)
        finally:
            await admin.close()

    try:
        with _quiet():
            return asyncio.run(asyncio.wait_for(whole(), DEADLINE))
    except (ClientError, TimeoutError) as error:
        Admin(
            cluster, deadline=10
        ).cluster_id()  # tells a refused login from a broker that is away, in a sentence
        raise KafkaError(
            f"The cluster at {cluster.bootstrap} answered with an error when {doing}: {error}."
        ) from error


def _classic(answer: dict[str, Any]) -> Described | None:
    if answer["error_code"] or answer["state"] == "Dead":
        return None
    members, said = [], {}
    for raw in answer["members"]:
        members.append(_member(raw, _assigned(raw["assignment"])))
        said[raw["member_id"]] = _subscribed(raw["metadata"])
    state = answer["state"].lower()
    group = Group(
        answer["group"], state, "classic", answer["protocol"], not answer["protocol_type"], tuple(members)
    )
    return Described(group, said)


def _assigned(blob: bytes | None) -> frozenset[Key]:
    try:
        parts = assignment(blob)["assignedPartitions"] if blob else ()
    except DecodeError:
        return frozenset()  # the assignor's own format: nothing is known of what it holds
    return frozenset((part["topic"], number) for part in parts for number in part["partitions"])


def _subscribed(blob: bytes | None) -> Said:
    try:
        said = subscription(blob) if blob else {}
    except DecodeError:
        said = {}
    topics = said.get("topics")
    return Said(
        None if topics is None else tuple(topics), said.get("rackId") or None, said.get("generationId")
    )


def _consumer(answer: dict[str, Any]) -> Described | None:
    if answer["error_code"] or answer["state"] == "Dead":
        return None
    members, said = [], {}
    ids: dict[str, str] = {}
    for raw in answer["members"]:
        held, target = _held(raw["assignment"], ids), _held(raw["target"], ids)
        members.append(_member(raw, held, target))
        known = None if raw["regex"] else tuple(raw["topics"] or ())
        said[raw["member_id"]] = Said(known, raw["rack"] or None, raw["epoch"], raw["regex"] or None)
    state = answer["state"].lower()
    group = Group(answer["group"], state, "consumer", answer["assignor"], False, tuple(members))
    return Described(group, said, answer["group_epoch"], ids)


def _held(answer: dict[str, Any], ids: dict[str, str]) -> frozenset[Key]:
    found = set()
    for part in answer["topic_partitions"] or ():
        ids[part["topic_name"]] = _id(part["topic_id_high"], part["topic_id_low"])
        found |= {(part["topic_name"], number) for number in part["partitions"]}
    return frozenset(found)


def _id(high: int, low: int) -> str:
    raw = (high % 2**64).to_bytes(8, "big") + (low % 2**64).to_bytes(8, "big")
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _member(raw: dict[str, Any], held: frozenset[Key], target: frozenset[Key] | None = None) -> Member:
    return Member(raw["member_id"], raw["instance_id"] or None, raw["client_id"], raw["host"], held, target)
