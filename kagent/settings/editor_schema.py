"""The JSON Schema of the settings for editors: it also takes what YAML reads as a text and kagent as a number, or as true or false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

QUOTED: Mapping[str, str] = {
    "integer": r"^\s*[-+]?[0-9][0-9_]*\s*$",
    "number": r"^\s*[-+]?([0-9][0-9_]*)?\.?[0-9]+([eE][-+]?[0-9]+)?\s*$",
    # YAML 1.1 reads these as true and false, YAML 1.2 as texts.
    "boolean": "^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$",
}
"""JSON Schema's type → texts that kagent reads as it."""


def with_quoted(schema: Any) -> Any:
    """The schema, which takes such texts too wherever a number or true or false belongs.

    >>> with_quoted({"type": "integer", "minimum": 1, "default": 8})["anyOf"][0]
    {'type': 'integer', 'minimum': 1}
    """
    if isinstance(schema, list):
        return [with_quoted(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind = schema.get("type")
    if isinstance(kind, str) and kind in QUOTED:
        return _either(schema, kind)
    # A length of time has its texts already.
    if any(each.get("type") == "string" for each in schema.get("anyOf", ())):
        return dict(schema)
    return {name: inner if name == "default" else with_quoted(inner) for name, inner in schema.items()}


def _either(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """``schema`` or its text; default, description, examples and title stay outside, where editors look for them."""
    about = {name: schema[name] for name in ("default", "description", "examples", "title") if name in schema}
    own = {name: value for name, value in schema.items() if name not in about}
    return {"anyOf": [own, {"type": "string", "pattern": QUOTED[kind]}], **about}
