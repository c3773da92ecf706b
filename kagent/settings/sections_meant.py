"""Sections under a name that is nearly right: what they hold is checked as what the meant section holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kagent.settings.schema_ways import inside, resolved
from kagent.settings.settings_file import SettingsFile, Where
from kagent.settings.unknown_names import suggestion


def with_meant_sections(file: SettingsFile, schema: Mapping[str, Any]) -> SettingsFile:
    """The file with sections under their right names, joined with what is there; the same file if all names are right.

    A section inside a renamed one keeps its name: it is found wrong there first.
    """
    for where, meant in list(_wrong_names(file.values, schema, schema.get("$defs", {}), ())):
        file = file.renamed(where, meant)
    return file


def _wrong_names(
    value: Any, at: Mapping[str, Any], defs: Mapping[str, Any], above: Where
) -> Iterator[tuple[Where, str]]:
    here = resolved(at, defs)
    entries: Any = value.items() if isinstance(value, dict) else ()
    entries = enumerate(value) if isinstance(value, list) else entries
    for step, inner in entries:
        meant = None if inside(here, step) else _meant(step, inner, here, defs, value)
        if meant is not None:
            yield (*above, step), meant
        else:
            yield from _wrong_names(inner, inside(here, step), defs, (*above, step))


def _meant(name: Any, value: Any, at: Mapping[str, Any], defs: Mapping[str, Any], beside: Any) -> str | None:
    if not isinstance(value, dict | list) or not value or not isinstance(beside, dict):
        return None
    meant = suggestion(str(name), at.get("properties", ()))
    fits = meant is not None and _is_section(inside(at, meant), defs)
    return meant if fits and isinstance(beside.get(meant, value), type(value)) else None


def _is_section(about: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    return not {"properties", "additionalProperties", "items"}.isdisjoint(resolved(about, defs))
