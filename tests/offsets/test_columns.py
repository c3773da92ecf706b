"""Whole columns give what one record at a time gives, for every commit and every broken one."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.offsets import DecodeError, decode
from kagent.offsets.columns import NO_TYPE, CommitColumns, decode_commits, record_types
from kagent.offsets.record_layout import ZERO_UUID

DATA = Path(__file__).parent / "data"
Pair = tuple[bytes | None, bytes | None]


def commits() -> list[Pair]:
    pairs: list[Pair] = []
    for name in ("records.jsonl", "capture.jsonl"):
        for line in (DATA / name).read_text().splitlines():
            raw = json.loads(line)
            if (
                raw.get("isControl")
                or not raw.get("key_hex")
                or not raw["key_hex"].startswith(("0000", "0001"))
            ):
                continue
            pairs.append(
                (
                    bytes.fromhex(raw["key_hex"]),
                    None if raw["value_hex"] is None else bytes.fromhex(raw["value_hex"]),
                )
            )
    return pairs


COMMITS = commits()


def assert_as_one_by_one(pairs: list[Pair], columns: CommitColumns) -> None:
    for row, (key, value) in enumerate(pairs):
        try:
            record = decode(key, value)
            if record.type > 1:
                raise DecodeError("not a commit")
        except DecodeError:
            assert columns.bad[row], (key, value)
            assert row in columns.errors
            continue
        assert not columns.bad[row], columns.errors.get(row)
        names = (columns.group[row].as_py(), columns.topic[row].as_py(), int(columns.partition[row]))
        assert names == (record.key["group"], record.key["topic"], record.key["partition"])
        assert bool(columns.tombstone[row]) == (record.value is None)
        if record.value is not None:
            body = record.value
            numbers = (
                columns.offset[row],
                columns.epoch[row],
                columns.commit_time[row],
                columns.expire_time[row],
            )
            wanted = (
                body["offset"],
                body.get("leaderEpoch", -1),
                body["commitTimestamp"],
                body.get("expireTimestamp", -1),
            )
            assert tuple(map(int, numbers)) == wanted
            assert columns.metadata is not None
            assert columns.metadata[row].as_py() == body["metadata"]
            found = columns.topic_id[row].as_py()
            assert (str(uuid.UUID(bytes=found)) if found else ZERO_UUID) == body.get("topicId", ZERO_UUID)


def arrays(pairs: list[Pair], kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    return pa.array([k for k, _ in pairs], kind), pa.array([v for _, v in pairs], kind)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_columns_agree_with_single_records(kind: pa.DataType) -> None:
    assert_as_one_by_one(COMMITS, decode_commits(*arrays(COMMITS, kind), metadata=True))


def test_a_slice_of_a_larger_array_is_read_as_such() -> None:
    keys, values = arrays(COMMITS, pa.binary())

    assert_as_one_by_one(COMMITS[3:9], decode_commits(keys[3:9], values[3:9], metadata=True))


def test_nothing_gives_nothing() -> None:
    columns = decode_commits(*arrays([], pa.binary()), metadata=True)

    assert (len(columns), columns.errors) == (0, {})


@st.composite
def broken(draw: st.DrawFn) -> Pair:
    """A real commit with bytes changed, cut off, added or swapped with another's."""
    key, value = draw(st.sampled_from(COMMITS))
    other, body = draw(st.sampled_from(COMMITS))
    how = draw(st.sampled_from(["none", "change", "cut", "add", "splice"]))
    target = draw(st.sampled_from(["key", "value"]))
    data = (key if target == "key" else value) or b""
    spare = (other if target == "key" else body) or b""
    at = draw(st.integers(0, len(data)))
    if how == "change" and at < len(data):
        data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    elif how == "cut":
        data = data[:at]
    elif how == "add":
        data = data + draw(st.binary(max_size=20))
    elif how == "splice":
        data = data[:at] + spare[draw(st.integers(0, len(spare))) :]
    if how == "none":
        return key, value
    return (data, value) if target == "key" else (key, data)


ROWS = st.lists(broken() | st.sampled_from([(None, b""), (COMMITS[0][0], None)]), min_size=1, max_size=30)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(ROWS, st.sampled_from([pa.binary(), pa.large_binary()]), st.integers(0, 5), st.integers(0, 5))
def test_broken_commits_are_told_apart_row_by_row(
    pairs: list[Pair], kind: pa.DataType, skipped: int, left: int
) -> None:
    rows = slice(skipped, max(skipped, len(pairs) - left))
    keys, values = arrays(pairs, kind)

    assert_as_one_by_one(pairs[rows], decode_commits(keys[rows], values[rows], metadata=True))


def test_a_key_without_a_type_has_none() -> None:
    keys = pa.array([b"\x00\x01abc", b"\x00", None, b"\xff\xff", b""], pa.binary())

    assert record_types(keys).tolist() == [1, NO_TYPE, NO_TYPE, -1, NO_TYPE]
    assert record_types(keys[3:]).tolist() == [-1, NO_TYPE]
    assert np.asarray(record_types(pa.array([], pa.binary()))).tolist() == []
