"""The record types as a page of Markdown, written from the same declarations that decode them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kagent.offsets.record_layout import NEWEST, Array, Field, Struct, Type
from kagent.offsets.schemas import RECORDS, RecordLayout

START = "<!-- python -m kagent.offsets.record_types_page -->\n"
"""What follows this line of the document is written from here."""


def rewrite(document: Path) -> None:
    """Write the page anew into this document, after its START line."""
    before, _, _ = document.read_text(encoding="utf-8").partition(START)
    document.write_text(before + START + page(), encoding="utf-8")


def page() -> str:
    """All record types: a table of them, then each one's fields."""
    return "\n".join([*_overview(), "", *(line for kind in RECORDS for line in _section(kind))]) + "\n"


def _overview() -> Iterator[str]:
    yield "| type | name | key | value versions | flexible from | written since |"
    yield "|---|---|---|---|---|---|"
    for kind, layout in RECORDS.items():
        key = ", ".join(f"{field.name} {_type(field.type)}" for field in layout.key)
        versions = f"{layout.versions[0]}–{layout.versions[-1]}" if len(layout.versions) > 1 else "0"
        flexible = "–" if layout.flexible is None else str(layout.flexible)
        yield f"| {kind} | {layout.name} | {key} | {versions} | {flexible} | {layout.since} |"


def _section(kind: int) -> Iterator[str]:
    layout: RecordLayout = RECORDS[kind]
    yield f"### {kind} {layout.name}"
    yield ""
    yield "```"
    yield from _fields(layout.value, 0)
    for earlier in layout.earlier:
        yield "early access, under the same version:"
        yield from _fields(earlier, 1)
    yield "```"
    yield ""


def _fields(fields: Struct, depth: int) -> Iterator[str]:
    for field in fields:
        yield "  " * depth + f"{field.name}: {_type(field.type)}{_notes(field)}"
        inner = field.type.of if isinstance(field.type, Array) else field.type
        if isinstance(inner, tuple):
            yield from _fields(inner, depth + 1)


def _type(kind: Type) -> str:
    if isinstance(kind, Array):
        return f"[]{_type(kind.of)}"
    return kind if isinstance(kind, str) else "struct"


def _notes(field: Field) -> str:
    notes = ["nullable"] if field.nullable else []
    if field.until != NEWEST:
        notes.append(
            f"version {field.since}"
            if field.since == field.until
            else f"versions {field.since}–{field.until}"
        )
    elif field.since:
        notes.append(f"version {field.since} on")
    if field.tag is not None:
        default = "empty" if isinstance(field.default, list | dict) else field.default
        notes.append(f"tag {field.tag}, {default} if absent")
    return f" ({'; '.join(notes)})" if notes else ""


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
