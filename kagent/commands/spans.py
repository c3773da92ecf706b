"""Lengths of time as people write them: 90s, 3m, 2h, 1d."""

from __future__ import annotations

import re
from typing import Any

import click

UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


class Span(click.ParamType):
    """A length of time, in seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?\s*", str(value))
        if not found or float(found[1]) <= 0:
            self.fail(f"{value!r} is no length of time: 90s, 3m, 2h and 1d are.", param, ctx)
        return float(found[1]) * UNITS[found[2] or ""]


SPAN = Span()
