"""What a classic member's blobs tell of its client: the library, and which assignor's user data it sent.

Seen on brokers (subscription version · assignment version · user data · rack):

    Java                      1–3 · 1–3 · null (sticky: the assignor's, cooperative: 4 bytes) · null if unset
    librdkafka                1–3 · 0   · empty (sticky: the assignor's) · empty if unset
    aiokafka, kafka-python    0   · 0   · empty (sticky: the assignor's)
    franz-go                  3   · 0   · null (sticky: the assignor's) · null
    sarama                    1   · 0   · null
    kafka-go                  1   · 1   · null, and owned partitions that are not written or null
    Java before 2.4           0   · 0   · null
    Faust                     the protocol is named ``faust``
    kagent.follow             the protocol is named ``kagent-follow…``; aiokafka and kafka-python only

The group's leader writes the assignments of all members, so the assignment's version tells of the leader: a group whose members
have several libraries is named after it. A guess decides only which advice is worded how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kagent.offsets import DecodeError
from kagent.offsets.blobs import cooperative_user_data, sticky_user_data

Blob = Mapping[str, Any]
FOLLOWING = "kagent-follow"
JAVA_FOLLOWER = "kagent"
"""kagent's Java assignor, whose user data is its own."""
GENERATION = 4
"""Bytes of the cooperative assignor's user data: one int32."""


def library_of(protocol: str | None, subscription: Blob, assignment: Blob) -> str | None:
    """``java``, ``librdkafka``, ``python``, ``faust``, or None where it cannot be recognised: the Go clients, and a member without an
    assignment that is not librdkafka's or Python's."""
    # Faust names its own assignor, so the protocol alone identifies it:
    # https://github.com/faust-streaming/faust/blob/master/faust/assignor/partition_assignor.py
    if protocol == "faust":
        return "faust"
    # Only kagent.follow's assignors have such a name, and they exist for Python clients alone.
    if protocol is not None and protocol.startswith(FOLLOWING):
        return "python"
    if protocol == JAVA_FOLLOWER:
        return "java"
    if not subscription:
        return None
    data = subscription["userData"]
    # The Python clients write version 0 (aiokafka/coordinator/protocol.py).
    if subscription["version"] == 0:
        return "python" if data == "" or (data and user_data_of(protocol, subscription)) else None
    # librdkafka writes an empty string where Java writes null.
    if subscription.get("rackId") == "" or data == "":
        return "librdkafka"
    return "java" if _led_by_java(subscription, assignment) else None


def _led_by_java(subscription: Blob, assignment: Blob) -> bool:
    # ConsumerProtocol.serializeSubscription and serializeAssignment both write its highest version; librdkafka, franz-go and
    # sarama never raised that of the assignment. kafka-go did, but its subscription does not have what its version says.
    # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/internals/ConsumerProtocol.java
    return bool(assignment.get("version")) and not subscription.get("parsed_as_v0_prefix")


def user_data_of(protocol: str | None, subscription: Blob) -> str | None:
    """``sticky-v0``, ``sticky-v1`` or ``cooperative``; None without user data or for another assignor."""
    data = bytes.fromhex(subscription.get("userData") or "")
    if not data or protocol not in ("sticky", "cooperative-sticky"):
        return None
    try:
        if protocol == "cooperative-sticky" and len(data) == GENERATION:
            cooperative_user_data(data)
            return "cooperative"
        return "sticky-v0" if sticky_user_data(data)["generation"] is None else "sticky-v1"
    except DecodeError:
        return None
