"""Values of the settings with a unit behind every length of time, as a person writes them: ``7d`` for 604800 seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kagent.duration_words import UNITS_S
from kagent.durations import to_text
from kagent.settings.schema_ways import inside, length_unit, of_its_type, resolved


def with_units(values: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The values, by the settings' JSON Schema."""
    found: dict[str, Any] = _shown(values, schema, schema.get("$defs", {}))
    return found


def _shown(value: Any, about: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    about = of_its_type(value, resolved(about, defs), defs)
    if isinstance(value, Mapping):
        return {name: _shown(inner, inside(about, name), defs) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shown(item, inside(about, 0), defs) for item in value]
    unit = length_unit(about)
    return to_text(value * UNITS_S[unit]) if unit and isinstance(value, int | float) else value
