"""Names from Kafka are data: free text of up to 32 kB from any client, shown only through here."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

SHOWN = 255
"""Longest name shown, in characters."""
LONGEST = 2000
"""Longest sentence shown, in characters."""
UNITS_S = (("d", 86_400), ("h", 3600), ("min", 60))
"""Units of a length of time above a second, in seconds."""


def shown(name: str, limit: int = SHOWN) -> str:
    """The name as it may be printed: control, format and lone surrogate characters as ``\\x..``, cut at ``limit``.

    >>> shown("orders\\x1b[2J")
    'orders\\\\x1b[2J'
    """
    cut = name if len(name) <= limit else name[: limit - 1] + "…"
    # Nearly every name: the loop below is for the others.
    if cut.isprintable():
        return cut
    return "".join(c if not _hidden(c) else _escaped(c) for c in cut)


def _hidden(char: str) -> bool:
    # Not isprintable(), which also refuses spaces other than U+0020. Cf has the bidirectional controls.
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def partition_name(topic: str, partition: int | str) -> str:
    """A partition as Kafka's own tools and logs write it, as it may be shown.

    >>> partition_name("orders", 3)
    'orders-3'
    """
    return f"{shown(topic)}-{partition}"


def told_apart(names: Collection[str]) -> dict[str, str]:
    """Name of a member → what a table calls it: the client id alone where that tells all of them apart, else the name with its host.

    >>> told_apart(["a-1/10.0.0.7", "a-2/10.0.0.7"]), told_apart(["app/10.0.0.7", "app/10.0.0.8"])
    ({'a-1/10.0.0.7': 'a-1', 'a-2/10.0.0.7': 'a-2'}, {'app/10.0.0.7': 'app/10.0.0.7', 'app/10.0.0.8': 'app/10.0.0.8'})
    """
    # From the right: a client id may hold slashes, a host does not.
    clients = {name: name.rpartition("/")[0] or name for name in names}
    return clients if len(set(clients.values())) == len(clients) else {name: name for name in names}


def span(seconds: float) -> str:
    """A length of time as a person says it."""
    for unit, size in UNITS_S:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def spans(least: float, most: float) -> str:
    """From one length of time to another, both in the unit of the longer one.

    >>> spans(119, 120), spans(80, 82), spans(5400, 7200), spans(258, 262)
    ('2 min', '80 to 82 s', '1.5 to 2 h', '4.3 to 4.4 min')
    """
    unit = span(most).split(" ")[1]
    size = dict(UNITS_S).get(unit, 1)
    # Both with the same digits: `4.3 to 4 min` would run backwards.
    shortest, longest = (
        (f"{s / size:.1f}".removesuffix(".0") if size > 1 else f"{s:.0f}") for s in (least, most)
    )
    return span(most) if shortest == longest else f"{shortest} to {longest} {unit}"


def rounded(value: float) -> str:
    """Three digits are what a person reads, and as much as a measurement of some minutes holds."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def counted(count: int, noun: str) -> str:
    """``1 partition``, ``3 partitions``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def ended(sentence: str) -> str:
    """The sentence with a full stop, unless it is a question.

    >>> ended("it is wrong"), ended("did you mean a?")
    ('it is wrong.', 'did you mean a?')
    """
    return sentence if sentence.endswith("?") else f"{sentence}."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean orders-eu?`` where a known name is near or holds this one, else a full stop: the end of a sentence.

    >>> did_you_mean("orders-ue", ["orders-eu", "billing"]), did_you_mean("zebra", ["orders-eu"])
    ('; did you mean orders-eu?', '.')
    """
    names = sorted(known)
    near = (
        get_close_matches(name, names, 3, 0.8) or [k for k in names if name and name.lower() in k.lower()][:3]
    )
    return f"; did you mean {' or '.join(map(shown, near))}?" if near else "."


def few(names: Sequence[str], most: int = 5) -> str:
    """``a, b``; of many the first ones: ``a, b, c, d, e and 7 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shown_all(value: Any) -> Any:
    """A JSON value with every text in it as it may be shown, each up to ``LONGEST`` characters."""
    if isinstance(value, str):
        return shown(value, LONGEST)
    if isinstance(value, dict):
        return {shown(str(name)): shown_all(inner) for name, inner in value.items()}
    return [shown_all(inner) for inner in value] if isinstance(value, list | tuple) else value


def in_words(error: BaseException | None) -> str:
    """An error in words; some have none of their own."""
    return str(error) or type(error).__name__
