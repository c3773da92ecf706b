"""Sections under a name that is nearly right: what they hold is checked as what the meant section holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kagent.settings.schema_ways import entry_kinds, inside, resolved
from kagent.settings.settings_file import SettingsFile, Where
from kagent.settings.unknown_names import suggestion

NAME = "NAME"
"""Stands for the name that a person has to choose for an entry."""


def with_meant_sections(file: SettingsFile, schema: Mapping[str, Any]) -> SettingsFile:
    """The file with sections under their right names, joined with what is there; the same file if all names are right.

    A section inside a renamed one keeps its name: it is found wrong there first. What an entry without a name holds gets one.
    """
    for where, meant in list(_wrong_names(file.values, schema, schema.get("$defs", {}), ())):
        file = file.renamed(where, meant)
    for where, to in list(nameless_entries(file.values, schema)):
        own = name_inside(file.written(where))
        file = file.moved_into(where, (*to, own or NAME), {"name"} if own else ())
    return file


def name_inside(entry: Any) -> str | None:
    """The name of an entry that has it in itself, as in ``{name: main, bootstrap: …}``; else None."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) and name else None


def nameless_entries(
    values: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[tuple[Where, tuple[str, ...]]]:
    """Ways to sections that hold what one of their entries should: ``destinations: {type: …}``, and ``alert: {type: …}``.

    With each, the way on to the place of entries: empty for the first, ``destinations`` for the second.
    """
    return _nameless(values, schema, schema.get("$defs", {}), ())


def _nameless(
    value: Any, at: Mapping[str, Any], defs: Mapping[str, Any], above: Where
) -> Iterator[tuple[Where, tuple[str, ...]]]:
    here = resolved(at, defs)
    if not isinstance(value, Mapping) or not value:
        return
    own = here.get("properties", {})
    # At the top a section's name is missing, or wrong, which has a mistake of its own.
    if above and not set(value) & set(own):
        for to, holder in (((), here), *(((name,), resolved(about, defs)) for name, about in own.items())):
            names = set(value) - ({"name"} if name_inside(value) else set())
            if names and any(names <= set(kind.get("properties", {})) for kind in entry_kinds(holder, defs)):
                yield above, to
                return
    for name, inner in value.items():
        yield from _nameless(inner, inside(here, name), defs, (*above, name))


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
