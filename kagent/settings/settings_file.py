"""The settings file: its values, and at which line each stands."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kagent.errors import SettingsError

Where = tuple[str | int, ...]
"""The way to a value: names, and places in lists."""


MISSING = object()
"""Of a value that a file does not have; None is one."""


FIRST_ONLY = "Others may follow: only the first place can be named in a file that is not YAML."


MEANT = {
    "scanning a quoted scalar": "a quote is not closed",
    "scanning an alias": "a text that begins with * must stand in quotes, as in '*-orders'",
    "scanning an anchor": "a text that begins with & must stand in quotes",
    "found unknown escape": "a backslash begins an escape in double quotes: put the text in single quotes",
    "<block end>, but found '}'": "a } too many",
    "<block end>, but found ']'": "a ] too many",
    "expected '<document start>'": "a bracket too many, or this line's indent is not that of the names above it",
    "found undefined alias": "a text that begins with * must stand in quotes, as in '*-orders'",
    "cannot start any token": "a text that begins with %, @ or ` must stand in quotes",
    "mapping values are not allowed here": "a second colon in a line, no colon in the line above, or an indent that does not match: put a text with a colon and a space in quotes",
    "could not find expected ':'": "a name has no colon behind it, or no space behind the colon",
    "found another document": "three dashes begin a second document: put all in one, and take them out",
    "parsing a block mapping": "this line's indent is not that of the names above it",
    "parsing a block collection": "this line's indent is not that of the dashes above it",
    "',' or '}', but got ':'": "a text with a colon and a space must stand in quotes, or a comma is missing before this",
    "',' or '}', but got '{'": "a text with a { must stand in quotes; variables such as ${NAME} are not replaced",
    "parsing a flow mapping": "a { is not closed, or a comma is missing",
    "parsing a flow sequence": "a [ is not closed, or a comma is missing",
    "could not determine a constructor": "a tag such as !!python/object is not allowed: take it out",
}
"""What PyYAML was doing or met → what a person likely did, and how to mend it."""


class Twice(NamedTuple):
    """A name that one mapping has twice: the line of the one that holds, and of the one before it."""

    where: Where
    line: int
    first: int


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file says. ``lines``: way to a value → line, from 1; ``twice``: names given twice in one mapping."""

    path: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Where, int] = field(default_factory=dict)
    twice: tuple[Twice, ...] = ()

    def line(self, where: Where) -> int | None:
        """The line of this value, else of the nearest thing around it; None if the file says nothing near it."""
        for end in range(len(where), 0, -1):
            if where[:end] in self.lines:
                return self.lines[where[:end]]
        return None

    def written(self, where: Where) -> Any:
        """The value as it stands in the file; MISSING if it does not."""
        value: Any = self.values
        for step in where:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return MISSING
        return value

    def lines_beside(self, section: Where) -> dict[str, int | None]:
        """The names that the section has, each with its line."""
        found = self.written(section)
        return {name: self.line((*section, name)) for name in found} if isinstance(found, dict) else {}

    def renamed(self, where: Where, name: str) -> SettingsFile:
        """The same with another name for the last step of this way, at the same line, and joined with what has that name already."""
        values = copy.deepcopy(self.values)
        holder: Any = values
        for step in where[:-1]:
            holder = holder[step]
        moved, kept = holder.pop(where[-1]), holder.get(name)
        holder[name] = _joined(kept, moved)
        new, entries = (*where[:-1], name), len(kept) if isinstance(kept, list) else 0
        # What the kept section says itself stays at its own line.
        lines = {_renamed(way, where, new, entries): line for way, line in self.lines.items()} | self.lines
        twice = tuple(each._replace(where=_renamed(each.where, where, new, entries)) for each in self.twice)
        return SettingsFile(self.path, values, lines, twice)

    def moved_into(self, where: Where, steps: tuple[str, ...], without: Collection[str] = ()) -> SettingsFile:
        """The same with all that the section at this way holds, but ``without``, further down, at the same lines: these steps below."""
        values = copy.deepcopy(self.values)
        section: Any = values
        for step in where:
            section = section[step]
        inner = {name: value for name, value in section.items() if name not in without}
        for step in reversed(steps):
            inner = {step: inner}
        section.clear()
        section.update(inner)
        below = (*where, *steps)
        lines = self.lines | {_renamed(way, where, below, 0): line for way, line in self.lines.items()}
        twice = tuple(each._replace(where=_renamed(each.where, where, below, 0)) for each in self.twice)
        return SettingsFile(self.path, values, lines, twice)

    def place(self, where: Where) -> str:
        """``kagent.yaml:7``, or the file's name where no line is known."""
        line = self.line(where)
        return str(self.path) if line is None else f"{self.path}:{line}"


def _joined(kept: Any, moved: Any) -> Any:
    """Two sections in one; of what both say, what the kept one says."""
    if isinstance(kept, list) and isinstance(moved, list):
        return [*kept, *moved]
    return {**moved, **kept} if isinstance(kept, dict) and isinstance(moved, dict) else moved


def _renamed(way: Where, old: Where, new: Where, entries: int) -> Where:
    """``entries``: how many stand before those of the old way, in a list."""
    if way[: len(old)] != old:
        return way
    first, *rest = way[len(old) :] or (None,)
    step = () if first is None else (first + entries,) if isinstance(first, int) else (first,)
    return (*new, *step, *rest)


class Loader(yaml.SafeLoader):
    """PyYAML's safe one with the numbers of YAML 1.2 (core schema, 10.3.2): YAML 1.1 reads ``1:30`` as 90 and ``010`` as 8, which
    is never meant in a setting. Names are texts: a cluster may be called ``9`` or ``on``."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As PyYAML's, with every name as it is written."""
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                key.tag = TEXT
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


