"""Whatever the bytes: a result or a DecodeError, in time and memory that follow the input."""

from __future__ import annotations

import contextlib
import json
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.offsets import DecodeError, Record, UnknownRecordType, UnknownValueVersion, blobs, decode
from kagent.offsets.schemas import RECORDS

DATA = Path(__file__).parent / "data"
Pair = tuple[bytes, bytes | None]


def lines() -> list[dict[str, Any]]:
    names = ("records.jsonl", "capture.jsonl")
    return [json.loads(line) for name in names for line in (DATA / name).read_text().splitlines()]


def unhexed(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


REAL: list[Pair] = [
    (bytes.fromhex(row["key_hex"]), unhexed(row["value_hex"])) for row in lines() if row.get("key_hex")
]
BLOBS = [bytes.fromhex(row["hex"]) for row in lines() if "hex" in row]
VALUES = [value for _, value in REAL if value]
EXTREMES = st.sampled_from([b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff"])


@st.composite
def mutated(draw: st.DrawFn, of: list[bytes]) -> bytes:
    """Real bytes, changed, cut, lengthened or spliced with other real bytes, up to four times."""
    data = draw(st.sampled_from(of))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(["set", "cut", "insert", "splice", "drop"]))
        if how == "set":
            patch = draw(EXTREMES | st.binary(min_size=1, max_size=4))
            data = data[:at] + patch + data[at + len(patch) :]
        elif how == "cut":
            data = data[:at]
        elif how == "insert":
            data = data[:at] + draw(EXTREMES | st.binary(max_size=8)) + data[at:]
        elif how == "splice":
            other = draw(st.sampled_from(of))
            data = data[:at] + other[draw(st.integers(0, len(other))) :]
        else:
            data = data[:at] + data[at + draw(st.integers(1, 8)) :]
    return data


def read(key: bytes, value: bytes | None) -> Record | None:
    with contextlib.suppress(DecodeError):
        return decode(key, value)
    return None


SOUND = [(key, value) for key, value in REAL if value and read(key, value)]


def check(key: bytes, value: bytes | None) -> None:
    record = read(key, value)
    assert record is None or Record.from_json(orjson.loads(orjson.dumps(record.to_json()))) == record


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(REAL), mutated(VALUES))
@pytest.mark.slow
def test_a_damaged_value_is_read_or_refused(pair: Pair, value: bytes) -> None:
    check(pair[0], value)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(mutated([key for key, _ in REAL]), st.sampled_from(REAL))
def test_a_damaged_key_is_read_or_refused(key: bytes, pair: Pair) -> None:
    check(key, pair[1])


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(-2, 26), st.binary(max_size=40), st.binary(max_size=200) | st.none())
def test_noise_is_read_or_refused(kind: int, key: bytes, value: bytes | None) -> None:
    check(struct.pack(">h", kind) + key, value)
    check(key, value)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(blobs.KINDS)), mutated(BLOBS))
