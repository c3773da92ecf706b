"""Offset commits, nearly all of the traffic, as whole Arrow columns: no Python loop over records.

    key    int16 type (0, 1) · int16 n, group · int16 n, topic · int32 partition
    value  v0, v2: int64 offset · int16 n, metadata · int64 commit time
           v1:     … · int64 expire time
           v3:     int64 offset · int32 epoch · int16 n, metadata · int64 commit time
           v4:     int64 offset · int32 epoch · uvarint n+1, metadata · int64 commit time · uvarint tags
                   (none, or one: 00 10 and the 16 bytes of the topic id)

A key without its partition is one of few (group, topic) pairs: the pairs are distinguished by their raw bytes, and only each
distinct one is read. The first 16 bytes of a value hold its version, offset, epoch and the metadata's length, the last
ones its times: two gathers a row. Rows that do not fit one of these layouts exactly are left to
:func:`kagent.offsets.decode`, one by one: rare, and rarely right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kagent.offsets.buffers import BinaryColumn, Ints, Mask, is_utf8, not_utf8
from kagent.offsets.reader import MAX_STRING, DecodeError
from kagent.offsets.record import decode
from kagent.offsets.record_layout import ZERO_UUID

COMMIT_TYPES = (0, 1)
NO_TYPE = -32768
"""What :func:`record_types` says of a key too short to have a type."""
# Type, two empty strings with their lengths, partition: 2 + 2 + 2 + 4 bytes.
LEAST_KEY = 10
# Version, offset, empty metadata, commit time: 2 + 8 + 2 + 8 bytes, the shortest of versions 0 to 4.
LEAST_VALUE = 20
# Two words of 8 bytes, not fields: epoch and length lie at other bytes in each version, and shifting a word costs
# less than a gather per version. A value has at least 20 bytes, so 16 are always there.
HEAD = np.dtype([("high", ">u8"), ("low", ">u8")])
TAIL = np.dtype([("time", ">i8"), ("tags", "u1")])
TAIL_WITH_ID = np.dtype([*TAIL.descr, ("tag", "u1"), ("size", "u1"), ("id", "V16")])
"""What follows the metadata of version 4: without a tag, and with the topic id's alone."""

BLOCK = 16384
"""Rows decoded at a time, so that what is computed on the way stays in the processor's cache."""

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
Bytes = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """n commits, in input order. ``group`` and ``topic``: dictionary-encoded strings. Numbers: int64, shape (n,).

    ``epoch`` and ``expire_time`` are -1 where a version has none; times in ms; ``topic_id``: fixed_size_binary(16), null
    where unknown. ``tombstone``: rows whose value is null (their numbers are -1). ``bad``: rows that are malformed, with
    the reason in ``errors`` by row; their names are empty and their numbers -1.
    """

    group: pa.DictionaryArray
    topic: pa.DictionaryArray
    partition: Ints
    offset: Ints
    epoch: Ints
    commit_time: Ints
    expire_time: Ints
    topic_id: pa.FixedSizeBinaryArray
    metadata: pa.Array | None
    tombstone: Mask
    bad: Mask
    errors: dict[int, DecodeError]

    def __len__(self) -> int:
        return len(self.partition)


def record_types(keys: pa.Array) -> Ints:
    """The record type of each key; NO_TYPE where the key is null or shorter than two bytes. Shape (n,)."""
    held = BinaryColumn(keys)
    typed = (held.size >= 2) & ~held.null
    types = held.numbers(held.start, ">i2", typed)
    types[~typed] = NO_TYPE
    return types


def decode_commits(keys: pa.Array, values: pa.Array, metadata: bool = False) -> CommitColumns:
    """Decode commits (record types 0 and 1) from binary or large_binary arrays of equal length.

    Never raises for what is in the bytes: see ``bad`` and ``errors``. ``metadata``: also give the metadata strings.
    """
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys and {len(values)} values")
    names = _Keys(BinaryColumn(keys))
    body = _Values(BinaryColumn(values))
    # A row that fits no known layout gets the result, or the error, that the one-record reader gives.
    errors = _mend(body, keys, values, np.flatnonzero(~(names.fits & body.fits)))
    bad = np.zeros(len(keys), np.bool_)
    bad[list(errors)] = True
    if errors:
        names.void(bad)
        body.void(bad)
    return CommitColumns(
        group=names.group,
        topic=names.topic,
        partition=names.partition,
        offset=body.offset,
        epoch=body.epoch,
        commit_time=body.commit_time,
        expire_time=body.expire_time,
        topic_id=body.topic_ids(),
        metadata=body.texts() if metadata else None,
        tombstone=body.held.null & ~bad,
        bad=bad,
        errors=errors,
    )


def _mend(body: _Values, keys: pa.Array, values: pa.Array, rows: Ints) -> dict[int, DecodeError]:
    """Decode these rows one by one into ``body``; the errors of those that cannot be."""
    errors: dict[int, DecodeError] = {}
    for row in rows.tolist():
        try:
            record = decode(keys[row].as_py(), values[row].as_py())
            if record.type not in COMMIT_TYPES:
                raise DecodeError(f"record type {record.type} is not an offset commit", "key", 0)
        except DecodeError as error:
            errors[row] = error
        else:
            if record.value is not None:
                body.put(row, record.value)
    return errors