INTEGER, FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag not in (INTEGER, FLOAT)]
    # PyYAML looks patterns up by the first character of a scalar.
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(INTEGER, re.compile(r"^[-+]?(0|[1-9][0-9_]*)$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    FLOAT,
    re.compile(
        r"^([-+]?([0-9][0-9_]*)?\.[0-9]+([eE][-+]?[0-9]+)?|[-+]?[0-9]+\.?[eE][-+]?[0-9]+|[-+]?[0-9]+\.|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
    ),
    list("-+.0123456789"),
)


def read(path: Path) -> SettingsFile:
    """The file's values with their lines. Raises SettingsError if it cannot be read or is no YAML mapping."""
    try:
        text = path.read_text(encoding="utf-8")
        # Twice: compose() has the lines, load() the values.
        node = yaml.compose(text, Loader=Loader)
        values = yaml.load(text, Loader=Loader)  # a SafeLoader
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(f"The settings file {path}:{line} is not UTF-8 text.") from error
    except yaml.YAMLError as error:
        raise SettingsError(_other_format(path, text) or _not_yaml(path, text, error)) from error
    except (
        ValueError,
        TypeError,
        RecursionError,
    ) as error:  # of a date that there is not, of a list as a name
        raise SettingsError(f"The settings file {path} cannot be read as YAML ({_short(error)}).") from error
    if values is None:
        return SettingsFile(path)
    if not isinstance(values, dict):
        if other := _other_format(path, text):
            raise SettingsError(other)
        line = node.start_mark.line + 1 if node else 1
        hint = "; take out the dashes" if isinstance(values, list) else ", such as `clusters:`"
        raise SettingsError(f"The settings file {path}:{line} must hold names and values{hint}.")
    if {"apiVersion", "kind"} <= values.keys():
        raise SettingsError(
            f"The settings file {path} is a manifest of Kubernetes: write what stands in its data into a file of its own."
        )
    # An anchor that holds its own alias makes a value that contains itself.
    if "*" in text and _loops(values, ()):
        raise SettingsError(f"The settings file {path} refers to itself: take out the name that leads back.")
    lines, twice = _places(node)
    return SettingsFile(path, values, lines, twice)


def read_text(text: str) -> list[Any] | dict[Any, Any] | None:
    """The list or mapping that a text is as YAML; None if it is neither."""
    try:
        found = yaml.load(text, Loader=Loader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, list | dict) else None


def _places(node: yaml.Node | None) -> tuple[dict[Where, int], tuple[Twice, ...]]:
    """Every value's line, and the names that one mapping has twice."""
    lines: dict[Where, int] = {}
    twice: dict[Where, Twice] = {}
    for where, line in _walk(node, ()):
        # PyYAML takes the last of two equal names without a word; YAML 1.2 (3.2.1.1) forbids them.
        if where in lines and not any(where[:end] in twice for end in range(1, len(where))):
            twice[where] = Twice(where, line, lines[where])
        lines[where] = line
    return lines, tuple(twice.values())


def _other_format(path: Path, text: str) -> str | None:
    """Of TOML, INI and properties, which begin with ``[section]`` or ``name = value``, that they are no YAML; else None."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip()[0] in "#;!":
            continue
        section = re.fullmatch(r"\[{1,2}[^\[\],:]+\]{1,2}\s*([#;].*)?", line)
        if section or re.match(r"(export\s+)?[\w.\"-]+\s*=", line):
            what = "a [section]" if section else "name = value"
            return f"The settings file {path}:{number} is not YAML: {what} is of TOML, INI or properties; write a name, a colon and a space before each value, such as `clusters: {{main: {{bootstrap: 'broker:9092'}}}}`."
        return None
    return None


def _not_yaml(path: Path, text: str, error: yaml.YAMLError) -> str:
    """The line, what PyYAML was reading and where that began, and what it met."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        # PyYAML gives the character's number.
        return f"The settings file {path}:{line} is not YAML (it holds the control character \\x{error.character:02x})."
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"The settings file {path} is not YAML ({error})."
    # What is not closed is wrong where it begins; PyYAML notices it at the end of the file.
    open_since = error.context in ("while scanning a simple key", "while scanning a quoted scalar")
    mark = error.context_mark if open_since else error.problem_mark or error.context_mark
    where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    if "'\\t'" in (error.problem or ""):
        begins = not mark or not text.splitlines()[mark.line][: mark.column].strip()
        what = "a tab begins the line; indent with spaces" if begins else "a tab; write spaces"
        return f"The settings file {path}{where} is not YAML ({what}). {FIRST_ONLY}"
    began = error.context_mark
    since = f", which begins at line {began.line + 1}" if began and mark and began.line != mark.line else ""
    meant = next((hint for words, hint in MEANT.items() if words in f"{error.context} {error.problem}"), None)
    parts = [f"{error.context}{since}" if error.context else None, error.problem]
    return f"The settings file {path}{where} is not YAML ({', '.join(filter(None, parts))}{f': {meant}' if meant else ''}). {FIRST_ONLY}"


def _walk(node: yaml.Node | None, where: Where) -> Iterator[tuple[Where, int]]:
    """Every value's way and line; of a mapping's entry, the line of its name."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*where, str(key.value))
            yield inner, key.start_mark.line + 1
            yield from _walk(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield (*where, at), value.start_mark.line + 1
            yield from _walk(value, (*where, at))


def _short(error: Exception) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]


def _loops(value: Any, above: tuple[int, ...]) -> bool:
    """Whether an alias leads back to what it stands in."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return id(value) in above or any(_loops(each, (*above, id(value))) for each in inner)
