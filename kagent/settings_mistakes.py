"""Every mistake in file and variables, each with its place and, where one is near, a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from kagent.settings_file import SettingsFile, Where
from kagent.text import shown

PREFIX = "KAGENT_"
DELIMITER = "__"
OTHER_VARIABLES = ("KAGENT_BOOTSTRAP", "KAGENT_CACHE", "KAGENT_CLUSTER", "KAGENT_CONFIG", "KAGENT_FOLLOW")
"""Variables that are no settings."""
SERVICE_LINK = re.compile(
    r"KAGENT_(?:.*_)?(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_.*)?)?)"
)
"""Kubernetes sets these for every Service of the namespace, so for one named kagent too:
https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables"""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: where it stands (``kagent.yaml:7`` or a variable), which setting, what is wrong."""

    place: str
    setting: str
    problem: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.setting, self.problem) if part)


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """What was given: the file, and the variables by the way to their value."""

    file: SettingsFile
    variables: Mapping[Where, str]

    @classmethod
    def of(cls, file: SettingsFile, environment: Mapping[str, str]) -> GivenSettings:
        """The file and the variables of this environment that are settings."""
        # Also of names in lower case: pydantic-settings reads variables in any case.
        return cls(file, {way(name): name for name in environment if _is_setting(name)})

    def place(self, where: Where) -> str:
        """Where this value was given; empty if it was not."""
        lower = tuple(str(step).lower() for step in where)
        for variable, name in self.variables.items():
            # Either may be the longer one: a variable can give a whole section as JSON, or one value in it.
            short = min(len(lower), len(variable))
            if lower[:short] == variable[:short]:
                return name
        return self.file.place(where) if self.file.path else ""

    def named(self, where: Where) -> str | None:
        """The variable or line that gave exactly this value, or something around it as a whole; None for a default."""
        lower = tuple(str(step).lower() for step in where)
        for variable, name in self.variables.items():
            if lower[: len(variable)] == variable:
                return name
        return self.file.place(where) if where in self.file.lines else None


def way(variable: str) -> Where:
    """``KAGENT_PIPELINE__TRIGGER`` → ``("pipeline", "trigger")``."""
    return tuple(variable[len(PREFIX) :].lower().split(DELIMITER))


def _is_setting(variable: str) -> bool:
    known = variable in OTHER_VARIABLES or SERVICE_LINK.fullmatch(variable)
    return variable.upper().startswith(PREFIX) and not known


def mistakes(settings: type[BaseModel], given: GivenSettings, error: ValidationError | None) -> list[Mistake]:
    """All that is wrong, in the order of the file, then of the variables."""
    found = [_twice(given.file, where, line) for where, line in given.file.twice]
    found += _unknown_at_top(settings, given)
    # pydantic reports a way and a type; names that exist at that place stand only in the schema.
    schema = settings.model_json_schema()
    for each in error.errors(include_url=False) if error else ():
        where, inner = _walk(schema, tuple(each["loc"]))
        found.append(Mistake(given.place(where), _dotted(where), _problem(dict(each), inner, where)))
    # Once each: a union may report the same mistake for several of its members.
    return sorted(dict.fromkeys(found), key=_order)


def _order(mistake: Mistake) -> tuple[bool, int, str]:
    line = re.search(r":(\d+)$", mistake.place)
    return line is None, int(line[1]) if line else 0, mistake.place


def _twice(file: SettingsFile, where: Where, line: int) -> Mistake:
    first = file.lines[where]
    return Mistake(f"{file.path}:{line}", _dotted(where), f"is given twice (first at line {first}); keep one")


def _unknown_at_top(settings: type[BaseModel], given: GivenSettings) -> list[Mistake]:
    known = list(settings.model_fields)
    names = [name for name in given.file.values if name not in known]
    found = [Mistake(given.file.place((name,)), "", _unknown(str(name), known)) for name in names]
    variables = [PREFIX + name.upper() for name in known]
    for where, variable in given.variables.items():
        if where[0] not in known:
            found.append(Mistake(variable, "", _unknown_variable(variable, variables)))
    return found


def _unknown_variable(variable: str, known: Iterable[str]) -> str:
    head, rest = (*variable.split(DELIMITER, 1), "")[:2]
    near = suggestion(head, (*known, *OTHER_VARIABLES))
    hint = f"; did you mean {near}{DELIMITER + rest if rest else ''}?" if near else ""
    return f"there is no such variable{hint}"


