"""What Kafka's own serializers and a real broker wrote is read exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kagent.offsets import DecodeError, UnknownRecordType, blobs, decode, decode_value

DATA = Path(__file__).parent / "data"
BLOBS = {
    "consumer_protocol_subscription": blobs.subscription,
    "consumer_protocol_assignment": blobs.assignment,
    "sticky_user_data": blobs.sticky_user_data,
    "cooperative_sticky_user_data": blobs.cooperative_user_data,
    "faust_user_data": blobs.faust_user_data,
}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def raw(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("case", lines("records.jsonl"), ids=lambda c: c["id"])
def test_every_vector_is_read_as_kafka_reads_it(case: dict[str, Any]) -> None:
    kind, expected = case["kind"], case["expected"]
    if kind in BLOBS:
        assert BLOBS[kind](bytes.fromhex(case["hex"])) == expected
    elif kind == "unknown_key_type":
        with pytest.raises(UnknownRecordType) as caught:
            decode(raw(case["key_hex"]), raw(case["value_hex"]))
        assert caught.value.key_type == expected["key_type"]
    elif kind == "malformed":
        with pytest.raises(DecodeError):
            decode(raw(case["key_hex"]), raw(case["value_hex"]))
    elif kind == "offset_commit_value_only":
        assert decode_value(1, bytes.fromhex(case["value_hex"])) == (
            expected["value_version"],
            expected["value"],
        )
    else:
        assert decode(raw(case["key_hex"]), raw(case["value_hex"])).to_json() == expected


def test_every_record_of_a_real_broker_is_read() -> None:
    for entry in lines("capture.jsonl"):
        if not entry["isControl"]:
            assert decode(raw(entry["key_hex"]), raw(entry["value_hex"])).to_json() == entry["expected"]
