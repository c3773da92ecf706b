"""Durations as people write them: ``90s``, ``5m``, ``2h``, ``1d``, ``250ms``, or a plain number of seconds."""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any

from kagent.duration_words import UNITS_S, meant_s

PATTERN = rf"^\s*\d+(\.\d+)?\s*({'|'.join(filter(None, UNITS_S))})?\s*$"
EXPECTED = "a duration such as 250ms, 90s, 5m, 2h or 1d"


def to_seconds(value: Any, unit: str = "s") -> float:
    """Seconds. A number is seconds already. Raises ValueError for anything that is no duration, and for infinity.

    ``unit``: what a number without one means in the suggestion of that error.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
        raise ValueError(f"must be {EXPECTED}, not {value}")
    found = re.match(PATTERN, value) if isinstance(value, str) else None
    if found is None:
        try:
            # "-5": the limits refuse it
            return float(value) if isinstance(value, str) else _refuse(value, unit)
        except ValueError:
            return _refuse(value, unit)
    written = (found[2] or "").strip()
    return float(value.strip().removesuffix(written)) * UNITS_S[written]


def _refuse(value: Any, unit: str) -> float:
    if value is None:
        raise ValueError(f"must be {EXPECTED}, and is empty")
    # YAML reads `2026-01-01` as a date, whose repr is Python's.
    shown = str(value).lower() if isinstance(value, bool | date) else repr(value)
    raise ValueError(f"must be {EXPECTED}, not {shown}{meant(value, unit) if isinstance(value, str) else ''}")


def meant(text: str, unit: str = "s") -> str:
    """``; did you mean 30m?``, to be put behind a sentence about this text; empty where that is not clear."""
    near = " or ".join(map(to_text, meant_s(text, unit)))
    return f"; did you mean {near}?" if near else ""


def to_hours(value: Any) -> float:
    """Hours. A number is hours already, a text with a unit is converted. Raises ValueError as :func:`to_seconds`."""
    plain = isinstance(value, int | float) or (isinstance(value, str) and value.strip()[-1:].isdigit())
    return to_seconds(value, "h") / (1 if plain else 3600)


def to_text(seconds: float) -> str:
    """The duration in the greatest unit that divides it: ``5m`` for 300.

    >>> to_text(300.0), to_text(90.0), to_text(0.25), to_text(0.0)
    ('5m', '90s', '250ms', '0s')
    """
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % UNITS_S[unit] == 0:
            return f"{seconds / UNITS_S[unit]:.0f}{unit}"
    return "0s" if not seconds else f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"
