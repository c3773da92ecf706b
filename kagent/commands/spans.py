"""Durations on the command line: 90s, 3m, 2h, 1d."""

from __future__ import annotations

from typing import Any

import click

from kagent.durations import meant, to_seconds, to_text


class Span(click.ParamType):
    """A duration greater than zero, in seconds. ``least``: the shortest that is taken, in seconds."""

    name = "duration"

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)  # a default
        try:
            seconds = to_seconds(value)
        except ValueError:
            seconds = 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is no duration: write 90s, 3m, 2h or 1d{meant(value) or '.'}", param, ctx)
        if seconds < self.least:
            self.fail(f"{value!r} is too short: it must be at least {to_text(self.least)}.", param, ctx)
        return seconds


SPAN = Span()
