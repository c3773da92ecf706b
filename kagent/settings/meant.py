"""How a wrong value was likely meant: by its own form, by what the sections beside it hold, or by the default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kagent.duration_words import UNITS_S, meant_s
from kagent.durations import to_text
from kagent.number_words import BEFORE, in_digits
from kagent.settings.schema_ways import length_unit

NUMBER = r"[-+]?\d+(?:\.\d+)?"
PERCENT = r"(?:%|percent|per cent|pct)"
GREATEST_PORT = 65535
FAR = 250
"""From the default by this factor, a length is likely in another unit. Above 60: who tries things out writes seconds for minutes."""
MULTIPLES = {None: 1, "k": 1000, "M": 1_000_000}


def number_meant(text: str, whole: bool) -> str | None:
    """The number of a text in sixteens, with a decimal comma, commas between thousands, a sign before or a percent sign behind it, ``k`` or ``M``,
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
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text.strip()):
        return str(int(text, 16))
    plain = re.sub(f"^{BEFORE}", "", _figures(text.strip()))
    plain = re.sub(r"(?<=\d)[_'](?=\d{3}(?!\d))", "", plain)
    percent = re.fullmatch(rf"({NUMBER})\s*{PERCENT}", plain)
    if percent and not whole:
        return f"{float(percent[1]) / 100:g}"
    around = re.fullmatch(rf"({NUMBER})\s*(?:x|([kM])|/[a-z]+|:1|\s[a-z ]+)?", plain)
    if around and (not whole or "." not in around[1]):
        return f"{float(around[1]) * MULTIPLES[around[2]]:.12g}"
    if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+", plain):
        return plain.replace(",", "")
    if whole:
        return None
    if re.fullmatch(r"[-+]?\d+,\d+", plain):
        return plain.replace(",", ".")
    return None


def numbers_meant(value: Any, about: Mapping[str, Any], whole: bool) -> list[str]:
    """The numbers that a value may stand for and the setting takes: of a share also the percentage, of a text what stands in it.

    ``about``: the setting's schema.

    >>> share = {"type": "number", "exclusiveMaximum": 1, "minimum": 0}
    >>> port = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "null"}]}
    >>> (
    ...     numbers_meant(15, share, False),
    ...     numbers_meant("localhost:9100", port, True),
    ...     numbers_meant("7, 8", port, True),
    ... )
    (['0.15'], ['9100'], ['7', '8'])
    """
    text = str(value)
    limits = about.get("anyOf", [about])[0]
    # The number of a port is not written in words: `six` is a slip of another kind.
    if limits.get("maximum") == GREATEST_PORT and not re.search(r"\d", text):
        return []
    number = number_meant(text, whole)
    found = [number] if number else re.findall(r"(?<![\w.])\d+(?![\w.])", text)
    is_share = 1 in (limits.get("maximum"), limits.get("exclusiveMaximum"))
    if is_share and number and not _fits(float(number), limits):
        found = [f"{float(number) / 100:g}"]
    return [each for each in found if _fits(float(each), limits)]


def duration_meant(text: str, about: Mapping[str, Any]) -> str:
    """``; did you mean 30m?``, of what the setting takes, or which of its limits all that may be meant is beyond; empty where that is
    not clear. ``about``: the setting's schema.

    >>> length = {"type": "number", "exclusiveMinimum": 0, "maximum": 3600, "description": "seconds"}
    >>> [duration_meant(text, {"anyOf": [length]}) for text in ("half an hour", "00:30", "1 month", "soon")]
    ['; did you mean 30m?', '; did you mean 30s or 30m?', '; it may be at most 1h', '']
    """
    unit = length_unit(about)
    unit_s, limits = UNITS_S[unit], about["anyOf"][0]
    lengths_s = meant_s(text, unit)
    if near := [to_text(length_s) for length_s in lengths_s if _fits(length_s / unit_s, limits)]:
        return f"; did you mean {' or '.join(near)}?"
    return f"; it may be {_limit(limits, lengths_s[0] / unit_s, unit_s)}" if lengths_s else ""


