"""Durations as fields of the settings. Apart from :mod:`kagent.durations`, as command lines have durations and need no pydantic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kagent.durations import PATTERN, to_hours, to_seconds

LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


@dataclass(frozen=True, slots=True)
class _Length:
    """The JSON Schema of a duration: a number within the field's own limits, or a text with a unit."""

    unit: str

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        limits = {name: limit for name, limit in handler(core).items() if name in LIMITS}
        number = {"type": "number", **limits, "description": self.unit}
        return {"anyOf": [number, {"type": "string", "pattern": PATTERN}]}


Seconds = Annotated[float, BeforeValidator(to_seconds), _Length("seconds")]
Hours = Annotated[float, BeforeValidator(to_hours), _Length("hours")]
WholeHours = Annotated[int, BeforeValidator(to_hours), _Length("hours")]
