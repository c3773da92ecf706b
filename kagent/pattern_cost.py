"""Whether a regular expression that somebody else wrote may be tried on names that somebody else chose: in time that is bounded. Pure.

Python's engine backtracks: ``(a+)+`` takes twice as long for each further letter, and nothing can stop it meanwhile
(https://swtch.com/~rsc/regexp/regexp1.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MOST_CHOICES = 10
"""Repetitions and alternatives in one expression."""
MOST_LOOPS = 3
"""Repetitions without a small bound: the time grows with the name's length to this power."""
SMALL = 10
LONGEST_NAME = 500
"""Characters of a name that such an expression is tried on."""


@lru_cache(maxsize=1024)
def affordable(expression: str) -> bool:
    """Whether trying this expression on LONGEST_NAME characters takes no more than a moment; false too for what is none."""
    try:
        choices = list(_choices(parser.parse(expression), within=False))
    except (re.error, RecursionError, OverflowError):
        return False
    # None: a choice within a loop, which is what makes the time grow without bound.
    return len(choices) <= MOST_CHOICES and None not in choices and sum(map(bool, choices)) <= MOST_LOOPS


def _choices(tree: Any, within: bool) -> Iterator[bool | None]:
    """For each repetition and alternative whether it is a loop; None where it stands within one."""
    for code, argument in tree:
        repeats = code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
        loop = repeats and argument[1] > SMALL
        if repeats or code in (codes.BRANCH, codes.GROUPREF, codes.GROUPREF_EXISTS):
            yield None if within else loop
        for inner in _trees(argument):
            yield from _choices(inner, within or loop)


def _trees(argument: Any) -> Iterator[Any]:
    """The parts of an expression that this part of one holds."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for part in argument:
            yield from _trees(part)
