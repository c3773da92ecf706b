"""Names in a capture replaced by pseudonyms, also inside the binary keys and values, so that it can be given away.

The same name has the same pseudonym throughout a capture: HMAC-SHA256 under a salt that is not kept. Replaced are names of
groups, topics, members, clients, hosts, racks and expressions; emptied are commit metadata and key-value pairs; filled with
zeros are blobs that only the clients can read. Kept are offsets, times, ids of topics, names of protocols and assignors, and
the beginnings of names by which kagent knows a client library. Pseudonyms sort differently from names, so what an assignor
would do with them can differ.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kagent.offsets.blobs import ASSIGNMENT, DECODED, NEWEST, SUBSCRIPTION, holders, sticky_user_data
from kagent.offsets.blobs import STICKY as STICKY_DATA
from kagent.offsets.reader import DecodeError
from kagent.offsets.record import Record, decode
from kagent.offsets.record_layout import Array, Struct, Type
from kagent.offsets.schemas import RECORDS
from kagent.offsets.writer import encode, encode_key, encode_value, layout_of

# 40 bits: at 10,000 names, two share a pseudonym with a probability of 5 in 100,000.
DIGITS = 10
KINDS = {
    "group": "group",
    "groupId": "group",
    "topic": "topic",
    "topics": "topic",
    "topicName": "topic",
    "name": "topic",
    "subscribedTopicNames": "topic",
    "sourceTopics": "topic",
    "repartitionSinkTopics": "topic",
    "memberId": "member",
    "leader": "member",
    "instanceId": "instance",
    "groupInstanceId": "instance",
    "clientId": "client",
    "clientHost": "host",
    "host": "host",
    "rackId": "rack",
    "racks": "rack",
    "subscribedTopicRegex": "regex",
    "regularExpression": "regex",
    "sourceTopicRegex": "regex",
}
"""Field of a record → kind of name; any other text becomes ``text-…``."""
KEPT = {"protocolType", "protocol", "serverAssignor"}
EMPTIED = {"metadata", "key", "value"}
# By these kagent knows Connect's sinks and the client libraries; without them a capture would be judged as another kind of group.
BEGINNINGS = {
    "group": ("connect-",),
    "client": ("connector-consumer-", "aiokafka", "kafka-python", "rdkafka"),
}
STICKY = {"sticky", "cooperative-sticky"}
GENERATION_BYTES = 4


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """One capture's pseudonyms. ``salt``: without it, a guessed name cannot be checked against a pseudonym."""

    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def name(self, kind: str, name: str) -> str:
        """The pseudonym of a name; an empty one stays empty, as clients mean something by it."""
        if not name:
            return name
        beginning = next((b for b in BEGINNINGS.get(kind, ()) if name.startswith(b)), "")
        # Brokers write a member's host with a slash before it (InetAddress.toString).
        slash = "/" if kind == "host" and name.startswith("/") else ""
        # The kind is hashed too: a topic and a group of one name get different pseudonyms.
        digest = hmac.new(
            self.salt, f"{kind} {name.removeprefix(slash)}".encode(), hashlib.sha256
        ).hexdigest()
        return f"{slash}{beginning}{kind}-{digest[:DIGITS]}"

    def record(self, key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
        """Key and value with pseudonyms. Raises ValueError for what cannot be decoded: names may stand anywhere in it."""
        record = decode(key, value)
        hidden_key = encode_key(record.type, self._struct(RECORDS[record.type].key, record.key))
        if record.value is None:
            return hidden_key, None
        hidden = self._struct(layout_of(record), record.value)
        self._fill_blobs(record, hidden)
        return hidden_key, encode_value(record, hidden)

    def _struct(self, fields: Struct, value: Mapping[str, Any]) -> dict[str, Any]:
        return {f.name: self._field(f.name, f.type, value[f.name], fields) for f in fields if f.name in value}

    def _field(self, name: str, kind: Type, value: Any, within: Struct) -> Any:
        if value is None:
            return None
        if isinstance(kind, Array):
            return [self._field(name, kind.of, item, within) for item in value]
        if isinstance(kind, tuple):
            return self._struct(kind, value)
        if kind == "bytes":
            return _zeros(value)
        if kind != "string" or name in KEPT or _is_assignor(name, within):
            return value
        return "" if name in EMPTIED else self.name(KINDS.get(name, "text"), value)

    def _fill_blobs(self, record: Record, hidden: dict[str, Any]) -> None:
        """Write the blobs that kagent reads, with pseudonyms, in the place of the zeros."""
        assert record.value is not None
        parts, blobs = holders(record.value, record.name)
        for part, hidden_part in zip(parts, holders(hidden, record.name)[0], strict=True):
            protocol = part.get("name") or record.value.get("protocol")
            for blob in blobs:
                if f"{blob}{DECODED}" in part:
                    layout = ASSIGNMENT if blob == "assignment" else SUBSCRIPTION
                    hidden_part[blob] = self._blob(layout, part[f"{blob}{DECODED}"], protocol).hex()

    def _blob(self, layout: Struct, value: Mapping[str, Any], protocol: str | None) -> bytes:
        version = value["version"]
        hidden = self._struct(layout, value)
        hidden["userData"] = self._user_data(value["userData"], protocol)
        # As Java's ConsumerProtocol does it: a version above the newest is read by the newest layout.
        body_version = 0 if value.get("parsed_as_v0_prefix") else min(version, NEWEST)
        return struct.pack(">h", version) + encode(layout, body_version, False, hidden)

    def _user_data(self, data: str | None, protocol: str | None) -> str | None:
        """What an assignor remembers: sticky ones name topics, cooperative ones hold a generation, others are unknown."""
        if not data or protocol not in STICKY:
            return _zeros(data)
        # Four bytes: the generation that CooperativeStickyAssignor keeps (COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0); no names.
        # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/CooperativeStickyAssignor.java
        if len(data) == 2 * GENERATION_BYTES:
            return data
        try:
            value = sticky_user_data(bytes.fromhex(data))
        except DecodeError:
            return _zeros(data)
        version = 0 if value["generation"] is None else 1
        return encode(STICKY_DATA, version, False, self._struct(STICKY_DATA, value)).hex()


def _is_assignor(name: str, within: Struct) -> bool:
    """Whether this is the name of a protocol beside its metadata, not of a topic."""
    return name == "name" and "metadata" in {field.name for field in within}


def _zeros(data: str | None) -> str | None:
    """As long as it was: kagent tells client libraries apart by lengths."""
    return None if data is None else "0" * len(data)
