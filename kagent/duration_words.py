"""What people write for a duration that kagent takes in another form: ``1m30s``, ``half an hour``, ``8-16``, ``*/5 * * * *``."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import pairwise
from operator import gt

from kagent.number_words import BEFORE, in_digits

UNITS_S = {
    "ms": 0.001,
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
}
"""The units that kagent takes."""
SMALLER = {"d": "h", "h": "m", "m": "s", "s": "ms"}
WORDS = {
    **dict.fromkeys(("ms", "msec", "milli", "millisecond"), "ms"),
    **dict.fromkeys(("s", "sec", "second"), "s"),
    **dict.fromkeys(("m", "mn", "min", "minute"), "m"),
    **dict.fromkeys(("h", "hr", "hour"), "h"),
    **dict.fromkeys(("d", "day"), "d"),
    **dict.fromkeys(("w", "wk", "week"), "w"),
    **{word: word for word in ("fortnight", "month", "year")},
}
LENGTHS_S = UNITS_S | {"w": 604_800.0, "fortnight": 1_209_600.0, "month": 2_592_000.0, "year": 31_536_000.0}
"""Of a month thirty days: what is meant by one is a limit, not a date."""
EVERY_S = {"minutely": 60.0, "hourly": 3600.0, "daily": 86_400.0, "nightly": 86_400.0, "midnight": 86_400.0, "weekly": 604_800.0}  # fmt: skip
ISO = r"p(\d+d)?(?:t(\d+h)?(\d+m)?(\d+(?:\.\d+)?s)?)?"
"""A duration of ISO 8601, in lower case. Without its months and years, which are no length of time."""
ADDS = r"\s*(?:,|\+|&|and)?\s*"
RANGE = r"\s*(?:-|–|—|~|/|\.{2,3}|…|to|or|and|until)\s*"
TOKEN = r"(\d+(?:\.\d+)?)\s*((?!(?:to|or|and|until)\b)[a-z]+)?"
CRON = r"[\d*/,?-]+(?:\s+[\d*/,?a-z#-]+){4}"
CRON_UNITS_S = (60.0, 3600.0, 86_400.0)
"""Of a timetable's first three fields: minute, hour, day of the month."""


def meant_s(text: str, unit: str = "s") -> list[float]:
    """The seconds that this text may stand for, two where it is a range; none where that is not clear.

    ``unit``: of a number without one.

    >>> meant_s("half an hour"), meant_s("5 to 10 minutes"), meant_s("*/5 * * * *"), meant_s("5 apples")
    ([1800.0], [300.0, 600.0], [300.0], [])
    """
    low = text.strip().lower()
    return _of_a_clock(low) or _of_a_timetable(low) or _of_numbers(_plain(in_digits(low)), unit)


def _of_a_clock(text: str) -> list[float]:
    """``00:30:00``; ``10:00`` may be minutes or hours."""
    found = re.fullmatch(r"(\d+):(\d\d)(?::(\d\d))?", text)
    if not found:
        return []
    first, second = int(found[1]), int(found[2])
    if found[3] is not None:
        return [first * 3600.0 + second * 60 + int(found[3])]
    return [first * 60.0 + second, first * 3600.0 + second * 60]


def _of_a_timetable(text: str) -> list[float]:
    """How often a line of cron runs: by its first field that any value, or every n-th, fits, as all after it must.

    Its fields: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/crontab.html
    """
    if (word := text.removeprefix("@")) in EVERY_S:
        return [EVERY_S[word]]
    fields = text.split()[:3] if re.fullmatch(CRON, text) else []
    for field, length_s in zip(fields, CRON_UNITS_S, strict=False):
        if every := re.fullmatch(r"\*(?:/(\d+))?", field):
            return [length_s * int(every[1] or 1)]
    return []


def _of_numbers(text: str, unit: str) -> list[float]:
    """The sum of ``1h 30m``, both ends of ``5-10m``, or the one duration among words that are no numbers."""
    found = list(re.finditer(TOKEN, text))
    units = _units([(match[1], match[2]) for match in found], unit)
    if not units or None in units or len(found) > len(SMALLER):
        return []
    lengths_s = [float(match[1]) * LENGTHS_S[str(of)] for match, of in zip(found, units, strict=True)]
    sizes = [(LENGTHS_S[str(of)], length_s) for of, length_s in zip(units, lengths_s, strict=True)]
    gaps = [text[a.end() : b.start()] for a, b in pairwise(found)]
    if len(found) == 1 and (found[0][2] or found[0][0].strip() == text.strip()):
        return lengths_s
    if gaps and all(re.fullmatch(ADDS, gap) for gap in gaps) and all(map(gt, sizes, sizes[1:])):
        return [sum(lengths_s)]
    # Without any unit it must be the whole text: `8-16`, and not a date or a version.
    whole = any(match[2] for match in found) or re.fullmatch(rf"{TOKEN}{RANGE}{TOKEN}", text)
    return lengths_s if len(gaps) == 1 and whole and re.fullmatch(RANGE, gaps[0]) else []


def _units(parts: list[tuple[str, str | None]], plain: str) -> list[str | None]:
    """The unit of each number: its own; else that of the number behind it, as in ``5-10m``, or what follows the one before it, as in
    ``1h 30``. None where its word is no unit."""
    units: list[str | None] = []
    for at, (number, word) in enumerate(parts):
        behind = next((w for _, w in parts[at:] if w), None)
        if word or behind:
            units.append(_unit(str(word or behind)))
        elif units:
            # `an hour and a half`: a fraction is one of the same unit.
            units.append(units[-1] if float(number) < 1 else SMALLER.get(str(units[-1])))
        else:
            return [plain] * len(parts)
    return units


def _plain(text: str) -> str:
    """Without what divides thousands, with a decimal point, and without what stands before it or a full stop: ``1 000 ms``, ``1,5h``,
    ``≥ 10 s.``."""
    bare = re.sub(f"^{BEFORE}", "", text.strip().rstrip("."))
    joined = re.sub(r"(?<=\d)[\s_,'](?=\d{3}(?!\d))", "", bare)
    point = re.sub(r"(?<=\d),(?=\d)", ".", joined)
    iso = re.fullmatch(ISO, point)
    return "".join(filter(None, iso.groups())) if iso else point


def _unit(word: str) -> str | None:
    singular = word.removesuffix("s")
    if singular not in WORDS and word not in WORDS:
        # `minuets`: of words that are long enough for a slip.
        near = get_close_matches(singular, [each for each in WORDS if len(each) > 3], 1, 0.75)
        singular = near[0] if near else singular
    return WORDS.get(word) or WORDS.get(singular)
