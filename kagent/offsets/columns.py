"""Offset commits, nearly all of the traffic, as whole Arrow columns: no Python loop over records.

    key    int16 type (0, 1) · int16 n, group · int16 n, topic · int32 partition
    value  v0, v2: int64 offset · int16 n, metadata · int64 commit time
           v1:     … · int64 expire time
           v3:     int64 offset · int32 epoch · int16 n, metadata · int64 commit time
           v4:     int64 offset · int32 epoch · uvarint n+1, metadata · int64 commit time · uvarint tags
                   (none, or one: 00 10 and the 16 bytes of the topic id)

Rows that do not fit one of these exactly are left to :func:`kagent.offsets.decode`, one by one: rare, and rarely right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kagent.offsets.reader import DecodeError
from kagent.offsets.record import decode
from kagent.offsets.schema import ZERO_UUID

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
COMMIT_TYPES = (0, 1)
NO_TYPE = -32768
"""What :func:`record_types` says of a key too short to have a type."""


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """n commits, in input order. ``group`` and ``topic``: Arrow strings. Numbers: int64 arrays of shape (n,).

    ``epoch`` and ``expire_time`` are -1 where a version has none; times in ms; ``topic_id``: fixed_size_binary(16), null
    where unknown. ``tombstone``: rows whose value is null (their numbers are -1). ``bad``: rows that are malformed, with
    the reason in ``errors`` by row; their names are empty and their numbers -1.
    """

    group: pa.StringArray
    topic: pa.StringArray
    partition: Ints
    offset: Ints
    epoch: Ints
    commit_time: Ints
    expire_time: Ints
    topic_id: pa.FixedSizeBinaryArray
    metadata: pa.StringArray | None
    tombstone: Mask
    bad: Mask
    errors: dict[int, DecodeError]

    def __len__(self) -> int:
        return len(self.partition)


class _Bytes:
    """A binary Arrow array as one uint8 buffer with starts and ends; numbers are gathered at any byte of it."""

    def __init__(self, array: pa.Array) -> None:
        large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
        width = np.int64 if large else np.int32
        _, offsets, data = array.buffers()
        n = len(array)
        if offsets is None:
            bounds = np.zeros(n + 1, dtype=np.int64)
        else:
            bounds = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + n + 1].astype(np.int64)
        first = int(bounds[0]) if n else 0
        held = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
        used = held[first : int(bounds[-1])] if n else held[:0]
        # Eight bytes of padding, so that a number may be gathered at any byte and masked afterwards.
        self.data = np.concatenate([used, np.zeros(8, dtype=np.uint8)])
        self.start: Ints = bounds[:-1] - first
        self.end: Ints = bounds[1:] - first
        self.null: Mask = np.asarray(array.is_null()) if array.null_count else np.zeros(n, dtype=np.bool_)

    def at(self, where: Ints, kind: str) -> Ints:
        """Big-endian numbers of this kind ('>i8' …) that begin at ``where``; anything for a place out of range."""
        size = int(kind[-1])
        windows = np.ndarray((len(self.data) - size + 1,), dtype=kind, buffer=self.data, strides=(1,))
        found: Ints = windows[np.minimum(where, len(windows) - 1)].astype(np.int64)
        return found

    def slices(self, start: Ints, length: Ints) -> pa.StringArray:
        """The strings data[start : start + length], copied together. Raises ArrowInvalid if one is not UTF-8."""
        ends = np.concatenate([[0], np.cumsum(length)])
        gather = np.repeat(start - ends[:-1], length) + np.arange(ends[-1])
        data = pa.py_buffer(self.data[gather])
        strings = pa.LargeStringArray.from_buffers(len(start), pa.py_buffer(ends.astype(np.int64)), data)
        strings.validate(full=True)
        return strings


def record_types(keys: pa.Array) -> Ints:
    """The record type of each key; NO_TYPE where the key is null or shorter than two bytes. Shape (n,)."""
    held = _Bytes(keys)
    types = held.at(held.start, ">i2")
    types[(held.end - held.start < 2) | held.null] = NO_TYPE
    return types


def decode_commits(keys: pa.Array, values: pa.Array, metadata: bool = False) -> CommitColumns:
    """Decode commits (record types 0 and 1) from binary or large_binary arrays of equal length.

    Never raises for what is in the bytes: see ``bad`` and ``errors``. ``metadata``: also give the metadata strings.
    """
    key, value = _Bytes(keys), _Bytes(values)
    n = len(keys)
    names = _Keys(key)
    body = _Values(value)
    fits = names.fits & (value.null | body.fits)
    fits[fits] = _utf8(key, names, body, value, fits)
    columns = _Columns(n, names, body, value.null, fits, key, value if metadata else None)
    return columns.mended(keys, values, np.flatnonzero(~fits))


class _Keys:
    """Where group, topic and partition stand in each key."""

    def __init__(self, key: _Bytes) -> None:
        size = key.end - key.start
        self.group_length = key.at(key.start + 2, ">i2")
        self.group = key.start + 4
        room = (size >= 12) & (self.group_length >= 0) & (self.group_length <= size - 10)
        topic = np.where(room, self.group + self.group_length, key.start)
        self.topic_length = key.at(topic, ">i2")
        self.topic = topic + 2
        exact = room & (self.topic_length >= 0) & (size == 10 + self.group_length + self.topic_length)
        kind = key.at(key.start, ">i2")
        exact |= room & (size == 10) & (self.group_length == 0) & (self.topic_length == 0)
        self.fits: Mask = exact & ~key.null & ((kind == 0) | (kind == 1))
        self.partition = key.at(np.where(self.fits, self.topic + self.topic_length, 0), ">i4")


class _Values:
    """Where metadata and times stand in each value, by version."""

    def __init__(self, value: _Bytes) -> None:
        size = value.end - value.start
        version = value.at(value.start, ">i2")
        epochs = (version == 3) | (version == 4)
        self.offset = value.at(value.start + 2, ">i8")
        self.epoch = np.where(epochs, value.at(value.start + 10, ">i4"), -1)
        length_at = value.start + np.where(epochs, 14, 10)
        plain = value.at(length_at, ">i2")
        compact, width = _uvarint(value, length_at)
        flexible = version == 4
        self.length = np.where(flexible, compact - 1, plain)
        self.metadata = length_at + np.where(flexible, width, 2)
        sane = (size >= 20) & (self.length >= 0) & (self.length <= size)
        time_at = np.where(sane, self.metadata + self.length, value.start)
        self.commit_time = value.at(time_at, ">i8")
        after = time_at + 8
        self.expire_time = np.where(version == 1, value.at(after, ">i8"), -1)
        tags = value.at(np.where(sane, after, 0), ">u1")
        self.with_id = flexible & (value.at(after, ">u4") >> 8 == 0x010010) & (value.end == after + 19)
        self.id_at = after + 3
        end = after + np.where(version == 1, 8, 0) + np.where(flexible, 1, 0)
        known = (version >= 0) & (version <= 4)
        bare = (value.end == end) & (~flexible | (tags == 0))
        self.fits: Mask = known & sane & ~value.null & (bare | self.with_id)
        self._held = value

    def ids_of(self, rows: Mask) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        """The 16 bytes of these rows' topic ids, shape (rows, 16)."""
        windows = np.lib.stride_tricks.sliding_window_view(self._held.data, 16)
        found: np.ndarray[tuple[int, int], np.dtype[np.uint8]] = windows[self.id_at[rows]]
        return found