def test_a_damaged_blob_is_read_or_refused(kind: str, data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert orjson.dumps(blobs.KINDS[kind](data))


@pytest.mark.parametrize("pair", SOUND[::7], ids=lambda pair: pair[0].hex()[:24])
def test_a_record_cut_off_anywhere_is_refused(pair: tuple[bytes, bytes]) -> None:
    key, value = pair
    for end in range(len(key)):
        with pytest.raises(DecodeError):
            decode(key[:end], value)
    for end in range(len(value)):
        try:
            shorter = decode(key, value[:end])
        except DecodeError:
            continue
        assert RECORDS[shorter.type].earlier, "what is cut off may by chance be an early-access layout"


@pytest.mark.parametrize("pair", SOUND[::7], ids=lambda pair: pair[0].hex()[:24])
def test_bytes_left_over_are_reported(pair: tuple[bytes, bytes]) -> None:
    key, value = pair
    with pytest.raises(DecodeError):
        decode(key + b"\x00", value)
    with pytest.raises(DecodeError):
        decode(key, value + b"\x00")


def key_of(kind: int) -> bytes:
    name = b"\x00\x01g"
    return struct.pack(">h", kind) + name * (2 if len(RECORDS[kind].key) > 1 else 1)


BOMBS: dict[str, tuple[int, bytes]] = {
    "members counted beyond the bytes": (
        2,
        struct.pack(">hhihhqi", 3, 0, 0, -1, -1, 0, 2**31 - 1) + bytes(64),
    ),
    "a compact array counted beyond the bytes": (7, b"\x00\x00" + b"\xff\xff\xff\xff\x0f" + bytes(64)),
    "many tagged fields": (3, b"\x00\x00\x00\x00\x00\x01" + b"\xff\xff\xff\xff\x0f" + bytes(64)),
    "a tag longer than the bytes": (3, b"\x00\x00\x00\x00\x00\x01\x01\x00\xff\xff\xff\xff\x0f" + bytes(64)),
    "a varint without an end": (3, b"\x00\x00\x00\x00\x00\x01" + b"\x80" * 10_000),
    "a varint over 32 bits": (3, b"\x00\x00\x00\x00\x00\x01" + b"\xff\xff\xff\xff\x7f"),
    "a string of a compact length over 32767": (5, b"\x00\x00\x00\x00" + b"\xff\xff\x03" + b"x" * 70_000),
    "a null where a string must be": (5, b"\x00\x00\x00\x00\x00\x00"),
    "a name that is not UTF-8": (5, b"\x00\x00\x00\x00\x02\xff\x01\x01\x01" + bytes(8)),
}


@pytest.mark.parametrize(("kind", "value"), BOMBS.values(), ids=BOMBS)
def test_a_claim_beyond_the_bytes_is_refused_at_once(kind: int, value: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            decode(key_of(kind), value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(value) + 100_000
    assert caught.value.at is not None


@pytest.mark.parametrize("kind", sorted(RECORDS))
def test_a_large_run_of_any_one_byte_costs_no_more_than_its_size(kind: int) -> None:
    for byte in (0, 1, 2, 127, 255):
        started = time.process_time()
        check(key_of(kind), b"\x00\x00" + bytes([byte]) * 50_000)
        assert time.process_time() - started < 2


@pytest.mark.parametrize("repeats", [1, 20_000])
def test_unknown_tags_are_passed_over_however_many(repeats: int) -> None:
    count = bytes([repeats & 127 | 128, repeats >> 7 & 127 | 128, repeats >> 14])
    value = b"\x00\x00\x00\x00\x00\x07" + count + b"\x05\x00" * repeats

    assert decode(key_of(3), value).value == {"epoch": 7, "metadataHash": 0}


def test_the_place_of_an_error_names_the_field() -> None:
    value = (
        struct.pack(">hh8sihhqi", 3, 8, b"consumer", 1, -1, -1, 0, 1)
        + b"\x00\x01m\xff\xff\x00\x7f"
        + bytes(30)
    )

    with pytest.raises(
        DecodeError, match=r"^GroupMetadata value, members\[0\]\.clientId, byte \d+: "
    ) as caught:
        decode(key_of(2), value)
    assert caught.value.path == "members[0].clientId"


def test_an_unknown_version_tells_its_group() -> None:
    with pytest.raises(UnknownValueVersion) as caught:
        decode(key_of(2), b"\x00\x05")

    assert (caught.value.group, caught.value.version, caught.value.record.unreadable) == ("g", 5, True)


def test_an_unknown_type_tells_its_number() -> None:
    for kind in (18, 24, -1, 32767):
        with pytest.raises(UnknownRecordType) as caught:
            decode(struct.pack(">h", kind), b"")
        assert caught.value.key_type == kind


@pytest.mark.parametrize("key", [None, b"", b"\x00"])
def test_a_key_without_a_type_is_malformed(key: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode(key, b"\x00\x00")
