"""Durations on the command line: 90s, 3m, 2h, 1d."""

from __future__ import annotations

from typing import Any

import click

from kagent.durations import meant, to_seconds


class Span(click.ParamType):
    """A duration greater than zero, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)  # a default
        try:
            seconds = to_seconds(value)
        except ValueError:
            seconds = 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is no duration: write 90s, 3m, 2h or 1d{meant(value) or '.'}", param, ctx)
        return seconds


SPAN = Span()
