"""Texts that stand where another one belongs: a placeholder that is never replaced, a secret in the place of its file, and a path in the
place of the secret, or a keystore in that of a PEM file. None of them is repeated where it may be a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kagent.settings.given_settings import DELIMITER, PREFIX, GivenSettings, as_in_file, folded
from kagent.settings.schema_ways import schema_at
from kagent.settings.settings_file import MISSING, Where
from kagent.settings.unknown_names import suggestion

PLACEHOLDER = re.compile(r"\$\{[^}]+\}|\{\{.*?\}\}|%\(\w+\)s", re.DOTALL)
"""Of a shell or Compose, of Helm, Ansible or Jinja, of Python's configparser."""
UNQUOTED = re.compile(r"(?:\$[A-Z_]\w*|\$\(.+\)|<[\w .-]+>|%[A-Z_]+%)(?=$|[:/])")
"""The same without braces, at the beginning. A password may look so: of a secret it is only doubted."""
FILLED_IN = ("template", "options")
"""Settings whose placeholders are filled in: a webhook's template by kagent, the options by Spark."""
PATH = re.compile(r"(?:(?:~|\.{1,2})?/|[A-Za-z]:\\)[\w./\\~@: -]+|[\w./-]+\.[a-z][a-z0-9]{1,4}")
"""From the root, the home or the working directory, or with an extension."""
NO_PATH = re.compile(r"\w+://|-----BEGIN|.*\n", re.DOTALL)
KEYSTORE = re.compile(r"\.(jks|p12|pfx|pkcs12|keystore|truststore)$", re.IGNORECASE)
HTTP = re.compile(r"https?://", re.IGNORECASE)
SCHEME = re.compile(r"(Bearer|Basic|Token)\s", re.IGNORECASE)
"""The schemes of an Authorization header."""


def looks_like_path(text: object) -> bool:
    """Whether this is written as a path, and so likely no secret."""
    return isinstance(text, str) and PATH.fullmatch(text) is not None


def texts(given: GivenSettings) -> Iterator[tuple[Where, str]]:
    """Every text that is given and not overridden, with the way to it; not those within a variable's JSON."""
    return ((where, value) for where, value in values(given) if isinstance(value, str))


def values(given: GivenSettings) -> Iterator[tuple[Where, Any]]:
    """Every value that is given and not overridden, with the way to it."""
    for where in given.file.lines:
        if (value := given.written(where)) is not MISSING:
            yield where, value
    yield from (
        (as_in_file(way, given.file.values), os.environ.get(name, ""))
        for way, name in given.variables.items()
    )


def misplaced(given: GivenSettings) -> list[tuple[Where, str]]:
    """The ways to texts that cannot be meant, each with why it may be one, to be asked for with :func:`problem_of_text`."""
    return [
        (where, text)
        for where, text in texts(given)
        if ((PLACEHOLDER.search(text) or UNQUOTED.match(text)) and not set(where) & set(FILLED_IN))
        or (str(where[-1]).endswith("_file") and NO_PATH.match(text))
    ]


def problem_of_text(where: Where, text: str, given: GivenSettings, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with such a text; None where it is right after all, as that of a label named ``x_file`` is."""
    beside = schema_at(schema, where[:-1], given.file.values).get("properties", {})
    if UNQUOTED.match(text) and f"{where[-1]}_file" in beside:
        return None
    if PLACEHOLDER.search(text) or UNQUOTED.match(text):
        return _not_replaced(where, beside, in_file=given.place(where) == given.file.place(where))
    if where[-1] not in beside:
        return None
    name = str(where[-1]).removesuffix("_file")
    what = (
        "a key or certificate"
        if text.startswith("-----")
        else "an address"
        if "://" in text
        else "lines of text"
    )
    return f"must be a path, not {what}; " + (
        f"write it as {name}" if name in beside else "put it into a file, and write the path of that"
    )


def _not_replaced(where: Where, beside: Mapping[str, Any], in_file: bool) -> str:
    file = f"{where[-1]}_file"
    how = _instead(where, in_file, file if file in beside else None)
    return f"variables are not replaced{' in the file' if in_file else ''}; {how}"


def _instead(where: Where, in_file: bool, file: str | None) -> str:
    """How to give a value that should not stand in the file."""
    steps = [str(step).upper() for step in folded(where)]
    # A variable reaches into no list.
    reaches = in_file and not any(isinstance(step, int) for step in where)
    how = f"set {PREFIX}{DELIMITER.join(steps)}" if reaches else "write the value itself"
    return f"{how} or {file}" if file else how


def in_each_others_place(given: GivenSettings, schema: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    """What may be meant and is likely not: a path as the secret, or the scheme of a header before it."""
    for where, text in texts(given):
        if (keystore := KEYSTORE.search(text)) and str(where[-1]).endswith("_file"):
            yield (
                where,
                f"must be a PEM file, and {keystore[0]} is a keystore's name; make a PEM file of that",
            )
        if text and not any(
            looks(text) for looks in (looks_like_path, SCHEME.match, UNQUOTED.match, HTTP.match)
        ):
            continue
        file = f"{where[-1]}_file"
        if file not in schema_at(schema, where[:-1], given.file.values).get("properties", {}):
            continue
        if not text:
            yield where, "is empty, as if it were not set; leave it out, or write the secret"
        elif HTTP.match(text) and where[-1] != "url":
            yield where, "is an address; write the secret itself"
        elif scheme := SCHEME.match(text):
            yield where, f"begins with {scheme[1]}, which is the header's and no part of it; leave it out"
        elif UNQUOTED.match(text):
            yield (
                where,
                f"looks like a variable, and none is replaced; {_instead(where, given.place(where) == given.file.place(where), file)}",
            )
        elif where[-1] != "url" and ("/" in text or "\\" in text):
            yield where, f"is itself used, and looks like a path; for what stands in that file write {file}"


def missing_file(path: Path, itself: str | None) -> str:
    """A clause about a file that this machine does not have; the setting's value is not repeated where it may be the secret itself.

    ``itself``: the setting that takes what stands in the file, if there is one.
    """
    if looks_like_path(str(path)):
        near = suggestion(path.name, _beside(path))
        return f"this machine has no file {path}{f'; did you mean {path.parent / near}?' if near else '.'}"
    what = f"; a secret itself is written as {itself}" if itself else ""
    return f"this machine has no file of that name, which does not look like a path{what}."


def _beside(path: Path) -> list[str]:
    try:
        return sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return []
