"""Which client library a member of a classic group runs, as far as its blobs tell.

Seen on brokers: Java writes subscription version 1–3 with null user data for range and round robin; librdkafka version 1–3
with empty user data (and an empty rack in 3) and assignments of version 0; aiokafka and kafka-python version 0 with empty
user data; Faust the protocol ``faust``. A guess decides only which advice is worded how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def library_of(
    protocol: str | None, subscription: Mapping[str, Any], assignment: Mapping[str, Any]
) -> str | None:
    """``java``, ``librdkafka``, ``python``, ``faust``, or None where it cannot be told."""
    if protocol == "faust":
        return "faust"
    if not subscription:
        return None
    version, data = subscription["version"], subscription["userData"]
    if version == 0:
        return "python" if data == "" else None
    if subscription.get("rackId") == "" or (data == "" and assignment.get("version") == 0):
        return "librdkafka"
    if assignment.get("version", version) > 0:
        return "java"
    return None
