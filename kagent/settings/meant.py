"""How a wrong value was likely meant: by its own form, by what the sections beside it hold, or by the default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

NUMBER = r"[-+]?\d+(?:\.\d+)?"


def number_meant(text: str, whole: bool) -> str | None:
    """The number of a text with a decimal comma, commas between thousands, or a percent sign; None if it is none of these.

    >>> (
    ...     number_meant("1,5", False),
    ...     number_meant("150%", False),
    ...     number_meant("2,000,000", True),
    ...     number_meant("ten", True),
    ... )
    ('1.5', '1.5', '2000000', None)
    """
    plain = text.strip()
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", plain):
        return plain.replace(",", "")
    if whole:
        return None
    if re.fullmatch(r"[-+]?\d+,\d+", plain):
        return plain.replace(",", ".")
    percent = re.fullmatch(rf"({NUMBER})\s*%", plain)
    return f"{float(percent[1]) / 100:g}" if percent else None


def default_of(about: Mapping[str, Any], unit: str = "") -> str:
    """``; the default is 1.5``, of a setting whose schema has one that says something; else empty."""
    default = about.get("default")
    if isinstance(default, bool):
        return f"; the default is {str(default).lower()}"
    if isinstance(default, int | float):
        return f"; the default is {default:.12g}{unit}"
    if isinstance(default, str) and default:
        return f"; the default is {default}"
    return "; it may be left out" if default is None and "default" in about else ""


def section_meant(value: Any, sections: Mapping[str, Iterable[str]]) -> str | None:
    """The one section that knows every name that ``value`` holds; ``sections``: each with its names."""
    if not isinstance(value, Mapping) or not value:
        return None
    fitting = [name for name, known in sections.items() if set(map(str, value)) <= set(known)]
    return fitting[0] if len(fitting) == 1 else None
