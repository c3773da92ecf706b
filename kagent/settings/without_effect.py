"""Notes about settings that have no effect: of an older kagent, never reached, or not what they look like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kagent.policy import retired
from kagent.settings.given_settings import GivenSettings
from kagent.settings.odd_characters import in_odd_quotes
from kagent.settings.settings_file import Where


def notes(given: GivenSettings) -> list[str]:
    """A sentence for each setting that an older kagent had."""
    names: list[tuple[Where, str]] = [
        (("policy", name), name) for name in given.file.values.get("policy") or ()
    ]
    for at, group in enumerate(given.file.values.get("groups") or ()):
        names += [(("groups", at, name), name) for name in group]
    names += [(where, str(where[1])) for where in given.variables if where[0] == "policy" and len(where) > 1]
    return [
        f"{given.place(where)}: the setting {name} has no effect: {note}."
        for where, name in names
        if (note := retired(name)) is not None
    ] + [*_never_reached(given), *_unclosed(given), *_in_odd_quotes(given)]


def _unclosed(given: GivenSettings) -> Iterator[str]:
    """A sentence for each pattern that is a glob by the rules, and likely meant as something else."""
    groups = given.file.values.get("groups") or ()
    ignored = given.file.values.get("ignore") or ()
    patterns: list[tuple[Where, Any]] = [
        (("groups", at, "match"), group.get("match")) for at, group in enumerate(groups)
    ]
    patterns += [(("ignore", at), pattern) for at, pattern in enumerate(ignored)]
    for where, pattern in patterns:
        if not isinstance(pattern, str) or (len(pattern) > 1 and pattern[0] == pattern[-1] == "/"):
            continue
        if (braces := re.search(r"\{([^{}]*,[^{}]*)\}", pattern)) is not None:
            either = re.sub(r"\s*,\s*", "|", braces[1])
            yield f"{given.place(where)}: {pattern!r} is a glob, in which braces stand for themselves; write (…) in a regular expression, such as '/.*({either}).*/'."
        elif pattern.startswith("!"):
            yield f"{given.place(where)}: {pattern!r} is a glob, in which ! stands for itself; the first entry of groups that matches holds, so put {pattern[1:]!r} before '*'."
        elif "%" in (pattern[:1], pattern[-1:]) and "*" not in pattern:
            yield f"{given.place(where)}: {pattern!r} is a glob, in which % stands for itself; write {pattern.replace('%', '*')!r}."
        elif flags := re.fullmatch(r"/(.*)/([imsx]{1,3})", pattern):
            yield f"{given.place(where)}: {pattern!r} is a glob; flags stand at the beginning of a regular expression: '/(?{flags[2]}){flags[1]}/'."
        elif pattern.startswith("^") or pattern.endswith("$"):
            yield f"{given.place(where)}: {pattern!r} is a glob; a regular expression stands between slashes: '/{pattern}/'."
        elif ", " in pattern:
            yield f"{given.place(where)}: {pattern!r} is one pattern, comma included; each group has an entry of its own."
        elif pattern.startswith("/"):
            yield f"{given.place(where)}: {pattern!r} is a glob; a regular expression ends with a slash too: '{pattern}/'."
        elif pattern.count("[") > pattern.count("]"):
            yield f"{given.place(where)}: {pattern!r} has a [ without a ], which then stands for itself."


def _in_odd_quotes(given: GivenSettings) -> Iterator[str]:
    """A sentence for each text in quotes that are none to YAML; the text itself may be a secret."""
    for where in given.file.lines:
        if in_odd_quotes(given.file.written(where)):
            yield f"{given.place(where)}: the quotes around {where[-1]} are none to YAML, and so part of it: write ' or \"."


def _never_reached(given: GivenSettings) -> Iterator[str]:
    """A sentence for each entry of ``groups`` whose pattern stands in an earlier one: the first match holds."""
    first: dict[str, int] = {}
    for at, group in enumerate(given.file.values.get("groups") or ()):
        before = first.setdefault(str(group.get("match")), at)
        if before != at:
            place = given.place(("groups", before)).rpartition(":")[2]
            yield f"{given.place(('groups', at))}: groups[{at}] has no effect: the pattern is that of line {place}, which holds."
