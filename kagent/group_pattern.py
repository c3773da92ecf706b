"""Patterns of group names in settings, mutes and commands: a glob, or a regular expression between slashes. Pure."""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field

from kagent.errors import SettingsError

FORMAT = "group-pattern"
"""How the JSON Schema marks a pattern, for which an error shows an example of its own."""
EXAMPLE = "/orders-[0-9]+/"


def is_expression(pattern: str) -> bool:
    """Whether this is a regular expression between slashes."""
    return len(pattern) > 1 and pattern[0] == pattern[-1] == "/"


def whole_name(pattern: str) -> str:
    """A clause about an expression that matches nothing, for people who know expressions from a search; empty for a glob."""
    return "a regular expression must match the whole name; " if is_expression(pattern) else ""


def matches(pattern: str, group: str) -> bool:
    """Whether a glob, or a regular expression between slashes, matches the whole name."""
    return _compiled(pattern).fullmatch(group) is not None


def check(pattern: str) -> None:
    """Refuse a pattern before it meets a name. Raises SettingsError if it is no regular expression."""
    _compiled(pattern)


def is_right(pattern: object) -> bool:
    """Whether this is a pattern that may match something."""
    try:
        return isinstance(pattern, str) and checked_pattern(pattern) == pattern
    except ValueError:
        return False


def java_expression(pattern: str) -> str:
    """The regular expression with which Java finds the names that a pattern matches whole."""
    return rf"(?s)\A(?:{_expression(pattern)})\z"


def checked_pattern(pattern: str) -> str:
    """The pattern itself. Raises ValueError if it is empty or no regular expression."""
    if not pattern:
        raise ValueError("must not be empty: it would match no group (`*` matches all)")
    try:
        check(pattern)
    except SettingsError as error:
        problem = str(error).removeprefix("The group pattern ").rstrip(".")
        how = "" if problem.endswith("?") else f"; write such as {EXAMPLE}"
        raise ValueError(f"{problem}{how}") from error
    return pattern


GroupPattern = Annotated[str, AfterValidator(checked_pattern), Field(json_schema_extra={"format": FORMAT})]
"""A glob, or a regular expression between slashes."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        # DOTALL: a group's name may hold a line break.
        return re.compile(_expression(pattern), re.DOTALL)
    # The last two are raised by the compiler too: for {99999999999}, and for thousands of nested groups.
    except (re.error, OverflowError, RecursionError) as error:
        # As Java and JavaScript write a named group.
        hint = "; did you mean (?P<…>?" if "unknown extension ?<" in str(error) else "."
        raise SettingsError(
            f"The group pattern {pattern!r} is no regular expression: {_why(error)}{hint}"
        ) from error


def _why(error: Exception) -> str:
    return "its groups are nested too deeply" if isinstance(error, RecursionError) else str(error)


def _expression(pattern: str) -> str:
    if is_expression(pattern):
        # The whole name has to match, so its own anchors say nothing more.
        return pattern[1:-1].removeprefix("^").removesuffix("$")
    # translate() ends with the end of the text, which Python and Java write differently.
    return fnmatch.translate(pattern)[: -len(r"\Z")]
