"""Characters that look like those of a keyboard and are others: word processors, web pages and chats put them in."""

from __future__ import annotations

import unicodedata

QUOTES = "“”„‟«»‘’‚‛"
LOOKALIKES = str.maketrans(
    {**dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("‐‑‒–—−", "-")}
)


def with_odd_character(problem: str, text: object, is_name: bool = False) -> str:
    """The problem with the first such character of this text and how to write it; the problem itself if there is none."""
    odd = _odd(str(text), is_name) if isinstance(text, str) else None
    if odd is None:
        return problem
    plain = _plain(str(text))
    hint = f"t holds U+{ord(odd):04X} ({unicodedata.name(odd, 'unnamed').lower()})"
    hint += f": write {plain}" if plain.isascii() and not is_name else ""
    return f"{problem} I{hint}" if problem.endswith("?") else f"{problem}; i{hint}"


def in_odd_quotes(text: object) -> bool:
    """Whether quotes that are none to YAML stand around the text, and so belong to it."""
    return isinstance(text, str) and len(text) > 1 and text[0] in QUOTES and text[-1] in QUOTES


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(LOOKALIKES)
    return f"'{plain.strip(chr(34) + chr(39) + ' ')}'" if in_odd_quotes(text) else plain.strip()


def _odd(text: str, is_name: bool) -> str | None:
    # Letters of other alphabets are odd in a setting's name only, where they look like Latin ones.
    return next((c for c in text if not c.isascii() and (is_name or _plain(c) != c)), None)