class _Keys:
    """Group, topic and partition of each key; which keys fit."""

    def __init__(self, held: BinaryColumn) -> None:
        roomy = (held.size >= LEAST_KEY) & ~held.null
        pair_end = np.where(roomy, held.end - 4, held.start)
        self.partition = held.numbers(pair_end, ">i4", roomy)
        # The partitions of a topic share one pair, so there are far fewer pairs than rows to take apart.
        pairs = held.cut(held.start, pair_end).dictionary_encode()
        code = pairs.indices.to_numpy()
        group, topic, fits = _pairs(BinaryColumn(pairs.dictionary))
        self.group, self.topic = _coded(group, code), _coded(topic, code)
        self.fits: Mask = fits[code]

    def void(self, bad: Mask) -> None:
        """Empty the names and -1 the partition of these rows."""
        self.partition[bad] = -1
        self.group, self.topic = (
            pc.if_else(pa.array(bad), "", names.cast(pa.string())).dictionary_encode()
            for names in (self.group, self.topic)
        )


def _pairs(held: BinaryColumn) -> tuple[pa.Array, pa.Array, Mask]:
    """Groups and topics of the distinct ``type · group · topic``, and which of these are well-formed."""
    fits = held.size >= LEAST_KEY - 4
    kind = held.numbers(held.start, ">i2", fits)
    fits &= (kind == COMMIT_TYPES[0]) | (kind == COMMIT_TYPES[1])
    # Never flexible: a key's version is its record type (CoordinatorRecordSerde), so its strings have an int16 length.
    length = held.numbers(held.start + 2, ">i2", fits)
    fits &= (length >= 0) & (length <= held.size - 6)
    cut = held.start + 4 + np.where(fits, length, 0)
    fits &= held.numbers(cut, ">i2", fits) == held.end - cut - 2
    # Pairs that do not fit become empty ranges, so that the columns keep one string per pair.
    group = held.cut(np.where(fits, held.start + 4, held.start), np.where(fits, cut, held.start))
    topic = held.cut(np.where(fits, cut + 2, held.start), np.where(fits, held.end, held.start))
    # The cast below refuses a whole column for one bad name; that name must cost only its own rows.
    if not (is_utf8(group) and is_utf8(topic)):
        broken = not_utf8(group) | not_utf8(topic)
        fits &= ~broken
        group, topic = (pc.if_else(pa.array(broken), b"", names) for names in (group, topic))
    return group.cast(pa.string()), topic.cast(pa.string()), fits


def _coded(names: pa.Array, code: np.ndarray[tuple[int], np.dtype[np.int32]]) -> pa.DictionaryArray:
    distinct = names.dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array(distinct.indices.to_numpy()[code]), distinct.dictionary)


