"""One record: key and value bytes in, a :class:`Record` or a DecodeError out. Nothing else ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kagent.offsets.blobs import decoded
from kagent.offsets.reader import DecodeError, Reader, UnknownRecordType, UnknownValueVersion
from kagent.offsets.schema import Struct, read
from kagent.offsets.schemas import RECORDS, Layout


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record. ``version`` and ``value`` are None for a tombstone; field names are Kafka's own."""

    name: str
    type: int
    version: int | None
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None

    @property
    def group(self) -> str:
        """The group that the record is about."""
        name: str = self.key["group"] if "group" in self.key else self.key["groupId"]
        return name

    def to_json(self) -> dict[str, Any]:
        """As it is printed, and as it travels in events."""
        return {
            "record": self.name,
            "key_type": self.type,
            "value_version": self.version,
            "key": self.key,
            "value": self.value,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Record:
        """The record that :meth:`to_json` wrote."""
        return cls(raw["record"], raw["key_type"], raw["value_version"], raw["key"], raw["value"])


def decode(key: bytes | None, value: bytes | None) -> Record:
    """Decode one record of ``__consumer_offsets``.

    Raises UnknownRecordType, UnknownValueVersion, or DecodeError with place and reason for what is malformed.
    """
    if key is None:
        raise DecodeError("the key is null", "key")
    reader = Reader(key, "key")
    kind = reader.int16()
    layout = RECORDS.get(kind)
    if layout is None:
        raise UnknownRecordType(kind)
    reader.where = f"{layout.name} key"
    fields = read(reader, layout.key, 0, flexible=False)
    reader.done()
    if value is None:
        return Record(layout.name, kind, None, fields, None)
    version, body = _value(layout, value, fields.get("group") or fields.get("groupId"))
    return Record(layout.name, kind, version, fields, body)


def decode_value(kind: int, value: bytes) -> tuple[int, dict[str, Any]]:
    """Version and fields of a value alone, of record type ``kind``. Raises as :func:`decode` does."""
    if kind not in RECORDS:
        raise UnknownRecordType(kind)
    return _value(RECORDS[kind], value, None)


def _value(layout: Layout, data: bytes, group: str | None) -> tuple[int, dict[str, Any]]:
    where = f"{layout.name} value"
    version = Reader(data, where).int16()
    if version not in layout.versions:
        raise UnknownValueVersion(layout.name, version, group)
    flexible = layout.flexible is not None and version >= layout.flexible
    try:
        return version, decoded(_whole(data, where, layout.value, version, flexible), layout.name)
    except DecodeError:
        for earlier in layout.earlier:
            try:
                return version, _whole(data, where, earlier, version, flexible)
            except DecodeError:
                continue
        raise


def _whole(data: bytes, where: str, fields: Struct, version: int, flexible: bool) -> dict[str, Any]:
    """All of the bytes by this layout, or a DecodeError: what is left over means that it is another layout."""
    reader = Reader(data, where, at=2)
    value = read(reader, fields, version, flexible)
    reader.done()
    return value
