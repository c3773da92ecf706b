"""Notes about patterns of group names: never reached, or likely not what they look like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kagent.group_pattern import is_expression, is_right
from kagent.pattern_meant import covers, expression_meant, prefix_meant, several_meant
from kagent.policy import IGNORED
from kagent.settings.given_settings import GivenSettings
from kagent.settings.settings_file import Where


def pattern_notes(given: GivenSettings) -> Iterator[str]:
    """A sentence for each pattern of the file that does something else than it seems to do, or nothing."""
    yield from _without_effect(given)
    yield from _all_ignored(given)
    for where, pattern in patterns(given):
        if (what := _other_than_meant(pattern, is_match=where[-1] == "match")) is not None:
            yield f"{given.place(where)}: {pattern!r} {what}."


def patterns(given: GivenSettings) -> Iterator[tuple[Where, str]]:
    """Every right pattern of the file, with the way to it."""
    values = given.file.values
    for at, match in _matches(given):
        yield ("groups", at, "match"), match
    yield from _listed(values.get("ignore"), ("ignore",))
    destinations = given.file.written(("alert", "destinations"))
    for name in destinations if isinstance(destinations, Mapping) else ():
        for kind in ("groups", "clusters"):
            where = ("alert", "destinations", name, "only", kind)
            yield from _listed(given.file.written(where), where)


def _matches(given: GivenSettings) -> Iterator[tuple[int, str]]:
    """The pattern of every entry of ``groups`` that has a right one, with its place in the list."""
    groups = given.file.values.get("groups")
    for at, group in enumerate(groups if isinstance(groups, list) else ()):
        match = group.get("match") if isinstance(group, Mapping) else None
        if isinstance(match, str) and is_right(match):
            yield at, match


def _listed(patterns: Any, where: Where) -> Iterator[tuple[Where, str]]:
    for at, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
        if isinstance(pattern, str) and is_right(pattern):
            yield (*where, at), pattern


def _other_than_meant(pattern: str, is_match: bool) -> str | None:
    """What the pattern is by the rules, where it was likely meant as something else."""
    if pattern != pattern.strip():
        return f"begins or ends with a space, which a name would need too; write {pattern.strip()!r}"
    if prefix := prefix_meant(pattern):
        return f"must match the whole name, so it matches none that goes on; for names that begin so write {prefix!r}"
    if is_expression(pattern):
        # A glob between slashes: none of an expression's other signs is in it.
        is_glob = "*" in pattern and re.fullmatch(r"/[\w*-]+/", pattern)
        why = f"is a regular expression, in which * repeats the character before it; write {pattern[1:-1]!r}"
        return why if is_glob else None
    if several := several_meant(pattern):
        entries = ", ".join(f"{{match: {each!r}, …}}" if is_match else repr(each) for each in several)
        return f"is one pattern, {'comma' if ',' in pattern else 'bar'} included; each group has an entry of its own: [{entries}]"
    expression = expression_meant(pattern)
    return _as_glob(pattern) or (
        f"is a glob, not a regular expression; write {expression!r}" if expression else None
    )


def _as_glob(pattern: str) -> str | None:
    if (braces := re.search(r"\{([^{}]*,[^{}]*)\}", pattern)) is not None:
        either = re.sub(r"\s*,\s*", "|", braces[1])
        return f"is a glob, in which braces stand for themselves; write (…) in a regular expression, such as '/.*({either}).*/'"
    if pattern.startswith("!"):
        return f"is a glob, in which ! stands for itself; the first entry of groups that matches holds, so put {pattern[1:]!r} before '*'"
    if "%" in (pattern[:1], pattern[-1:]) and "*" not in pattern:
        return f"is a glob, in which % stands for itself; write {pattern.replace('%', '*')!r}"
    if flags := re.fullmatch(r"/(.*)/([imsx]{1,3})", pattern):
        return f"is a glob; flags stand at the beginning of a regular expression: '/(?{flags[2]}){flags[1]}/'"
    if pattern.startswith("^") or pattern.endswith("$"):
        return f"is a glob; a regular expression stands between slashes: '/{pattern}/'"
    if pattern.startswith("/"):
        return f"is a glob; a regular expression ends with a slash too: '{pattern}/'"
    if pattern.endswith("/"):
        return f"is a glob; a regular expression begins with a slash too: '/{pattern}'"
    return (
        "has a [ without a ], which then stands for itself"
        if pattern.count("[") > pattern.count("]")
        else None
    )


def _without_effect(given: GivenSettings) -> Iterator[str]:
    """A sentence for each entry of ``groups`` that an earlier one leaves nothing to, or that is about groups that are ignored."""
    before: dict[str, int] = {}
    for at, match in _matches(given):
        earlier = next((each for each in before if covers(each, match)), None)
        why = (
            _still_ignored(given, at, match)
            if earlier is None
            else _never_reached(given, earlier, before[earlier], match)
        )
        before.setdefault(match, at)
        if why is not None:
            yield f"{given.place(('groups', at))}: groups[{at}] has no effect: {why}."


def _all_ignored(given: GivenSettings) -> Iterator[str]:
    """A sentence where the list ``ignore`` leaves nothing to judge."""
    judged = any(given.file.written(("groups", at, "ignore")) is False for at, _ in _matches(given))
    for where, pattern in _listed(given.file.values.get("ignore"), ("ignore",)):
        if covers(pattern, "*") and not judged:
            yield f"{given.place(where)}: ignore leaves out every group by {pattern!r}, so none is judged."


def _never_reached(given: GivenSettings, earlier: str, at: int, match: str) -> str:
    line = given.place(("groups", at)).rpartition(":")[2]
    if earlier == match:
        return f"the pattern is that of line {line}, which holds"
    return f"{earlier!r} at line {line} matches all that {match!r} does, and the first match holds"


def _still_ignored(given: GivenSettings, at: int, match: str) -> str | None:
    """Of an entry that does not say itself whether its groups are ignored."""
    listed = [pattern for _, pattern in _listed(given.file.values.get("ignore"), ("ignore",))]
    by = next((each for each in (*listed, *IGNORED) if covers(each, match)), None)
    if by is None or "ignore" in given.file.written(("groups", at)):
        return None
    whose = "the list ignore" if by in listed else "kagent"
    return f"{whose} leaves out {by!r}; write ignore: false to have {match!r} judged"
