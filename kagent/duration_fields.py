"""Durations as fields of the settings. Apart from :mod:`kagent.durations`, as command lines have durations and need no pydantic."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from kagent.durations import PATTERN, to_hours, to_seconds


def _schema(what: str) -> WithJsonSchema:
    text = {"type": "string", "pattern": PATTERN}
    return WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "description": what}, text]})


Seconds = Annotated[float, BeforeValidator(to_seconds), _schema("seconds")]
Hours = Annotated[float, BeforeValidator(to_hours), _schema("hours")]
WholeHours = Annotated[int, BeforeValidator(to_hours), _schema("hours")]