def _unknown(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = suggestion(name, names)
    if near:
        return f"there is no setting {shown(name)}; did you mean {near}?"
    listed = f"; there are: {', '.join(names)}" if 0 < len(names) <= 12 else ""
    return f"there is no setting {shown(name)}{listed}"


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """The known name that this was likely meant to be."""
    by_folded = {each.lower().replace("-", "_"): each for each in known}
    near = get_close_matches(name.lower().replace("-", "_"), by_folded, 1, 0.6)
    return by_folded[near[0]] if near else None


def _dotted(where: Where) -> str:
    text = ""
    for step in where:
        text += f"[{step}]" if isinstance(step, int) else f".{shown(str(step))}" if text else shown(str(step))
    return text


def _walk(schema: Mapping[str, Any], loc: Where) -> tuple[Where, Mapping[str, Any]]:
    """The way without pydantic's own steps (tags of unions, ``[key]``), and the schema around its last step."""
    defs = schema.get("$defs", {})
    at, around, where = _resolved(schema, defs), schema, []
    for step in loc:
        # pydantic appends this where the key itself, not its value, is wrong.
        if step == "[key]":
            continue
        mapping = at.get("discriminator", {}).get("mapping", {})
        # A tagged union puts the tag into the way.
        if step in mapping:
            at = _resolved({"$ref": mapping[step]}, defs)
            continue
        if _is_tag(step, at):
            continue
        around = at
        where.append(step)
        at = _resolved(_inside(at, step), defs)
    return tuple(where), around


def _is_tag(step: str | int, at: Mapping[str, Any]) -> bool:
    """Whether the step names the type of a union's member, not something the person wrote."""
    return (
        "anyOf" in at
        and "properties" not in at
        and isinstance(step, str)
        and "additionalProperties" not in at
    )


def _inside(at: Mapping[str, Any], step: str | int) -> Mapping[str, Any]:
    if isinstance(step, int):
        found = at.get("items", {})
    else:
        found = at.get("properties", {}).get(step) or at.get("additionalProperties") or {}
    return found if isinstance(found, Mapping) else {}


def _resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = defs[str(schema["$ref"]).rsplit("/", 1)[-1]]
    return schema


def _problem(error: Mapping[str, Any], around: Mapping[str, Any], where: Where) -> str:
    """What is wrong, after the setting's name."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(str(where[-1]), around.get("properties", {}))
    if kind in ("literal_error", "enum"):
        return _one_of(value, re.findall(r"'([^']*)'", context["expected"]))
    if kind == "union_tag_invalid":
        return _one_of(context["tag"], re.findall(r"'([^']*)'", context["expected_tags"]), "type must be")
    if kind in PLAIN:
        return PLAIN[kind].format(value=_input(value), **context)
    return str(error["msg"]).removeprefix("Value error, ").strip()


def _one_of(value: Any, known: list[str], must: str = "must be") -> str:
    near = suggestion(str(value), known)
    hint = f"; did you mean {near}?" if near else ""
    return (
        f"{must} {' or '.join(filter(None, (', '.join(known[:-1]), known[-1])))}, not {_input(value)}{hint}"
    )


def _input(value: Any) -> str:
    return shown(repr(value), 60)


PLAIN = {
    "missing": "is missing",
    "union_tag_not_found": "type is missing: say alertmanager, pagerduty, webhook or apprise",
    "greater_than": "must be above {gt:g}, not {value}",
    "greater_than_equal": "must be at least {ge:g}, not {value}",
    "less_than": "must be below {lt:g}, not {value}",
    "less_than_equal": "must be at most {le:g}, not {value}",
    "int_parsing": "must be a whole number, not {value}",
    "int_type": "must be a whole number, not {value}",
    "int_from_float": "must be a whole number, not {value}",
    "float_parsing": "must be a number, not {value}",
    "float_type": "must be a number, not {value}",
    "finite_number": "must be a finite number, not {value}",
    "bool_parsing": "must be true or false, not {value}",
    "bool_type": "must be true or false, not {value}",
    "string_type": "must be a text, not {value}",
    "path_type": "must be a path, not {value}",
    "list_type": "must be a list, not {value}",
    "dict_type": "must hold names and values, not {value}",
    "mapping_type": "must hold names and values, not {value}",
    "model_type": "must hold names and values, not {value}",
    "model_attributes_type": "must hold names and values, not {value}",
    "none_required": "must be empty, not {value}",
}
"""pydantic's error type → what a person reads. Types: https://docs.pydantic.dev/latest/errors/validation_errors/"""


def sentence(found: list[Mistake]) -> str:
    """One mistake as a sentence, several as a list below a heading."""
    if len(found) == 1:
        return f"The settings are wrong: {found[0]}."
    return f"The settings have {len(found)} mistakes:\n" + "\n".join(f"  {mistake}" for mistake in found)
