"""One record: key and value bytes in, a :class:`Record` or a DecodeError out. Nothing else ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kagent.offsets.blobs import decoded, slim
from kagent.offsets.reader import ByteReader, DecodeError
from kagent.offsets.record_layout import Read, compiled
from kagent.offsets.schemas import RECORDS, RecordLayout


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record. ``version`` and ``value`` are None for a tombstone; field names are Kafka's own.

    A version without a value is one that this release cannot read: what the key now holds is not known.
    """

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

    @property
    def unreadable(self) -> bool:
        """Whether its value has a version that this release does not know."""
        return self.value is None and self.version is not None

    def to_json(self) -> dict[str, Any]:
        """As it is printed, and as it travels in events."""
        return {
            "record": self.name,
            "key_type": self.type,
            "value_version": self.version,
            "key": self.key,
            "value": self.value,
        }

    def slim(self) -> Record:
        """Without the hex of members' blobs that are decoded beside it: half the size, for passing on."""
        return self if self.value is None else replace(self, value=slim(self.value, self.name))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Record:
        """The record that :meth:`to_json` wrote."""
        return cls(raw["record"], raw["key_type"], raw["value_version"], raw["key"], raw["value"])


class UnknownRecordType(DecodeError):
    """A record type this decoder does not know (a newer broker, or a left-over): skip and count it."""

    def __init__(self, key_type: int) -> None:
        super().__init__(f"record type {key_type} is not known", "key", 0)
        self.key_type = key_type


class UnknownValueVersion(DecodeError):
    """A value version this decoder does not know: keep the old state and mark the group stale.

    ``record`` has the key and the version, and no value: :func:`kagent.groups.apply` takes it and marks the group.
    """

    def __init__(self, record: Record) -> None:
        super().__init__(f"value version {record.version} is not known", f"{record.name} value", 0)
        self.record, self.version = record, record.version
        self.group = record.group if record.key else None


def decode(key: bytes | None, value: bytes | None) -> Record:
    """Decode one record of ``__consumer_offsets``.

    Raises UnknownRecordType, UnknownValueVersion, or DecodeError with place and reason for what is malformed.
    """
    if key is None:
        raise DecodeError("the key is null", "key")
    reader = ByteReader(key, "key")
    kind = reader.int16()
    # A broker that loads its log skips such a record as a left-over of an aborted upgrade (CoordinatorLoaderImpl).
    layout = RECORDS.get(kind)
    if layout is None:
        raise UnknownRecordType(kind)
    reader.where = f"{layout.name} key"
    fields = _key_reader(kind)(reader)
    # Kafka ignores bytes behind the last field; here they tell that the record is not of the layout we know.
    reader.done()
    # Only a null value is a tombstone: an empty one is malformed, for Kafka too.
    if value is None:
        return Record(layout.name, kind, None, fields, None)
    return _with_value(layout, kind, fields, value)


def decode_value(kind: int, value: bytes) -> tuple[int, dict[str, Any]]:
    """Version and fields of a value alone, of record type ``kind``. Raises as :func:`decode` does."""
    if kind not in RECORDS:
        raise UnknownRecordType(kind)
    record = _with_value(RECORDS[kind], kind, {}, value)
    assert record.version is not None
    return record.version, dict(record.value or {})


@cache
def _key_reader(kind: int) -> Read:
    # A key's version is its record type, and keys are never flexible: CoordinatorRecordSerde writes them so.
    # https://github.com/apache/kafka/blob/4.3.0/coordinator-common/src/main/java/org/apache/kafka/coordinator/common/runtime/CoordinatorRecordSerde.java
    return compiled(RECORDS[kind].key, 0, False)


@cache
def _value_readers(kind: int, version: int) -> tuple[Read, ...]:
    """The final layout's reader, then those of early-access layouts that reuse its version."""
    layout = RECORDS[kind]
    flexible = layout.flexible is not None and version >= layout.flexible
    return tuple(compiled(fields, version, flexible) for fields in (layout.value, *layout.earlier))


def _with_value(layout: RecordLayout, kind: int, key: dict[str, Any], data: bytes) -> Record:
    where = f"{layout.name} value"
    version = ByteReader(data, where).int16()
    # Never read by the nearest known version: a new field would shift every later one.
    if version not in layout.versions:
        raise UnknownValueVersion(Record(layout.name, kind, version, key, None))
    # Early-access releases (3.6 and 3.7 for KIP-848, 3.9 and 4.0 for share groups) wrote other fields under version 0,
    # and nothing in the bytes names the release: the layout that fits to the last byte is the one.
    final, *earlier = _value_readers(kind, version)
    try:
        value = _whole(data, where, final)
    except DecodeError as error:
        for read in earlier:
            try:
                value = _whole(data, where, read)
                break
            except DecodeError:
                continue
        else:
            # The error of the final layout: nearly every record is of that one.
            raise error from None
    return Record(layout.name, kind, version, key, decoded(value, layout.name))


def _whole(data: bytes, where: str, read: Read) -> dict[str, Any]:
    """All of the bytes by this layout, or a DecodeError: what is left over means that it is another layout."""
    reader = ByteReader(data, where, at=2)
    value: dict[str, Any] = read(reader)
    reader.done()
    return value
