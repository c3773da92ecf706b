"""Lines of JSON with hex in, objects for lines of JSON out: what ``kagent decode`` does, without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from kagent.offsets.blobs import KINDS as BLOBS
from kagent.offsets.reader import DecodeError
from kagent.offsets.record import UnknownRecordType, decode, decode_value
from kagent.offsets.schemas import RECORDS

Line = Mapping[str, Any]
# A value alone does not tell its type; types 0 and 1 have the same one.
COMMIT = 1


def answer(line: bytes | str, kind: str = "record") -> dict[str, Any]:
    """What this line's bytes say: ``{"error": …}`` if they are malformed or the line is not what was asked for."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return {"error": f"not JSON at column {error.colno}: {error.msg}"}
    if not isinstance(found, dict):
        return {"error": "a JSON object is expected"}
    try:
        return READERS[kind](found)
    except DecodeError as error:
        return {"error": str(error)}


def record(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """One record as JSON; ``{"key_type": …, "unknown": true}`` for a type that is not known. Raises DecodeError."""
    try:
        return decode(key, value).to_json()
    except UnknownRecordType as error:
        return {"key_type": error.key_type, "unknown": True}


def _record(line: Line) -> dict[str, Any]:
    return record(_bytes(line, "key_hex"), _bytes(line, "value_hex"))


def _value_only(line: Line) -> dict[str, Any]:
    data = _bytes(line, "value_hex" if "value_hex" in line else "hex")
    if data is None:
        raise DecodeError("there is no value to read")
    version, value = decode_value(COMMIT, data)
    return {"record": RECORDS[COMMIT].name, "key_type": COMMIT, "value_version": version, "value": value}


def _blob(read: Callable[[bytes], dict[str, Any]]) -> Callable[[Line], dict[str, Any]]:
    def reader(line: Line) -> dict[str, Any]:
        data = _bytes(line, "hex")
        if data is None:
            raise DecodeError("there are no bytes to read")
        return read(data)

    return reader


def _bytes(line: Line, name: str) -> bytes | None:
    if name not in line:
        raise DecodeError(f"the line has no {name}")
    text = line[name]
    if text is None:
        return None
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise DecodeError(f"{name} is not hex") from None


READERS: Mapping[str, Callable[[Line], dict[str, Any]]] = {
    "record": _record,
    "offset_commit_value_only": _value_only,
    **{kind: _blob(read) for kind, read in BLOBS.items()},
}
"""What a line may hold, by name."""