def unit_meant(number: float, about: Mapping[str, Any]) -> str | None:
    """The length of a number without a unit that was likely written in a smaller unit than the setting has: a thousandfold number of
    milliseconds that is at least one of its units, or whole hours in seconds where it has hours; else None.

    >>> seconds = {"anyOf": [{"type": "number", "minimum": 0, "description": "seconds"}]}
    >>> hours = {"anyOf": [{"type": "number", "minimum": 1, "description": "hours"}]}
    >>> [unit_meant(number, seconds) for number in (30000, 36000, 300, 1500)], unit_meant(86400, hours)
    (['30s', None, None, None], '1d')
    """
    unit_s, limits = UNITS_S[length_unit(about)], about["anyOf"][0]
    # 18000 and the like are the hours of a day in seconds.
    is_hours = number % 3600 == 0 and number * unit_s <= UNITS_S["d"]
    if number % 1000 == 0 and number / 1000 >= unit_s and not is_hours:
        length_s = number / 1000
    elif number and number % 3600 == 0 and unit_s == UNITS_S["h"]:
        length_s = number
    else:
        return None
    return to_text(length_s) if _fits(length_s / unit_s, limits) else None


def far_unit_meant(number: float, about: Mapping[str, Any]) -> str | None:
    """The length of a number without a unit that is far from the default, and near it in another unit; else None.

    >>> length = {"type": "number", "minimum": 0, "description": "seconds"}
    >>> hour = {"anyOf": [length], "default": 3600}
    >>> [far_unit_meant(number, hour) for number in (1, 60, 3_000_000, 3_000, 40)]
    ['1h', None, '50m', None, None]
    """
    default, unit_s = about.get("default"), UNITS_S[length_unit(about)]
    if not number > 0 or not default or 1 / FAR < number / default < FAR:
        return None
    near = [
        number * each for each in (0.001, *UNITS_S.values()) if 0.5 <= number * each / (default * unit_s) <= 2
    ]
    return to_text(near[0]) if near and _fits(near[0] / unit_s, about["anyOf"][0]) else None


def _limit(limits: Mapping[str, Any], number: float, unit_s: float) -> str:
    """The limit that this number is beyond, as a duration."""
    words = {
        "maximum": "at most",
        "exclusiveMaximum": "below",
        "minimum": "at least",
        "exclusiveMinimum": "above",
    }
    beyond = next(name for name in words if name in limits and not _fits(number, {name: limits[name]}))
    return f"{words[beyond]} {to_text(limits[beyond] * unit_s)}"


def _fits(number: float, limits: Mapping[str, Any]) -> bool:
    """Whether a number is within the limits of this schema."""
    within: bool = limits.get("minimum", number) <= number <= limits.get("maximum", number)
    above, below = limits.get("exclusiveMinimum"), limits.get("exclusiveMaximum")
    return within and (above is None or number > above) and (below is None or number < below)


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
        length = to_text(default * UNITS_S[unit.strip()]) if unit else f"{default:.12g}"
        return f"; the default is {length}"
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
            rest = text.removeprefix(scheme).removeprefix(":")
            return f"{scheme}://{rest if rest.strip('/') else ''}"
    if "https://" not in problem:
        return None
    # `[wiki](https://…)`, `<https://…>`
    if within := re.search(r"https?://[^\s()<>\[\]]+", text):
        return within[0]
    is_host = re.fullmatch(r"[\w-]+((\.[\w-]+)+(:\d+)?|:\d+)(/\S*)?", text)
    return f"https://{text}" if is_host else None


def section_meant(value: Any, sections: Mapping[str, Iterable[str]]) -> str | None:
    """The one section that knows every name that ``value`` holds; ``sections``: each with its names."""
    if not isinstance(value, Mapping) or not value:
        return None
    fitting = [name for name, known in sections.items() if set(map(str, value)) <= set(known)]
    return fitting[0] if len(fitting) == 1 else None
