"""Durations as people write them: ``90s``, ``5m``, ``2h``, ``1d``, ``250ms``, or a plain number of seconds."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import Any

UNITS_S = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
WORDS = {
    **dict.fromkeys(("ms", "msec", "milli", "millisecond"), "ms"),
    **dict.fromkeys(("s", "sec", "second"), "s"),
    **dict.fromkeys(("m", "min", "minute"), "m"),
    **dict.fromkeys(("h", "hr", "hour"), "h"),
    **dict.fromkeys(("d", "day"), "d"),
}
WEEKS = ("w", "wk", "week")
PATTERN = r"^\s*\d+(\.\d+)?\s*(ms|s|m|min|h|d)?\s*$"
PART = r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*"
BEFORE = r"(?:[<>=≥≤~≈:]+|\b(?:every|about|at least|at most)\b)\s*"
"""What people write before a limit: ``≥ 60s``, ``every 5s``."""
ISO = r"p(\d+d)?(?:t(\d+h)?(\d+m)?(\d+(?:\.\d+)?s)?)?"
"""A duration of ISO 8601, in lower case. Without its months and years, which are no length of time."""
EXPECTED = "a duration such as 250ms, 90s, 5m, 2h or 1d"


def to_seconds(value: Any) -> float:
    """Seconds. A number is seconds already. Raises ValueError for anything that is no duration, and for infinity."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
        raise ValueError(f"must be {EXPECTED}, not {value}")
    found = re.match(PATTERN, value) if isinstance(value, str) else None
    if found is None:
        try:
            return float(value) if isinstance(value, str) else _refuse(value)  # "-5": the limits refuse it
        except ValueError:
            return _refuse(value)
    unit = (found[2] or "").strip()
    return float(value.strip().removesuffix(unit)) * UNITS_S[unit]


def _refuse(value: Any) -> float:
    if value is None:
        raise ValueError(f"must be {EXPECTED}, and is empty")
    near = _meant(value) if isinstance(value, str) else None
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    raise ValueError(f"must be {EXPECTED}, not {shown}{f'; did you mean {near}?' if near else ''}")


def _meant(text: str) -> str | None:
    """The duration as kagent takes it, where numbers and units are written in another way: ``1m30s``, ``2 weeks``, ``00:30:00``."""
    clock = re.fullmatch(r"\s*(\d+):(\d\d):(\d\d)\s*", text)
    if clock:
        return to_text(
            sum(int(part) * unit for part, unit in zip(clock.groups(), (3600, 60, 1), strict=True))
        )
    plain = _plain(text)
    if iso := re.fullmatch(ISO, plain):
        plain = "".join(filter(None, iso.groups()))
    if plain != text and re.match(PATTERN, plain):
        return "".join(plain.split())
    parts = [(number, _unit(word)) for number, word in re.findall(PART, plain)]
    if not re.fullmatch(f"(?:{PART})+", plain) or any(unit is None for _, unit in parts):
        return None
    if len(parts) == 1 and parts[0][1] != "w":
        return "".join(map(str, parts[0]))
    return to_text(sum(float(number) * (UNITS_S | {"w": 604_800.0})[str(unit)] for number, unit in parts))


def _plain(text: str) -> str:
    """Without what divides thousands, with a decimal point, and without what stands before it or a full stop: ``1 000 ms``, ``1,5h``,
    ``≥ 10 s.``."""
    bare = re.sub(f"^{BEFORE}", "", text.lower().strip().rstrip("."))
    joined = re.sub(r"(?<=\d)[\s_,'](?=\d{3}(?!\d))", "", bare)
    return re.sub(r"(?<=\d),(?=\d)", ".", joined)


def _unit(word: str) -> str | None:
    singular = word.removesuffix("s")
    if singular not in WEEKS and singular not in WORDS and word not in WORDS:
        # `minuets`: of words that are long enough for a slip.
        near = get_close_matches(singular, [each for each in (*WORDS, *WEEKS) if len(each) > 3], 1, 0.75)
        singular = near[0] if near else singular
    return "w" if singular in WEEKS else WORDS.get(word) or WORDS.get(singular)


def to_hours(value: Any) -> float:
    """Hours. A number is hours already, a text with a unit is converted. Raises ValueError as :func:`to_seconds`."""
    plain = isinstance(value, int | float) or (isinstance(value, str) and value.strip()[-1:].isdigit())
    return to_seconds(value) / (1 if plain else 3600)


def to_text(seconds: float) -> str:
    """The duration in the greatest unit that divides it: ``5m`` for 300.

    >>> to_text(300.0), to_text(90.0), to_text(0.25), to_text(0.0)
    ('5m', '90s', '250ms', '0s')
    """
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % UNITS_S[unit] == 0:
            return f"{seconds / UNITS_S[unit]:.0f}{unit}"
    return "0s" if not seconds else f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"
