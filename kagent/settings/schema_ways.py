"""Ways through the JSON Schema of the settings: to a value that pydantic names, and to every setting there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kagent.settings.settings_file import Where


def ways_in(
    schema: Mapping[str, Any],
    at: Mapping[str, Any] | None = None,
    above: tuple[str, ...] = (),
) -> Iterator[tuple[str, ...]]:
    """The way to every setting that is known by name; a name of the person's own choice is empty."""
    here = resolved(schema if at is None else at, schema.get("$defs", {}))
    more = here.get("additionalProperties")
    for name, inner in here.get("properties", {}).items():
        yield (*above, name)
        yield from ways_in(schema, inner, (*above, name))
    if isinstance(more, Mapping):
        yield from ways_in(schema, more, (*above, ""))


def walk(schema: Mapping[str, Any], loc: Where) -> tuple[Where, Mapping[str, Any]]:
    """The way without pydantic's own steps (tags of unions, ``[key]``), and the schema around its last step."""
    defs = schema.get("$defs", {})
    at, around, where = resolved(schema, defs), schema, []
    for step in loc:
        # pydantic appends this where the key itself, not its value, is wrong.
        if step == "[key]":
            continue
        mapping = at.get("discriminator", {}).get("mapping", {})
        # A tagged union puts the tag into the way.
        if step in mapping:
            at = resolved({"$ref": mapping[step]}, defs)
            continue
        if _is_tag(step, at):
            continue
        around = at
        where.append(step)
        at = resolved(inside(at, step), defs)
    return tuple(where), around


def _is_tag(step: str | int, at: Mapping[str, Any]) -> bool:
    """Whether the step names the type of a union's member, not something the person wrote."""
    return (
        "anyOf" in at
        and "properties" not in at
        and isinstance(step, str)
        and "additionalProperties" not in at
    )


def entry_kinds(at: Mapping[str, Any], defs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas that an entry of this section may have, where its entries have names of the person's own choice."""
    entry = at.get("additionalProperties")
    if not isinstance(entry, Mapping):
        return []
    return [resolved(each, defs) for each in (entry, *entry.get("oneOf", ()))]


def inside(at: Mapping[str, Any], step: str | int) -> Mapping[str, Any]:
    if isinstance(step, int):
        found = at.get("items", {})
    else:
        found = at.get("properties", {}).get(step) or at.get("additionalProperties") or {}
    return found if isinstance(found, Mapping) else {}


def length_unit(about: Mapping[str, Any]) -> str:
    """What a plain number means in a setting that is a length of time: ``s`` or ``h``; empty for any other setting."""
    kinds = {each.get("description") for each in about.get("anyOf", ())}
    return "s" if "seconds" in kinds else "h" if "hours" in kinds else ""


def resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, where this only refers to it."""
    while "$ref" in schema:
        schema = defs[str(schema["$ref"]).rsplit("/", 1)[-1]]
    return schema


def of_its_type(value: Any, about: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of an alert destination, the schema of its type."""
    types = about.get("discriminator", {}).get("mapping", {})
    ref = types.get(value.get("type")) if types and isinstance(value, Mapping) else None
    return resolved({"$ref": ref}, defs) if ref else about


def schema_at(schema: Mapping[str, Any], where: Where, values: Any) -> Mapping[str, Any]:
    """The schema of what ``values`` have at this way; of an alert destination, that of its type."""
    defs = schema.get("$defs", {})
    at = resolved(schema, defs)
    for step in where:
        values = values.get(step) if isinstance(values, Mapping) else None
        at = of_its_type(values, resolved(inside(at, step), defs), defs)
    return at
