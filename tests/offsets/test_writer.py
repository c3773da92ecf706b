"""Records are written back byte for byte as Kafka's serializers and a real broker wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kagent.offsets import DecodeError, decode
from kagent.offsets.schemas import RECORDS
from kagent.offsets.writer import encode_key, encode_value, layout_of

DATA = Path(__file__).parent / "data"
WITH_UNKNOWN_FIELDS = {"edge/offset-v4-unknown-tag"}
"""What a newer Kafka added is not written again."""


def vectors() -> list[Any]:
    cases = []
    for name in ("records.jsonl", "capture.jsonl"):
        for number, line in enumerate((DATA / name).read_text().splitlines()):
            case = json.loads(line)
            if case.get("key_hex"):
                key, value = bytes.fromhex(case["key_hex"]), case.get("value_hex")
                label = case.get("id", f"{name}:{number}")
                cases.append(pytest.param(label, key, value and bytes.fromhex(value), id=label))
    return cases


@pytest.mark.parametrize(("label", "key", "value"), vectors())
def test_a_decoded_record_is_written_back_as_it_was(label: str, key: bytes, value: bytes | None) -> None:
    try:
        record = decode(key, value)
    except DecodeError:
        return  # of those vectors that must not be readable
    assert encode_key(record.type, record.key) == key
    if record.value is not None:
        written = encode_value(record, record.value)
        assert decode(key, written) == record
        if label not in WITH_UNKNOWN_FIELDS:
            assert written == value


def test_layouts_of_early_access_are_told_apart_from_the_final_ones() -> None:
    records = [_decoded(key, value) for _, key, value in (case.values for case in vectors())]
    early = {r.name for r in records if r is not None and layout_of(r) is not RECORDS[r.type].value}
    assert early


def _decoded(key: bytes, value: bytes | None) -> Any:
    try:
        record = decode(key, value)
    except DecodeError:
        return None
    return None if record.value is None else record
