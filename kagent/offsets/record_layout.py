"""How a record's layout is written down, and how that becomes a function that reads bytes by it.

A struct is a tuple of fields in wire order; tagged ones may stand anywhere. A field's type is a primitive's name,
:class:`Array` of a type, or a struct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kagent.offsets.reader import ByteReader, DecodeError

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
    default: Any = field(default=None, hash=False)


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


Read = Callable[[ByteReader], Any]


@cache
def compiled(fields: Struct, version: int, flexible: bool) -> Callable[[ByteReader], dict[str, Any]]:
    """The function that reads one version of a struct. It raises DecodeError and nothing else."""
    present = [field for field in fields if field.since <= version <= field.until]
    plain = [(f.name, _reader(f, version, flexible)) for f in present if f.tag is None]
    tagged = {f.tag: (f.name, _reader(f, version, flexible)) for f in present if f.tag is not None}
    defaults = [(f.name, f.default) for f in present if f.tag is not None]

    def read(reader: ByteReader) -> dict[str, Any]:
        value: dict[str, Any] = {}
        name = ""
        try:
            for name, part in plain:
                value[name] = part(reader)
        except DecodeError as error:
            raise error.within(name) from None
        if flexible:
            # An absent tag means the default, so the value has every field whatever the writer left out.
            for name, default in defaults:
                value[name] = _copy(default)
            _tags(reader, tagged, value)
        return value

    return read


def _copy(default: Any) -> Any:
    if isinstance(default, list):
        return []
    return {name: _copy(part) for name, part in default.items()} if isinstance(default, dict) else default


def _tags(reader: ByteReader, tagged: Mapping[int, tuple[str, Read]], value: dict[str, Any]) -> None:
    count = reader.uvarint()
    # Each tagged field takes two bytes at least: a damaged count must not make us loop for it.
    if count * 2 > reader.left:
        raise reader.fail(f"{count} tagged fields in {reader.left} bytes")
    for _ in range(count):
        tag, size = reader.uvarint(), reader.uvarint()
        inner = reader.inside(size)
        # An unknown tag is skipped: flexible versions allow new tags without a new version (KIP-482).
        # https://cwiki.apache.org/confluence/display/KAFKA/KIP-482%3A+The+Kafka+Protocol+should+Support+Optional+Tagged+Fields
        if tag in tagged:
            name, part = tagged[tag]
            try:
                value[name] = part(inner)
                inner.done()
            except DecodeError as error:
                raise error.within(name) from None


def _reader(field: Field, version: int, flexible: bool) -> Read:
    kind = field.type
    if isinstance(kind, Array):
        return _sized(_length(kind, flexible), _items(kind.of, version, flexible), field.nullable)
    if isinstance(kind, tuple):
        inner = compiled(kind, version, flexible)
        return _present(inner, field.tag is not None) if field.nullable else inner
    return _primitive(kind, flexible, field.nullable)


def _primitive(kind: str, flexible: bool, nullable: bool) -> Read:
    if kind in FIXED:
        method: Read = getattr(ByteReader, kind)
        return method
    return _sized(
        _length(kind, flexible), ByteReader.string if kind == "string" else ByteReader.hex, nullable
    )


def _length(kind: Type, flexible: bool) -> Callable[[ByteReader], int]:
    if flexible:
        return ByteReader.compact
    return ByteReader.length16 if kind == "string" else ByteReader.length32


def _sized(
    length: Callable[[ByteReader], int], content: Callable[[ByteReader, int], Any], nullable: bool
) -> Read:
    def read(reader: ByteReader) -> Any:
        size = length(reader)
        if size >= 0:
            return content(reader, size)
        if nullable:
            return None
        raise reader.fail("null where a value must be")

    return read


def _present(inner: Read, in_tag: bool) -> Read:
    """A nullable struct, after its marker: a byte, or a uvarint inside a tag."""
    marker = ByteReader.compact if in_tag else ByteReader.int8
    return lambda reader: inner(reader) if marker(reader) >= 0 else None


def _items(of: Type, version: int, flexible: bool) -> Callable[[ByteReader, int], list[Any]]:
    size = least(of, version, flexible)
    # Partition lists have thousands of numbers: one struct call for all of them, not one read per element.
    code = {"int16": "h", "int32": "i"}.get(of) if isinstance(of, str) else None
    one = _reader(Field("element", of), version, flexible)

    def read(reader: ByteReader, count: int) -> list[Any]:
        # Checked before anything is allocated: a damaged length can claim two billion elements.
        if count * size > reader.left:
            raise reader.fail(f"{count} elements in {reader.left} bytes")
        if code:
            return reader.numbers(code, size, count)
        items: list[Any] = []
        try:
            for _ in range(count):
                items.append(one(reader))
        except DecodeError as error:
            raise error.within(f"[{len(items)}]") from None
        return items

    return read


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
        # A flexible struct ends with its tag count. At least 1: a claimed count of structs without fields would cost no bytes.
        return max(1, sizes + flexible)
    if kind in FIXED:
        return FIXED[kind]
    return 1 if flexible else 2 if kind == "string" else 4
