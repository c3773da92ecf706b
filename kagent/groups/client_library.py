"""What a classic member's blobs tell of its client: the library, and which assignor's user data it sent.

Seen on brokers (subscription version · user data · rack):

    Java                      1–3 · null (sticky: the assignor's, cooperative: 4 bytes) · null if unset
    librdkafka                1–3 · empty (sticky: the assignor's) · empty if unset
    aiokafka, kafka-python    0   · empty (sticky: the assignor's)
    Faust                     the protocol is named ``faust``
    kagent.follow             the protocol is named ``kagent-follow…``; aiokafka and kafka-python only

A guess decides only which advice is worded how.
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
GENERATION = 8
"""Hex digits of the cooperative assignor's user data: one int32."""


def library_of(protocol: str | None, subscription: Blob) -> str | None:
    """``java``, ``librdkafka``, ``python``, ``faust``, or None where it cannot be recognised."""
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
    if (
        data is None
        or len(data) == GENERATION
        or (subscription["version"] == 3 and not subscription.get("rackId"))
    ):
        return "java"
    return None


def user_data_of(protocol: str | None, subscription: Blob) -> str | None:
    """``sticky-v0``, ``sticky-v1`` or ``cooperative``; None without user data or for another assignor."""
    data = bytes.fromhex(subscription.get("userData") or "")
    if not data or protocol not in ("sticky", "cooperative-sticky"):
        return None
    try:
        if protocol == "cooperative-sticky" and len(data) == GENERATION // 2:
            cooperative_user_data(data)
            return "cooperative"
        return "sticky-v0" if sticky_user_data(data)["generation"] is None else "sticky-v1"
    except DecodeError:
        return None
