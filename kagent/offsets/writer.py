"""Records back to bytes: the inverse of the reader, for the same layouts. Tagged fields are written where they are not default,
in order of tag, as Kafka's generated message classes do."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from kagent.offsets.reader import DecodeError
from kagent.offsets.record import Record, decode
from kagent.offsets.record_layout import Array, Field, Struct, Type
from kagent.offsets.schemas import RECORDS

CODES = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q"}


def encode_key(kind: int, key: Mapping[str, Any]) -> bytes:
    """The key of a record of type ``kind``."""
    return _versioned(kind, encode(RECORDS[kind].key, 0, False, key))


def encode_value(record: Record, value: Mapping[str, Any]) -> bytes:
    """The value of a decoded record with other contents of the same shape. Raises ValueError as :func:`layout_of`."""
    assert record.version is not None
    return _versioned(record.version, encode(layout_of(record), record.version, _flexible(record), value))


def layout_of(record: Record) -> Struct:
    """The layout of a record's value: releases with early access have used version numbers for other layouts.

    Raises ValueError where no known layout gives the value back.
    """
    layout = RECORDS[record.type]
    # Nothing in a decoded record says by which layout it was read, so each is tried until one gives the bytes' meaning back.
    for fields in (layout.value, *layout.earlier):
        if _reads_back(record, fields):
            return fields
    raise ValueError(f"a {record.name} value that cannot be written back")


def _reads_back(record: Record, fields: Struct) -> bool:
    assert record.version is not None
    assert record.value is not None
    if not {field.name for field in _present(fields, record.version)} <= set(record.value):
        return False
    body = encode(fields, record.version, _flexible(record), record.value)
    try:
        return decode(encode_key(record.type, record.key), _versioned(record.version, body)) == record
    except DecodeError:
        return False


def _flexible(record: Record) -> bool:
    first = RECORDS[record.type].flexible
    return first is not None and (record.version or 0) >= first


def _versioned(version: int, body: bytes) -> bytes:
    return struct.pack(">h", version) + body


def encode(fields: Struct, version: int, flexible: bool, value: Mapping[str, Any]) -> bytes:
    """One struct. ``value``: by field name, as the reader returns it; other names are passed over."""
    present = _present(fields, version)
    body = b"".join(_field(f, version, flexible, value[f.name]) for f in present if f.tag is None)
    return body + _tags(present, version, value) if flexible else body


def _present(fields: Struct, version: int) -> list[Field]:
    return [field for field in fields if field.since <= version <= field.until]


def _tags(fields: Sequence[Field], version: int, value: Mapping[str, Any]) -> bytes:
    # A null struct is not the default (an empty one), so it is written as "explicitly null", as Kafka does.
    tagged = sorted((f.tag, f) for f in fields if f.tag is not None and value[f.name] != f.default)
    parts = [uvarint(len(tagged))]
    for tag, field in tagged:
        content = _field(field, version, True, value[field.name])
        parts += [uvarint(tag), uvarint(len(content)), content]
    return b"".join(parts)


def _field(field: Field, version: int, flexible: bool, value: Any) -> bytes:
    kind = field.type
    if field.nullable and isinstance(kind, tuple):
        marker = uvarint if field.tag is not None else lambda n: struct.pack(">b", n or -1)
        return marker(0) if value is None else marker(1) + _value(kind, version, flexible, value)
    return _value(kind, version, flexible, value)


def _value(kind: Type, version: int, flexible: bool, value: Any) -> bytes:
    if isinstance(kind, tuple):
        return encode(kind, version, flexible, value)
    if isinstance(kind, str) and kind in CODES:
        return struct.pack(CODES[kind], value)
    if kind == "uuid":
        return uuid.UUID(value).bytes
    if value is None:
        return _length(kind, flexible, -1)
    if isinstance(kind, Array):
        items = b"".join(_value(kind.of, version, flexible, item) for item in value)
        return _length(kind, flexible, len(value)) + items
    content = value.encode() if kind == "string" else bytes.fromhex(value)
    return _length(kind, flexible, len(content)) + content


def _length(kind: Type, flexible: bool, size: int) -> bytes:
    if flexible:
        return uvarint(size + 1)
    return struct.pack(">h" if kind == "string" else ">i", size)


def uvarint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
