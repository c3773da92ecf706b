"""How a record's layout is written down, and the one function that reads bytes by it.

A struct is a tuple of fields in wire order; tagged ones may stand anywhere. A field's type is a primitive's name,
:class:`Array` of a type, or a struct.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kagent.offsets.reader import DecodeError, Reader

NEWEST = 32767
FIXED = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}
ZERO_UUID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Array:
    """An array of ``of``."""

    of: Type


@dataclass(frozen=True, slots=True)
class Field:
    """One field: from version ``since`` to ``until``; ``tag`` where it is tagged; ``default`` where the tag is absent."""

    name: str
    type: Type
    since: int = 0
    until: int = NEWEST
    nullable: bool = False
    tag: int | None = None
    default: Any = None


Struct = tuple[Field, ...]
Type = str | Array | Struct

LINE = re.compile(
    r"(?P<name>\w+)\s+(?P<type>\S+?)(?P<null>\?)?(?:\s+v(?P<since>\d+)(?P<open>\+)?)?(?:\s+tag(?P<tag>\d+))?"
)


def struct(text: str, **parts: Struct) -> Struct:
    """A struct from lines ``name type[?] [v2+|v1] [tag0[=default]]``; ``[]type`` is an array, ``parts`` named structs.

    >>> struct("offset int64; topicId uuid v4+ tag0")[1].tag
    0
    """
    return tuple(_field(line.strip(), parts) for line in re.split(r"[;\n]", text) if line.strip())


def _field(line: str, parts: dict[str, Struct]) -> Field:
    declared, _, default = line.partition("=")
    match = LINE.fullmatch(declared.strip())
    if match is None:
        raise ValueError(f"not a field: {line}")
    since = int(match["since"] or 0)
    kind: Type = _type(match["type"], parts)
    tag = int(match["tag"]) if match["tag"] else None
    return Field(
        name=match["name"],
        type=kind,
        since=since,
        until=NEWEST if match["open"] or match["since"] is None else since,
        nullable=bool(match["null"]),
        tag=tag,
        default=int(default) if default else absent(kind),
    )


def _type(name: str, parts: dict[str, Struct]) -> Type:
    if name.startswith("[]"):
        return Array(_type(name[2:], parts))
    return parts.get(name, name)


def absent(kind: Type) -> Any:
    """What a tagged field holds when its tag is not there: zero, nothing, or a struct of such (Kafka's generator)."""
    if isinstance(kind, Array):
        return []
    if isinstance(kind, tuple):
        return {field.name: absent(field.type) for field in kind}
    return {"uuid": ZERO_UUID, "string": "", "bytes": ""}.get(kind, 0)


def read(reader: Reader, fields: Struct, version: int, flexible: bool) -> dict[str, Any]:
    """One struct of this version. Raises DecodeError."""
    value: dict[str, Any] = {}
    tagged: dict[int, Field] = {}
    for field in fields:
        if not field.since <= version <= field.until:
            continue
        if field.tag is None:
            value[field.name] = _read(reader, field, version, flexible)
        else:
            tagged[field.tag] = field
            value[field.name] = _copy(field.default)
    if flexible:
        _tags(reader, tagged, version, value)
    return value


def _copy(default: Any) -> Any:
    if isinstance(default, list):
        return []
    return {name: _copy(part) for name, part in default.items()} if isinstance(default, dict) else default


def _tags(reader: Reader, tagged: dict[int, Field], version: int, value: dict[str, Any]) -> None:
    count = reader.uvarint()
    if count * 2 > reader.left:
        raise reader.fail(f"{count} tagged fields in {reader.left} bytes")
    for _ in range(count):
        tag, size = reader.uvarint(), reader.uvarint()
        inner = reader.inside(size)
        if tag in tagged:
            value[tagged[tag].name] = _read(inner, tagged[tag], version, flexible=True)
            inner.done()


def _read(reader: Reader, field: Field, version: int, flexible: bool) -> Any:
    value = _value(reader, field, version, flexible)
    if value is None and not field.nullable:
        raise DecodeError(f"{field.name} is null", reader.where, reader.at)
    return value


def _value(reader: Reader, field: Field, version: int, flexible: bool) -> Any:
    kind = field.type
    if isinstance(kind, Array):
        return _array(reader, kind.of, version, flexible)
    if isinstance(kind, tuple):
        if field.nullable and not _present(reader, field):
            return None
        return read(reader, kind, version, flexible)
    return _primitive(reader, kind, flexible)


def _present(reader: Reader, field: Field) -> bool:
    """The marker before a nullable struct: a byte, or a uvarint inside a tag."""
    return reader.uvarint() > 0 if field.tag is not None else reader.int8() >= 0


def _primitive(reader: Reader, kind: str, flexible: bool) -> Any:
    if kind == "string":
        return reader.string(flexible)
    if kind == "bytes":
        data = reader.bytes(flexible)
        return None if data is None else data.hex()
    return getattr(reader, kind)()


def _array(reader: Reader, of: Type, version: int, flexible: bool) -> list[Any] | None:
    count = reader.length(flexible)
    if count is None:
        return None
    if count * least(of, version, flexible) > reader.left:
        raise reader.fail(f"{count} elements in {reader.left} bytes")
    if isinstance(of, tuple):
        return [read(reader, of, version, flexible) for _ in range(count)]
    element = Field("element", of)
    return [_read(reader, element, version, flexible) for _ in range(count)]


def least(kind: Type, version: int, flexible: bool) -> int:
    """The fewest bytes that one value of this type takes: what a claimed count is checked against. Never 0."""
    if isinstance(kind, Array):
        return 1 if flexible else 4
    if isinstance(kind, tuple):
        inside = (f for f in kind if f.tag is None and f.since <= version <= f.until)
        sizes = sum(
            1 if f.nullable and isinstance(f.type, tuple) else least(f.type, version, flexible)
            for f in inside
        )
        return max(1, sizes + flexible)
    if kind in FIXED:
        return FIXED[kind]
    return 1 if flexible else 2 if kind == "string" else 4
