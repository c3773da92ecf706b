"""How a wrong value was likely meant: by its own form, by what the sections beside it hold, or by the default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kagent.number_words import BEFORE, in_digits

NUMBER = r"[-+]?\d+(?:\.\d+)?"
MULTIPLES = {None: 1, "k": 1000, "M": 1_000_000}


def number_meant(text: str, whole: bool) -> str | None:
    """The number of a text with a decimal comma, commas between thousands, a sign before or a percent sign behind it, ``k`` or ``M``,
    of a fraction or ratio, or in words; None if it is none of these.

    >>> (
    ...     number_meant("1,5", False),
    ...     number_meant("150%", False),
    ...     number_meant("2,000,000", True),
    ...     number_meant("many", True),
    ...     number_meant("9100/tcp", True),
    ...     number_meant("20k", True),
    ...     number_meant("1/20", False),
    ...     number_meant(">= 2:1", False),
    ...     number_meant("twenty groups", True),
    ... )
    ('1.5', '1.5', '2000000', None, '9100', '20000', '0.05', '2', '20')
    """
    plain = re.sub(f"^{BEFORE}", "", _figures(text.strip()))
    plain = re.sub(r"(?<=\d)[_'](?=\d{3}(?!\d))", "", plain)
    around = re.fullmatch(rf"({NUMBER})\s*(?:x|([kM])|/[a-z]+|:1|\s[a-z ]+)?", plain)
    if around and (not whole or "." not in around[1]):
        return f"{float(around[1]) * MULTIPLES[around[2]]:.12g}"
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", plain):
        return plain.replace(",", "")
    if whole:
        return None
    if re.fullmatch(r"[-+]?\d+,\d+", plain):
        return plain.replace(",", ".")
    percent = re.fullmatch(rf"({NUMBER})\s*%", plain)
    return f"{float(percent[1]) / 100:g}" if percent else None


def _figures(text: str) -> str:
    """With figures for words; `M` stays a capital, as `m` is no million."""
    figures = in_digits(text)
    return text if figures == text.lower() else figures


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


def address_meant(text: str, problem: str) -> str | None:
    """The address with the scheme that the problem asks for, where all or a slash of it is missing.

    >>> (
    ...     address_meant("wiki.example/kagent", "must be an https:// URL"),
    ...     address_meant("rocksdb:/x", "rocksdb://"),
    ... )
    ('https://wiki.example/kagent', 'rocksdb:///x')
    """
    for scheme in re.findall(r"(\w+)://", problem):
        if text == scheme or (text.startswith(f"{scheme}:") and "://" not in text):
            return f"{scheme}://{text.removeprefix(scheme).removeprefix(':')}"
    is_host = re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?", text)
    return f"https://{text}" if is_host and "https://" in problem else None


def section_meant(value: Any, sections: Mapping[str, Iterable[str]]) -> str | None:
    """The one section that knows every name that ``value`` holds; ``sections``: each with its names."""
    if not isinstance(value, Mapping) or not value:
        return None
    fitting = [name for name, known in sections.items() if set(map(str, value)) <= set(known)]
    return fitting[0] if len(fitting) == 1 else None
