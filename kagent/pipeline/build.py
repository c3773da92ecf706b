"""Collapsed records to messages: one event a group, and a dead letter for what cannot be read. Pure.

Input rows: ``key``, ``value`` (binary), ``partition``, ``offset`` (int64), ``time`` (int64 ms).
Output rows: ``topic``, ``key``, ``value``, and how many records of the source it tells of (0 for the further parts of an
event).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from kagent.contract.events import GroupEvent, MembershipRecord, TopicOffsets, TopicTombstones, split
from kagent.group_key import group_key
from kagent.groups import topic_id
from kagent.offsets import DecodeError, UnknownValueVersion, decode
from kagent.offsets.columns import CommitColumns, decode_commits, record_types
from kagent.own_groups import is_own

Message = tuple[str, bytes, bytes, int]
Longs = np.ndarray[Any, np.dtype[np.int64]]
# A dead letter shows what kind of record it was; all of it is at the place that `from` names until it is compacted away.
FIRST_BYTES = 256


@dataclass(frozen=True, slots=True)
class Target:
    """Where messages go. ``own``: the app id, whose groups' commits must not feed back into their own input."""

    cluster: str
    events: str
    dead_letters: str
    own: str

    def is_own(self, group: str) -> bool:
        return is_own(self.own, group)


@dataclass(slots=True)
class _GroupRecords:
    source: int
    offsets: list[TopicOffsets] = field(default_factory=list)
    tombstones: list[TopicTombstones] = field(default_factory=list)
    records: list[MembershipRecord] = field(default_factory=list)

    def __len__(self) -> int:
        live, dead = (sum(len(e.partition) for e in entries) for entries in (self.offsets, self.tombstones))
        return live + dead + len(self.records)


def messages(table: pa.Table, target: Target, now_ms: int) -> Iterator[Message]:
    """The messages for these rows, dead letters first."""
    table = table.combine_chunks()
    keys, values = _column(table, "key"), _column(table, "value")
    partition, offset, time = (
        _column(table, name).to_numpy(zero_copy_only=False) for name in ("partition", "offset", "time")
    )
    # Types 0 and 1 are offset commits, with one layout: the key's first two bytes tell (CoordinatorRecordSerde).
    kinds = record_types(keys)
    commits = np.flatnonzero((kinds == 0) | (kinds == 1))
    others = np.flatnonzero((kinds != 0) & (kinds != 1))
    groups: dict[str, _GroupRecords] = {}
    columns = decode_commits(keys.take(pa.array(commits)), values.take(pa.array(commits)))
    for row, error in columns.errors.items():
        at = int(commits[row])
        yield _dead(
            target, error, keys[at].as_py(), values[at].as_py(), int(partition[at]), int(offset[at]), now_ms
        )
    # Commits are nearly all records, so they are decoded as columns; the rest goes one by one.
    _add_commits(groups, columns, partition[commits], offset[commits])
    for at in others.tolist():
        key, value = keys[at].as_py(), values[at].as_py()
        try:
            record = decode(key, value)
        except DecodeError as error:
            # A bad record costs itself: the rest of its group's records stay valid, so the batch must go on.
            yield _dead(target, error, key, value, int(partition[at]), int(offset[at]), now_ms)
            if not isinstance(error, UnknownValueVersion):
                continue
            record = error.record  # its group must be marked: what is known of it may no longer hold
        group = groups.setdefault(record.group, _GroupRecords(int(partition[at])))
        group.records.append(MembershipRecord(int(offset[at]), int(time[at]), record.slim().to_json()))
    for name, group in groups.items():
        # The worker's and Spark's own commits would make an event each trigger, for ever.
        if not target.is_own(name):
            yield from _events(name, group, target, now_ms)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _events(name: str, group: _GroupRecords, target: Target, now_ms: int) -> Iterator[Message]:
    event = GroupEvent(
        cluster=target.cluster,
        group=name,
        source=group.source,
        time=now_ms,
        offsets=group.offsets,
        tombstones=group.tombstones,
        # Records of one group come from one source partition, so their offsets are their order.
        records=sorted(group.records, key=lambda record: record.source_offset),
    )
    key = group_key(target.cluster, name).encode()
    events = len(group)
    for part in split(event):
        # The count goes with the first part alone, so that the sum over rows is the number of source records.
        yield target.events, key, part, events
        events = 0


def _add_commits(
    groups: dict[str, _GroupRecords], columns: CommitColumns, source: np.ndarray, offset: np.ndarray
) -> None:
    """The commits as one entry per group and topic, sorted by partition within."""
    good = np.flatnonzero(~columns.bad)
    if not len(good):
        return
    group, topic = columns.group.dictionary_encode(), columns.topic.dictionary_encode()
    group_code = group.indices.to_numpy(zero_copy_only=False)
    topic_code = topic.indices.to_numpy(zero_copy_only=False)
    # Sorted so that one slice is one entry of an event: group, topic, live or removed, partition.
    order = good[
        np.lexsort((columns.partition[good], columns.tombstone[good], topic_code[good], group_code[good]))
    ]
    pair = np.stack([group_code[order], topic_code[order], columns.tombstone[order]])
    starts = np.flatnonzero(np.any(pair[:, 1:] != pair[:, :-1], axis=0)) + 1
    group_names, topic_names = group.dictionary.to_pylist(), topic.dictionary.to_pylist()
    for rows in np.split(order, starts):
        first = int(rows[0])
        name, about = group_names[group_code[first]], topic_names[topic_code[first]]
        entry = groups.setdefault(name, _GroupRecords(int(source[first])))
        if columns.tombstone[first]:
            entry.tombstones.append(TopicTombstones(about, columns.partition[rows], offset[rows]))
        else:
            entry.offsets.extend(_topic(about, rows, columns, offset))


def _topic(
    topic: str, rows: np.ndarray, columns: CommitColumns, offset: np.ndarray
) -> Iterator[TopicOffsets]:
    """One entry per topic id: where a topic was re-created, the commits on the old one stand apart."""
    ids: dict[bytes | None, list[int]] = defaultdict(list)
    known = columns.topic_id.take(pa.array(rows)).to_pylist()
    for row, found in zip(rows.tolist(), known, strict=True):
        ids[found].append(row)
    for found, members in ids.items():
        at: Longs = np.array(members)
        yield TopicOffsets(
            topic=topic,
            topic_id=topic_id(found.hex()) if found else None,
            partition=columns.partition[at],
            committed=columns.offset[at],
            time=columns.commit_time[at],
            source_offset=offset[at],
        )


def _dead(
    target: Target,
    error: DecodeError,
    key: bytes | None,
    value: bytes | None,
    partition: int,
    offset: int,
    now_ms: int,
) -> Message:
    letter = {
        "cluster": target.cluster,
        "from": f"__consumer_offsets-{partition}@{offset}",
        "why": str(error),
        "kind": type(error).__name__,
        "time": now_ms,
        "key_hex": None if key is None else key[:FIRST_BYTES].hex(),
        "value_hex": None if value is None else value[:FIRST_BYTES].hex(),
    }
    return target.dead_letters, target.cluster.encode(), orjson.dumps(letter), 1
