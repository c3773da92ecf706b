"""Numbers as people write them in words: ``half an``, ``twenty-five``, ``three quarters of a``."""

from __future__ import annotations

import math
import re

SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
FACTORS = {
    "a": 1.0, "an": 1.0, "single": 1.0, "half": 0.5, "quarter": 0.25, "quarters": 0.25, "couple": 2.0, "dozen": 12.0,
    "hundred": 100.0, "thousand": 1000.0, "million": 1_000_000.0,
}  # fmt: skip
VALUES = {
    **{word: float(value) for value, word in enumerate(SMALL)},
    **{word: 10.0 * tens for tens, word in enumerate(TENS, start=2)},
    **FACTORS,
}
BEFORE = r"(?:[<>=≥≤~≈:@]+|\b(?:every|each|about|around|at least|at most)\b)\s*"
"""What people write before a limit: ``≥ 60s``, ``every 5s``."""
_FRACTION = r"(?<![\d/.])(\d{1,3})\s*/\s*([1-9]\d{0,2})(?![\d/.])"
_WORD = rf"(?:{'|'.join(sorted(VALUES, key=len, reverse=True))})"
_RUN = rf"\b{_WORD}(?:[\s-]+(?:of\s+)?{_WORD})*\b"


def in_digits(text: str) -> str:
    """The text, in lower case, with its number words as digits and its fractions as decimal numbers.

    >>> (
    ...     in_digits("half an hour"),
    ...     in_digits("twenty-five groups"),
    ...     in_digits("two and a half days"),
    ...     in_digits("1/20"),
    ... )
    ('0.5 hour', '25 groups', '2.5 days', '0.05')
    """
    digits = re.sub(_RUN, lambda run: f"{_value(run[0]):.12g}", text.lower())
    digits = re.sub(_FRACTION, lambda of: f"{int(of[1]) / int(of[2]):.3g}", digits)
    return re.sub(r"\b(\d+)\s+and\s+0(\.\d+)", r"\1\2", digits)


def _value(run: str) -> float:
    """Numbers side by side multiply, as in `half an` and `two hundred`; ones behind tens add, as in `twenty-five`."""
    words = re.findall(rf"\b{_WORD}\b", run)
    factors = [VALUES[word] for word in words]
    for at in range(len(words) - 1, 0, -1):
        if words[at - 1] in TENS and words[at] in SMALL:
            factors[at - 1 : at + 1] = [factors[at - 1] + factors[at]]
    return math.prod(factors)