def _uvarint(held: _Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The variable-length number at each place and its width, up to three bytes (a string's length has no more)."""
    first, second, third = (held.at(at + i, ">u1") for i in range(3))
    wide, wider = first >= 0x80, (first >= 0x80) & (second >= 0x80)
    number = (first & 0x7F) | np.where(wide, (second & 0x7F) << 7, 0) | np.where(wider, third << 14, 0)
    return number, 1 + wide.astype(np.int64) + wider.astype(np.int64)


def _utf8(key: _Bytes, names: _Keys, body: _Values, value: _Bytes, fits: Mask) -> Mask:
    """Of the rows that fit: which have only UTF-8 in their strings (all, but for a broken record)."""
    rows = np.flatnonzero(fits)
    sound = np.ones(len(rows), dtype=np.bool_)
    for held, start, length in (
        (key, names.group, names.group_length),
        (key, names.topic, names.topic_length),
        (value, body.metadata, np.where(value.null, 0, body.length)),
    ):
        if len(held.data) <= 8 or not (held.data >= 0x80).any():
            continue  # ASCII is UTF-8
        try:
            held.slices(start[rows], length[rows])
        except pa.ArrowInvalid:
            sound &= np.array([_is_utf8(held, s, n) for s, n in zip(start[rows], length[rows], strict=True)])
    return sound


def _is_utf8(held: _Bytes, start: int, length: int) -> bool:
    try:
        held.data[start : start + length].tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


class _Columns:
    """The columns of the rows that fit, with room for those that are mended one by one."""

    def __init__(
        self, n: int, names: _Keys, body: _Values, null: Mask, fits: Mask, key: _Bytes, text: _Bytes | None
    ) -> None:
        live = fits & ~null
        self.n, self.fits, self.live = n, fits, live
        self.group = key.slices(names.group, np.where(fits, names.group_length, 0))
        self.topic = key.slices(names.topic, np.where(fits, names.topic_length, 0))
        self.partition = np.where(fits, names.partition, -1)
        self.offset = np.where(live, body.offset, -1)
        self.epoch = np.where(live, body.epoch, -1)
        self.commit_time = np.where(live, body.commit_time, -1)
        self.expire_time = np.where(live, body.expire_time, -1)
        self.null = null
        self.metadata = text.slices(body.metadata, np.where(live, body.length, 0)) if text else None
        self.ids = _ids(body, live & body.with_id, n)
        self.id_known = live & body.with_id

    def mended(self, keys: pa.Array, values: pa.Array, rows: Ints) -> CommitColumns:
        """The columns with these rows decoded one by one."""
        bad = np.zeros(self.n, dtype=np.bool_)
        errors: dict[int, DecodeError] = {}
        found: dict[int, tuple[str, str, str]] = {}
        for row in rows.tolist():
            try:
                found[row] = self._one(row, keys[row].as_py(), values[row].as_py())
            except DecodeError as error:
                bad[row], errors[row] = True, error
        names = [self.group, self.topic, self.metadata]
        for at, column in enumerate(names):
            if found and column is not None:
                names[at] = _replaced(column, {row: strings[at] for row, strings in found.items()})
        ids = np.where(self.id_known[:, None], self.ids, 0).astype(np.uint8)
        topic_id = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16),
            self.n,
            [_bitmap(self.id_known & ids.any(axis=1)), pa.py_buffer(np.ascontiguousarray(ids))],
        )
        return CommitColumns(
            group=names[0],
            topic=names[1],
            partition=self.partition,
            offset=self.offset,
            epoch=self.epoch,
            commit_time=self.commit_time,
            expire_time=self.expire_time,
            topic_id=topic_id,
            metadata=names[2],
            tombstone=self.null & ~bad,
            bad=bad,
            errors=errors,
        )

    def _one(self, row: int, key: bytes | None, value: bytes | None) -> tuple[str, str, str]:
        record = decode(key, value)
        if record.type not in COMMIT_TYPES:
            raise DecodeError(f"record type {record.type} is not an offset commit", "key", 0)
        self.partition[row] = record.key["partition"]
        if record.value is None:
            return record.key["group"], record.key["topic"], ""
        body = record.value
        self.offset[row], self.commit_time[row] = body["offset"], body["commitTimestamp"]
        self.epoch[row], self.expire_time[row] = body.get("leaderEpoch", -1), body.get("expireTimestamp", -1)
        if body.get("topicId", ZERO_UUID) != ZERO_UUID:
            self.ids[row] = np.frombuffer(bytes.fromhex(body["topicId"].replace("-", "")), dtype=np.uint8)
            self.id_known[row] = True
        return record.key["group"], record.key["topic"], body["metadata"]


def _ids(body: _Values, known: Mask, n: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    ids = np.zeros((n, 16), dtype=np.uint8)
    if known.any():
        ids[known] = body.ids_of(known)
    return ids


def _bitmap(valid: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _replaced(column: pa.Array, rows: dict[int, str]) -> pa.Array:
    mask = np.zeros(len(column), dtype=np.bool_)
    mask[list(rows)] = True
    return pc.replace_with_mask(
        column, pa.array(mask), pa.array([rows[r] for r in sorted(rows)], column.type)
    )
