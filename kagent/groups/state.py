"""What is remembered of a group: the latest record of each kind, by the offset at which it stood in the source.

After compaction the records of one group arrive in any relative order, and replays repeat them; so nothing is derived
while folding. Each record key holds its own latest record, and :func:`kagent.groups.view` derives the group from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kagent.offsets import Record

GROUP_LEVEL = {
    "GroupMetadata": "classic",
    "ConsumerGroupMetadata": "epoch",
    "ConsumerGroupTargetAssignmentMetadata": "target_epoch",
    "ConsumerGroupPartitionMetadata": "topics",
    "ShareGroupPartitionMetadata": "topics",
    "ShareGroupMetadata": "epoch",
    "ShareGroupTargetAssignmentMetadata": "target_epoch",
    "ShareGroupStatePartitionMetadata": "share_topics",
    "StreamsGroupMetadata": "epoch",
    "StreamsGroupTargetAssignmentMetadata": "target_epoch",
    "StreamsGroupTopology": "topology",
}
MEMBER_LEVEL = {
    "ConsumerGroupMemberMetadata": "member",
    "ConsumerGroupTargetAssignmentMember": "target",
    "ConsumerGroupCurrentMemberAssignment": "current",
    "ShareGroupMemberMetadata": "member",
    "ShareGroupTargetAssignmentMember": "target",
    "ShareGroupCurrentMemberAssignment": "current",
    "StreamsGroupMemberMetadata": "member",
    "StreamsGroupTargetAssignmentMember": "target",
    "StreamsGroupCurrentMemberAssignment": "current",
    "ConsumerGroupRegularExpression": "regex",
}
MAX_TOMBSTONES = 1000
"""Deletions remembered, so that a replayed older record does not come back; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The latest record of one key: where it stood, when it was written (ms), its name, and its value (None: deleted)."""

    offset: int
    time: int
    record: str
    value: Mapping[str, Any] | None


@dataclass(slots=True)
class GroupState:
    """All that is known of one group's membership: slots by kind and, for members and expressions, by their id."""

    group: str
    slots: dict[tuple[str, str], Slot] = field(default_factory=dict)
    stale: bool = False
    """A record of a value version we do not know was seen: the rest is what held before it."""

    def to_json(self) -> dict[str, Any]:
        """As it is kept in a table row."""
        slots = [[kind, name, s.offset, s.time, s.record, s.value] for (kind, name), s in self.slots.items()]
        return {"group": self.group, "slots": slots, "stale": self.stale}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> GroupState:
        """The state that :meth:`to_json` wrote."""
        slots = {
            (kind, name): Slot(offset, time, record, value)
            for kind, name, offset, time, record, value in raw["slots"]
        }
        return cls(raw["group"], slots, raw["stale"])

    @property
    def live(self) -> bool:
        """Whether any record still stands; a group without one is gone, or only commits."""
        return any(slot.value is not None for slot in self.slots.values())


def apply(state: GroupState | None, record: Record, source_offset: int, time_ms: int) -> GroupState | None:
    """The group after this record; the same object if the record says nothing new. Offset commits are not for here.

    Order is kept per record key: what stood earlier in the source never replaces what stood later.
    """
    key = _slot_key(record)
    if key is None:
        return state
    known = state.slots.get(key) if state else None
    if known is not None and known.offset >= source_offset:
        return state
    slots = dict(state.slots) if state else {}
    slots[key] = Slot(source_offset, time_ms, record.name, _kept(record))
    _forget(slots)
    return GroupState(record.group, slots, state.stale if state else False)


def _slot_key(record: Record) -> tuple[str, str] | None:
    if record.name in GROUP_LEVEL:
        return GROUP_LEVEL[record.name], ""
    if record.name in MEMBER_LEVEL:
        return MEMBER_LEVEL[record.name], record.key.get("memberId") or record.key.get(
            "regularExpression"
        ) or ""
    return None


def _kept(record: Record) -> Mapping[str, Any] | None:
    """The value without the hex of blobs that are decoded beside it."""
    if record.value is None or record.name not in ("GroupMetadata", "ConsumerGroupMemberMetadata"):
        return record.value
    value = dict(record.value)
    if "members" in value:
        value["members"] = [_slim(member, ("subscription", "assignment")) for member in value["members"]]
    classic = value.get("classicMemberMetadata")
    if classic:
        protocols = [_slim(protocol, ("metadata",)) for protocol in classic["supportedProtocols"]]
        value["classicMemberMetadata"] = {**classic, "supportedProtocols": protocols}
    return value


def _slim(part: Mapping[str, Any], blobs: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in blobs or f"{name}_decoded" not in part}


def _forget(slots: dict[tuple[str, str], Slot]) -> None:
    if len(slots) <= MAX_TOMBSTONES:
        return
    deleted = sorted((s.offset, key) for key, s in slots.items() if s.value is None)
    for _, key in deleted[: max(0, len(deleted) - MAX_TOMBSTONES)]:
        del slots[key]
