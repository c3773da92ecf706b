"""What a pattern of group names was likely meant to be, and whether it leaves anything to a later one. Pure."""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

from kagent.group_pattern import is_expression, is_right, matches


def covers(pattern: str, other: str) -> bool:
    """Whether a pattern certainly matches every name that another one matches.

    >>> (
    ...     covers("*", "/a|b/"),
    ...     covers("orders-*", "orders-eu-*"),
    ...     covers("orders-*", "*-eu"),
    ...     covers("a?", "a*"),
    ... )
    (True, True, False, False)
    """
    if pattern == other or pattern in ("/.*/", "/^.*$/") or set(pattern) == {"*"}:
        return True
    if is_expression(pattern) or is_expression(other) or set(pattern) & set("?[") or "[" in other:
        return False
    # All but `*` stands for itself in this one, so what is open in the other one falls to a `*`.
    return matches(pattern, other)


def prefix_meant(pattern: str) -> str | None:
    """The expression that matches all names that begin as this one says, where it only matches names that end there.

    Patterns match the whole name; one with ``^``, without ``$``, that ends in a plain character was written for a search.

    >>> [
    ...     prefix_meant(each)
    ...     for each in ("/^nightly-/", "/^(a|b)-/", "/^a-$/", "/^a-.*/", "/^.*-a/", "/a-/", "^a-")
    ... ]
    ['/nightly-.*/', '/(a|b)-.*/', None, None, None, None, None]
    """
    if not is_expression(pattern) or not pattern.startswith("/^"):
        return None
    parsed = parser.parse(pattern[2:-1])
    ends_plainly = len(parsed) > 0 and parsed[-1][0] == codes.LITERAL
    is_bounded = parsed.getwidth()[1] < parser.MAXREPEAT
    return f"/{pattern[2:-1]}.*/" if ends_plainly and is_bounded else None


def several_meant(pattern: str) -> list[str]:
    """The patterns of a glob in which commas or bars divide them; none where it is one.

    >>> (
    ...     several_meant("orders-*,billing-*"),
    ...     several_meant("a, b"),
    ...     several_meant("a-*|b-*"),
    ...     several_meant("/a{1,2}/"),
    ...     several_meant("a{b,c}"),
    ... )
    (['orders-*', 'billing-*'], ['a', 'b'], ['a-*', 'b-*'], [], [])
    """
    if is_expression(pattern) or re.search(r"[{\[(^$\\]|\.[*+]", pattern):
        return []
    parts = [part.strip() for part in re.split("[,|]", pattern)]
    # A name may hold a comma; beside a wildcard or a space, it divides.
    divides = len(parts) > 1 and all(parts) and re.search(r"[*|]|, ", pattern) is not None
    return parts if divides else []


def expression_meant(pattern: str) -> str | None:
    """The regular expression that a glob was likely meant as: it has ``.*`` where no name goes on with a dot, ``.+``, ``\\d``, or a group.

    >>> [expression_meant(each) for each in ("orders-.*", "(a|b)-.+", "a-[0-9]+", "com.acme.*", "a-*", "a+b")]
    ['/orders-.*/', '/(a|b)-.+/', '/a-[0-9]+/', None, None, None]
    """
    # In `com.acme.*` the dot is likely that of the name.
    if is_expression(pattern) or not re.search(
        r"(^|[^\w.])\.\*|\.\+|\\[dws.]|\][+{]|\([^()]+\|[^()]+\)", pattern
    ):
        return None
    meant = f"/{pattern.removeprefix('^').removesuffix('$')}/"
    return meant if is_right(meant) else None
