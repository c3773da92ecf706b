"""A right value for any setting, made from its schema: what an error shows where it cannot tell what was meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kagent.duration_words import UNITS_S
from kagent.durations import to_text
from kagent.group_pattern import FORMAT
from kagent.settings.schema_ways import length_unit, resolved

NAME = "name"
"""In place of a name of the person's own choice."""
BY_TYPE = {
    "boolean": "true",
    "integer": "1",
    "number": "1",
    "path": "/path/to/file",
    FORMAT: "'orders-*'",
    "string": "'…'",
}
"""JSON Schema's type, or the format of a text → such a value."""
DEEPEST = 3
"""Sections within sections that an example shows: below, an ellipsis says enough."""


def right_value(about: Mapping[str, Any], defs: Mapping[str, Any], depth: int = 0) -> str:
    """How a value of this schema looks in YAML, on one line.

    >>> right_value({"type": "array", "items": {"enum": ["host", "client_id"]}}, {})
    '[host]'
    >>> right_value({"additionalProperties": {"type": "string"}, "type": "object"}, {})
    "{name: '…'}"
    """
    here = resolved(about, defs)
    if (known := _given(here)) is not None:
        return known
    if depth == DEEPEST:
        return "…"
    if "anyOf" in here or "oneOf" in here:
        # The first is the usual one, and null is last.
        return right_value((here.get("anyOf") or here["oneOf"])[0], defs, depth)
    if here.get("type") == "array":
        return f"[{right_value(here.get('items', {}), defs, depth + 1)}]"
    kind = str(here.get("format", here.get("type")))
    return _section(here, defs, depth) or BY_TYPE.get(kind, BY_TYPE["string"])


def _given(here: Mapping[str, Any]) -> str | None:
    """What the schema itself names: an example, a default, one of a few words."""
    default = here.get("default")
    for value in (*here.get("examples", ())[:1], default, *here.get("enum", ())[:1], here.get("const")):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float) and (unit := length_unit(here)):
            return to_text(value * UNITS_S[unit])
        if isinstance(value, int | float | str) and value != "":
            return f"{value:.12g}" if isinstance(value, float) else _written(str(value))
    return None


def _written(text: str) -> str:
    """The text as a file may hold it: in quotes where YAML would read something else."""
    return repr(text) if text[:1] in "*&!%@`[{" else text


def _section(here: Mapping[str, Any], defs: Mapping[str, Any], depth: int) -> str | None:
    """The needed names of a section, else its first; for names of one's own choice, an entry."""
    known = here.get("properties", {})
    names = here.get("required") or list(known)[:1]
    if known:
        held = ", ".join(f"{name}: {right_value(known[name], defs, depth + 1)}" for name in names)
        return f"{{{held}}}"
    entry = here.get("additionalProperties")
    if not isinstance(entry, Mapping):
        return None
    own = resolved(here.get("propertyNames", {}), defs).get("enum", [NAME])[-1]
    return f"{{{own}: {right_value(entry, defs, depth + 1)}}}"
