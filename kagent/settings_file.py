"""The settings file: its values, and at which line each stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kagent.errors import SettingsError

Where = tuple[str | int, ...]
"""The way to a value: names, and places in lists."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file says. ``lines``: way to a value → line, from 1; ``twice``: names given twice in one mapping."""

    path: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Where, int] = field(default_factory=dict)
    twice: tuple[tuple[Where, int], ...] = ()

    def line(self, where: Where) -> int | None:
        """The line of this value, else of the nearest thing around it; None if the file says nothing near it."""
        for end in range(len(where), 0, -1):
            if where[:end] in self.lines:
                return self.lines[where[:end]]
        return None

    def place(self, where: Where) -> str:
        """``kagent.yaml:7``, or the file's name where no line is known."""
        line = self.line(where)
        return str(self.path) if line is None else f"{self.path}:{line}"


class Loader(yaml.SafeLoader):
    """PyYAML's safe one with the numbers of YAML 1.2 (core schema, 10.3.2): YAML 1.1 reads ``1:30`` as 90 and ``010`` as 8, which
    is never meant in a setting."""


INTEGER, FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
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
        raise SettingsError(f"The settings file {path} is not UTF-8 text.") from error
    except yaml.YAMLError as error:
        raise SettingsError(_not_yaml(path, error)) from error
    except (
        ValueError,
        TypeError,
        RecursionError,
    ) as error:  # of a date that there is not, of a list as a name
        raise SettingsError(f"The settings file {path} cannot be read as YAML ({_short(error)}).") from error
    if values is None:
        return SettingsFile(path)
    if not isinstance(values, dict):
        raise SettingsError(f"The settings file {path} must hold names and values, such as `clusters:`.")
    # An anchor that holds its own alias makes a value that contains itself.
    if "*" in text and _loops(values, ()):
        raise SettingsError(f"The settings file {path} refers to itself: take out the name that leads back.")
    if odd := [name for name in values if not isinstance(name, str)]:
        raise SettingsError(f"The settings file {path} has {odd[0]!r} for a name: write a name in letters.")
    lines: dict[Where, int] = {}
    twice = []
    for where, line in _walk(node, ()):
        # PyYAML takes the last of two equal names without a word; YAML 1.2 (3.2.1.1) forbids them.
        if where in lines:
            twice.append((where, line))
        lines.setdefault(where, line)
    return SettingsFile(path, values, lines, tuple(twice))


def _not_yaml(path: Path, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    where = f" at line {mark.line + 1}" if mark else ""
    return f"The settings file {path} is not YAML{where}" + (f" ({problem})." if problem else ".")


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
