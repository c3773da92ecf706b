"""What is remembered of a group: the latest record of each kind, by the offset at which it stood in the source.

After compaction the records of one group arrive in any relative order, and replays repeat them; so nothing is derived
while folding. Each record key holds its own latest record, and :func:`kagent.groups.view` derives the group from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kagent.contract.admission import Group, Millis, Offset, checked
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
    # Resolved by the coordinator: which topics a member's subscribed expression matches now (KIP-848).
    "ConsumerGroupRegularExpression": "regex",
}
MAX_TOMBSTONES = 500
"""Deletions remembered, so that a replayed older record does not come back; the oldest are forgotten first.

Replays repeat what was lately read: a trigger that is written again, an event that a restarted worker reads again. What
a replay from the log's beginning brings back of a key deleted longer ago, it also deletes again."""

Item = tuple[Record, int, int]
"""A record, its offset in the source, and its time in ms."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The latest record of one key: where it stood, when it was written (ms), its name, and its value (None: deleted).

    ``unreadable``: that record has a version we do not know, and the value is what the key held before.
    """

    offset: int
    time: int
    record: str
    value: Mapping[str, Any] | None
    unreadable: bool = False


Slots = dict[tuple[str, str], Slot]


@dataclass(slots=True)
class KnownRecords:
    """All that is known of one group's membership: slots by kind and, for members and expressions, by their id."""

    group: str
    slots: Slots = field(default_factory=dict)

    @property
    def stale(self) -> bool:
        """Whether some key's newest record could not be read: the rest is what held before it."""
        return any(slot.unreadable for slot in self.slots.values())

    @property
    def live(self) -> bool:
        """Whether any record still stands; a group without one is gone, or only commits."""
        return any(slot.value is not None for slot in self.slots.values())

    def up_to(self, offset: int) -> KnownRecords:
        """Without records that stood after this offset in the source; the same object if there is none."""
        slots = {key: slot for key, slot in self.slots.items() if slot.offset <= offset}
        return self if len(slots) == len(self.slots) else KnownRecords(self.group, slots)

    def to_json(self) -> dict[str, Any]:
        """As it is kept in a table row."""
        slots = [
            [kind, name, s.offset, s.time, s.record, s.value, *([True] if s.unreadable else [])]
            for (kind, name), s in self.slots.items()
        ]
        return {"group": self.group, "slots": slots}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> KnownRecords:
        """The state that :meth:`to_json` wrote, also another release. Raises Refused for what it cannot have written."""
        row = checked(lambda: msgspec.convert(raw, _StateRow))
        return cls(row.group, {(s.kind, s.name): s.slot() for s in row.slots})


class _SlotRow(msgspec.Struct, array_like=True):
    """A slot as a list; what a newer release added at its end is left out."""

    kind: str
    name: str
    offset: Offset
    time: Millis
    record: str
    value: dict[str, Any] | None
    unreadable: bool = False

    def slot(self) -> Slot:
        return Slot(self.offset, self.time, self.record, self.value, self.unreadable)


class _StateRow(msgspec.Struct):
    group: Group
    slots: list[_SlotRow]


def apply(
    state: KnownRecords | None, record: Record, source_offset: int, time_ms: int
) -> KnownRecords | None:
    """The group after this record; the same object if the record says nothing new. Offset commits are not for here.

    Order is kept per record key: what stood earlier in the source never replaces what stood later.
    """
    return apply_all(state, ((record, source_offset, time_ms),))


def apply_all(state: KnownRecords | None, items: Iterable[Item]) -> KnownRecords | None:
    """The group after all of these records, in any order; the same object if they say nothing new."""
    known: Mapping[tuple[str, str], Slot] = state.slots if state else {}
    changed: Slots = {}
    group = state.group if state else ""
    for record, offset, time in items:
        key = _slot_key(record)
        if key is None:
            continue
        before = changed.get(key) or known.get(key)
        # Delivery is at least once: a record may arrive again, and after a replay older ones arrive after newer ones.
        if before is None or before.offset < offset:
            changed[key] = _slot(record, offset, time, before)
            group = record.group
    if not changed:
        return state
    # A new dictionary: the state before may still be held by a row that waits to be written.
    slots = {**known, **changed}
    _forget(slots)
    return KnownRecords(group, slots)


def _slot_key(record: Record) -> tuple[str, str] | None:
    if record.name in GROUP_LEVEL:
        return GROUP_LEVEL[record.name], ""
    if record.name in MEMBER_LEVEL:
        # Resolved regular expressions of KIP-848 are keyed by the expression, all other records of this level by the member.
        return MEMBER_LEVEL[record.name], record.key.get("memberId", record.key.get("regularExpression", ""))
    return None


def _slot(record: Record, offset: int, time: int, before: Slot | None) -> Slot:
    # Keep the value before it: the group is marked stale, and what held a moment ago is still the best guess.
    if record.unreadable:
        return Slot(offset, time, record.name, before.value if before else None, unreadable=True)
    # Without the hex of decoded blobs: a row must stay below the broker's message limit.
    return Slot(offset, time, record.name, record.slim().value)


def _forget(slots: Slots) -> None:
    if len(slots) <= MAX_TOMBSTONES:
        return
    deleted = sorted((s.offset, key) for key, s in slots.items() if s.value is None and not s.unreadable)
    for _, key in deleted[: max(0, len(deleted) - MAX_TOMBSTONES)]:
        del slots[key]
