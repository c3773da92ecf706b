"""What members say to each other inside a record: subscriptions, assignments, and the assignors' user data.

Never flexible. Source: ``ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``, ``StickyAssignor``,
``CooperativeStickyAssignor``. Versions beyond 3 only append, and are read as 3; a client that claims a version it
does not write (Faust: 4 with the body of 0; sarama-cluster: 1) is read by the part that version 0 has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from kagent.offsets.reader import ByteReader, DecodeError
from kagent.offsets.record_layout import Struct, compiled, struct

# ConsumerProtocol.checkSubscriptionVersion reads a later version as its newest: new versions may only append fields.
# https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/internals/ConsumerProtocol.java
NEWEST = 3
TOPIC_PARTITIONS = struct("topic string; partitions []int32")
# ownedPartitions came with KIP-429, generationId with KAFKA-13715, rackId with KIP-881.
SUBSCRIPTION = struct(
    """
    topics          []string
    userData        bytes?
    ownedPartitions []tp    v1+
    generationId    int32   v2+
    rackId          string? v3+
    """,
    tp=TOPIC_PARTITIONS,
)
# All versions of an assignment have the same fields: its number only follows the subscription's.
ASSIGNMENT = struct("assignedPartitions []tp; userData bytes?", tp=TOPIC_PARTITIONS)
# The generation was added after two members had claimed one partition (KAFKA-7026, KIP-341).
STICKY = struct("previous_assignment []tp; generation int32 v1+", tp=TOPIC_PARTITIONS)


def subscription(data: bytes) -> dict[str, Any]:
    """A ConsumerProtocolSubscription; ``parsed_as_v0_prefix`` where only that much of it fits. Raises DecodeError."""
    return _protocol(data, SUBSCRIPTION, "subscription")


def assignment(data: bytes) -> dict[str, Any]:
    """A ConsumerProtocolAssignment. Raises DecodeError."""
    return _protocol(data, ASSIGNMENT, "assignment")


def _protocol(data: bytes, fields: Struct, where: str) -> dict[str, Any]:
    reader = ByteReader(data, where)
    version = reader.int16()
    if version < 0:
        raise DecodeError(f"version {version} is negative", where, 0)
    body = reader.at
    try:
        return {"version": version, **compiled(fields, min(version, NEWEST), False)(reader)}
    except DecodeError:
        # A client that claims a later version than it writes: the part that version 0 has is still there.
        if version == 0:
            raise
    # The coordinator of a classic group itself needs no more than this part, so such a client works.
    prefix = compiled(fields, 0, False)(ByteReader(data, where, body))
    return {"version": version, "parsed_as_v0_prefix": True, **prefix}


def sticky_user_data(data: bytes) -> dict[str, Any]:
    """The StickyAssignor's memory: version 1 has a generation, version 0 has not, and neither says which it is."""
    if not data:
        return {"previous_assignment": [], "generation": None}
    reader = ByteReader(data, "sticky user data")
    try:
        # Version 1 first, as StickyAssignor does: its bytes would pass as version 0 with four bytes left over.
        value = compiled(STICKY, 1, False)(reader)
    except DecodeError:
        reader = ByteReader(data, "sticky user data")
        return {**compiled(STICKY, 0, False)(reader), "generation": None}
    return {**value, "trailing": reader.left}


def cooperative_user_data(data: bytes) -> dict[str, Any]:
    """The CooperativeStickyAssignor's user data: the generation alone."""
    return {"generation": ByteReader(data, "cooperative user data").int32()}


def faust_user_data(data: bytes) -> dict[str, Any]:
    """Faust's client metadata: JSON."""
    try:
        found = orjson.loads(data)
        orjson.dumps(found)  # nested deeper than can be written again
    except orjson.JSONDecodeError as error:
        raise DecodeError(f"not JSON ({error.msg})", "faust user data", error.pos) from None
    except orjson.JSONEncodeError as error:
        raise DecodeError(f"not JSON to be passed on ({error})", "faust user data") from None
    return {"json": found}


KINDS: Mapping[str, Callable[[bytes], dict[str, Any]]] = {
    "consumer_protocol_subscription": subscription,
    "consumer_protocol_assignment": assignment,
    "sticky_user_data": sticky_user_data,
    "cooperative_sticky_user_data": cooperative_user_data,
    "faust_user_data": faust_user_data,
}
"""The blobs by the names under which ``kagent decode --kind`` reads them."""


MEMBER_BLOBS = {"subscription": subscription, "assignment": assignment}
PROTOCOL_BLOBS = {"metadata": subscription}
DECODED = "_decoded"
Blobs = Mapping[str, Callable[[bytes], dict[str, Any]]]


def holders(value: Mapping[str, Any], name: str) -> tuple[list[dict[str, Any]], Blobs]:
    """The parts of a record of this name that hold blobs of the clients, and what the blobs are."""
    # Other protocol types (Connect's "connect", Schema Registry's "sr") fill these fields with formats of their own.
    if name == "GroupMetadata" and value["protocolType"] == "consumer":
        return value["members"], MEMBER_BLOBS
    # A classic member in a KIP-848 group keeps the subscriptions it joined with, one per assignor that it offers.
    if name == "ConsumerGroupMemberMetadata" and value.get("classicMemberMetadata"):
        return value["classicMemberMetadata"]["supportedProtocols"], PROTOCOL_BLOBS
    return [], {}


def decoded(value: dict[str, Any], name: str) -> dict[str, Any]:
    """``value`` with the members' blobs of a record of this name decoded beside their hex.

    A blob that no rule reads stays hex alone: the coordinator keeps it too, and the rest of the record is sound.
    """
    parts, blobs = holders(value, name)
    for part in parts:
        for blob, read in blobs.items():
            if part[blob]:
                with suppress(DecodeError):
                    part[f"{blob}{DECODED}"] = read(bytes.fromhex(part[blob]))
    return value


def slim(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """``value`` without the hex of the blobs that are decoded beside it."""
    parts, blobs = holders(value, name)
    if not parts:
        return value
    slimmed = [
        {key: item for key, item in part.items() if key not in blobs or f"{key}{DECODED}" not in part}
        for part in parts
    ]
    if name == "GroupMetadata":
        return {**value, "members": slimmed}
    return {
        **value,
        "classicMemberMetadata": {**value["classicMemberMetadata"], "supportedProtocols": slimmed},
    }