class _Values:
    """What stands in each value; which values fit. A null fits: it is a tombstone."""

    def __init__(self, held: BinaryColumn) -> None:
        n = len(held)
        self.held = held
        self.offset, self.epoch, self.commit_time, self.expire_time = (np.full(n, -1) for _ in range(4))
        self.ids: Bytes = np.zeros((n, 16), np.uint8)
        self.text, self.text_end = held.start.copy(), held.start.copy()
        self.fits: Mask = held.null.copy()
        self.mended: dict[int, str] = {}
        whole = np.flatnonzero((held.size >= LEAST_VALUE) & ~held.null)
        for at in range(0, len(whole), BLOCK):
            self._block(whole[at : at + BLOCK])
        self._utf8()

    def _block(self, rows: Ints) -> None:
        head = self.held.load(self.held.start[rows], HEAD)
        high, low = head["high"].astype(np.uint64), head["low"].astype(np.uint64)
        # The first two bytes of a value.
        version = high >> np.uint64(48)
        for number, read in _LAYOUTS.items():
            of = np.flatnonzero(version == number)
            if len(of):
                read(self, rows[of], high[of], low[of])

    def fixed(self, rows: Ints, high: Words, low: Words, epoch: bool, expires: bool) -> None:
        """Versions 0 to 3: everything but the metadata has a fixed size, so both ends are known."""
        # With an epoch (version 3) the metadata's length is in bytes 14 and 15, without one in bytes 10 and 11.
        shift, before, after = (0, 16, 8) if epoch else (32, 12, 16 if expires else 8)
        length = (low >> np.uint64(shift)).astype(np.int16).astype(np.int64)
        exact = (length >= 0) & (self.held.size[rows] == before + length + after)
        rows, high, low, length = _only(exact, rows, high, low, length)
        self._common(rows, high, low, epoch, self.held.start[rows] + before, length)
        end = self.held.end[rows]
        self.commit_time[rows] = self.held.load(end - after, ">i8")
        if expires:
            self.expire_time[rows] = self.held.load(end - 8, ">i8")

    def flexible(self, rows: Ints, high: Words, low: Words) -> None:
        """Version 4: a compact length of up to two bytes in the head, then tags: none, or the topic id's."""
        # Bytes 14 and 15. A decoder that takes the first for the whole length fails from 127 bytes of metadata on.
        first, second = (low >> np.uint64(8)).astype(np.uint8), low.astype(np.uint8)
        wide = first >= 128
        coded = (first & 0x7F) + (second.astype(np.int64) << 7) * wide
        text = self.held.start[rows] + 15 + wide
        after = text + coded - 1
        left = self.held.end[rows] - after
        # Null, longer than Kafka allows, or a length of three bytes (from 16,383 on): left to the one-record reader.
        sane = (coded > 0) & (coded - 1 <= MAX_STRING) & ~(wide & (second >= 128))
        for tail in (TAIL, TAIL_WITH_ID):
            at = np.flatnonzero(sane & (left == tail.itemsize))
            if len(at):
                self._tail(tail, rows[at], high[at], low[at], text[at], after[at])

    def _tail(
        self, kind: np.dtype[np.void], rows: Ints, high: Words, low: Words, text: Ints, at: Ints
    ) -> None:
        tail = self.held.load(at, kind)
        with_id = kind is TAIL_WITH_ID
        exact = (
            (tail["tags"] == 1) & (tail["tag"] == 0) & (tail["size"] == 16) if with_id else tail["tags"] == 0
        )
        rows, high, low, text, at, tail = _only(exact, rows, high, low, text, at, tail)
        self._common(rows, high, low, True, text, at - text)
        self.commit_time[rows] = tail["time"]
        if with_id:
            self.ids.view("V16")[rows, 0] = tail["id"]

    def _common(self, rows: Ints, high: Words, low: Words, epoch: bool, text: Ints, length: Ints) -> None:
        self.offset[rows] = ((high << np.uint64(16)) | (low >> np.uint64(48))).view(np.int64)
        if epoch:
            self.epoch[rows] = (low >> np.uint64(16)).astype(np.int32)
        self.text[rows], self.text_end[rows] = text, text + length
        self.fits[rows] = True

    def _utf8(self) -> None:
        """Metadata that is not UTF-8 does not fit."""
        rows = np.flatnonzero(self.text_end > self.text)
        if len(rows) and not is_utf8(self.held.parts(self.text[rows], self.text_end[rows])):
            self.fits[rows[not_utf8(self.held.cut(self.text[rows], self.text_end[rows]))]] = False

    def put(self, row: int, value: Mapping[str, Any]) -> None:
        """One row as :func:`kagent.offsets.decode` read it."""
        self.offset[row], self.commit_time[row] = value["offset"], value["commitTimestamp"]
        self.epoch[row], self.expire_time[row] = (
            value.get("leaderEpoch", -1),
            value.get("expireTimestamp", -1),
        )
        self.ids[row] = np.frombuffer(
            bytes.fromhex(value.get("topicId", ZERO_UUID).replace("-", "")), np.uint8
        )
        self.mended[row] = value["metadata"]

    def void(self, bad: Mask) -> None:
        """-1 the numbers of these rows and empty the rest."""
        for numbers in (self.offset, self.epoch, self.commit_time, self.expire_time):
            numbers[bad] = -1
        self.ids[bad] = 0
        self.text_end[bad] = self.text[bad]

    def topic_ids(self) -> pa.FixedSizeBinaryArray:
        """The ids' bytes; the id of zeros is none."""
        halves = self.ids.view(np.uint64)
        known = pa.py_buffer(np.packbits((halves[:, 0] | halves[:, 1]) != 0, bitorder="little"))
        return pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(self.ids), [known, pa.py_buffer(self.ids)]
        )

    def texts(self) -> pa.Array:
        """The metadata strings, empty for tombstones and bad rows."""
        self.text_end[list(self.mended)] = self.text[list(self.mended)]
        texts = self.held.cut(self.text, self.text_end).cast(pa.string())
        if not self.mended:
            return texts
        mask = np.zeros(len(texts), np.bool_)
        mask[list(self.mended)] = True
        found = pa.array([self.mended[row] for row in sorted(self.mended)], pa.string())
        return pc.replace_with_mask(texts, pa.array(mask), found)


def _only(mask: Mask, *arrays: Any) -> tuple[Any, ...]:
    """The rows of the arrays for which the mask is true; the arrays themselves where that is all."""
    return arrays if mask.all() else tuple(a[mask] for a in arrays)


CommitLayout = Callable[[_Values, Ints, Words, Words], None]
_LAYOUTS: dict[int, CommitLayout] = {
    0: lambda v, rows, high, low: v.fixed(rows, high, low, epoch=False, expires=False),
    1: lambda v, rows, high, low: v.fixed(rows, high, low, epoch=False, expires=True),
    2: lambda v, rows, high, low: v.fixed(rows, high, low, epoch=False, expires=False),
    3: lambda v, rows, high, low: v.fixed(rows, high, low, epoch=True, expires=False),
    4: _Values.flexible,
}
