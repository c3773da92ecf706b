"""What is wrong with one value of the settings, in words, and how to write it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any

from kagent.settings.alert_destinations import DESTINATIONS, schemes_of
from kagent.settings.given_settings import GivenSettings
from kagent.settings.meant import address_meant, default_of, number_meant
from kagent.settings.odd_characters import with_odd_character
from kagent.settings.schema_ways import inside, resolved
from kagent.settings.settings_file import MISSING, Where
from kagent.settings.unknown_names import suggestion, unknown_name
from kagent.text import shown

HOLDERS = ("dict_type", "mapping_type", "model_type", "model_attributes_type")
"""Errors of what must hold names and values. A list in its place may hold secrets: it is not repeated."""
PLAIN = {
    "missing": "is missing",
    "union_tag_not_found": f"type is missing: say one of {', '.join(DESTINATIONS)}",
    "greater_than": "must be above {gt:g}{unit}, not {value}",
    "greater_than_equal": "must be at least {ge:g}{unit}, not {value}",
    "less_than": "must be below {lt:g}{unit}, not {value}",
    "less_than_equal": "must be at most {le:g}{unit}, not {value}",
    "int_parsing": "must be a whole number, not {value}",
    "int_type": "must be a whole number, not {value}",
    "int_from_float": "must be a whole number, not {value}",
    "float_parsing": "must be a number, not {value}",
    "float_type": "must be a number, not {value}",
    "finite_number": "must be a finite number, not {value}",
    "bool_parsing": "must be true or false, not {value}",
    "bool_type": "must be true or false, not {value}",
    "string_type": "must be a text, not {value}",
    "string_too_long": "must have at most {max_length} characters, not {value}",
    "string_too_short": "must have at least {min_length} characters, not {value}",
    "path_type": "must be a path, not {value}",
    "list_type": "must be a list, not {value}",
    "dict_type": "must hold names and values, not {value}",
    "mapping_type": "must hold names and values, not {value}",
    "model_type": "must hold names and values, not {value}",
    "model_attributes_type": "must hold names and values, not {value}",
    "none_required": "must be empty, not {value}",
}
"""pydantic's error type → what a person reads. Types: https://docs.pydantic.dev/latest/errors/validation_errors/"""


def problem_of(
    error: Mapping[str, Any],
    around: Mapping[str, Any],
    where: Where,
    schema: Mapping[str, Any],
    given: GivenSettings,
) -> str:
    """What is wrong, after the setting's name, also where it is a character that looks like another."""
    problem = _problem(error, around, where, schema, given)
    if error["type"] == "extra_forbidden":
        return with_odd_character(problem, where[-1], is_name=True)
    return problem if _is_secret(around, where) else with_odd_character(problem, error["input"])


def _problem(
    error: Mapping[str, Any],
    around: Mapping[str, Any],
    where: Where,
    schema: Mapping[str, Any],
    given: GivenSettings,
) -> str:
    """What is wrong, but for the characters."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(value, around, where, schema, given)
    if kind in ("literal_error", "enum"):
        return _one_of(value, re.findall(r"'([^']*)'", context["expected"]))
    read_as = _read_by_yaml(value) if kind == "string_type" else None
    if read_as:
        return f"must be a text, and YAML reads {read_as}: put it in quotes"
    if kind == "union_tag_invalid":
        wrong = _one_of(context["tag"], re.findall(r"'([^']*)'", context["expected_tags"]), "type must be")
        # `type: slack`: one of the services that are reached through another type.
        found = [] if "did you mean" in wrong else schemes_of(str(context["tag"]))
        urls = " or ".join(f"{scheme}://…" for scheme in found)
        return f"{wrong}; did you mean apprise, with url: {urls}?" if 0 < len(found) < 4 else wrong
    if kind in PLAIN:
        hidden_value = _is_secret(around, where) or (kind in HOLDERS and isinstance(value, list))
        instead = (
            f", and is empty{_left_out(kind)}" if value is None else "" if hidden_value else ", not {value}"
        )
        instead = ", not a list" if hidden_value and isinstance(value, list) else instead
        words = PLAIN[kind].replace(", not {value}", instead)
        words = words.format(value=_input(value), unit=_unit(around, where), **context)
        # Of what lacks something, pydantic's input is all that stands beside it, secrets included.
        if "{value}" not in PLAIN[kind] or (hidden_value and not isinstance(value, list)):
            return words
        instead = _instead(kind, value, around, where, schema) or (
            "" if hidden_value else _alone(kind, value) or _example(kind, value, around, where)
        )
        return f"{words}{instead}"
    return _with_hint(str(error["msg"]).removeprefix("Value error, ").strip(), value, around, where)


def _unknown(
    value: Any, around: Mapping[str, Any], where: Where, schema: Mapping[str, Any], given: GivenSettings
) -> str:
    """What is wrong with a name that its section does not have."""
    known, name = around.get("properties", {}), str(where[-1])
    section = resolved(schema["properties"].get(name, {}), schema.get("$defs", {})).get("properties", {})
    if isinstance(value, Mapping) and section and set(section) <= set(known):
        return f"there is no setting {shown(name)} here; write what it holds without it"
    # A variable may override what the file has under the right name.
    in_file = given.written(where) is not MISSING
    beside = given.file.lines_beside(where[:-1]) if in_file else {}
    return unknown_name(name, known, schema, value, beside)


def _with_hint(problem: str, value: Any, around: Mapping[str, Any], where: Where) -> str:
    """The problem of one value with how to write it, where the problem does not say so itself."""
    if problem.endswith("?") or _is_secret(around, where):
        return problem
    if isinstance(value, list) and len(value) == 1:
        return f"{problem}; write {_input(value[0])}"
    if isinstance(value, str) and (near := address_meant(value, problem)):
        return f"{problem}; did you mean {near}?"
    about = around.get("properties", {}).get(where[-1], {}) if where else {}
    return f"{problem}{default_of(about, _unit(around, where))}"


def _instead(
    kind: str, value: Any, around: Mapping[str, Any], where: Where, schema: Mapping[str, Any]
) -> str:
    """How to write it, where the value has the wrong form; empty where that is not known."""
    if kind == "list_type" and isinstance(value, str | Mapping):
        own = around.get("properties", {}).get(where[-1], {})
        return _as_list(value, resolved(own.get("items", {}), schema.get("$defs", {})))
    if kind in HOLDERS and isinstance(value, list):
        return _without_dashes(around, where, schema)
    if kind in HOLDERS and isinstance(value, bool | int | float):
        return _names_inside(around, where, schema)
    if kind == "string_type" and where[-1] == "bootstrap" and isinstance(value, list):
        return f"; write {','.join(map(str, value))}"
    if kind in HOLDERS and len(where) == 2 and where[0] == "groups" and isinstance(value, str):
        return f"; write {{match: {_input(value)}}}"
    if kind not in HOLDERS or not isinstance(value, str):
        return ""
    own = around.get("properties", {}).get(where[-1]) if where else None
    entry = resolved(around.get("additionalProperties") or {}, schema.get("$defs", {}))
    if own is None and where[-1] in entry.get("properties", {}):
        return f"; a name is missing above it, such as main: {{{where[-1]}: …}}"
    known = resolved(own or {}, schema.get("$defs", {})).get("properties", {})
    if value in known:
        return f"; write {{{value}: …}}"
    required: list[str] = entry.get("required", []) if own is None else []
    return (
        f"; write {required[0]}: {_input(value)}"
        if len(required) == 1
        else _as_one_inside(own, value, schema)
    )


def _as_list(value: str | Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """How to write it as a list; ``entry``: the schema of one entry."""
    if isinstance(value, str):
        return f"; write [{', '.join(map(_input, _words(value, entry.get('enum', ()))))}]"
    needed, name = entry.get("required", []), next(iter(value), "")
    # The entries by their names, as other sections have them.
    if len(needed) == 1 and needed[0] not in value and isinstance(value.get(name), Mapping):
        return f"; begin each entry with a dash, as in - {needed[0]}: {_input(name)}"
    return "; begin each entry with a dash"


def _alone(kind: str, value: Any) -> str:
    """How to write what stands alone in a list, or under one name, where a single value belongs."""
    if kind in HOLDERS or kind == "list_type":
        return ""
    if isinstance(value, Mapping) and len(value) == 1:
        value = list(value.values())
    single = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | int | float)
    return f"; write {_input(value[0])}" if single else ""


def _names_inside(around: Mapping[str, Any], where: Where, schema: Mapping[str, Any]) -> str:
    """The names of the section in whose place something else stands."""
    names = resolved(inside(around, where[-1]) if where else {}, schema.get("$defs", {})).get(
        "properties", {}
    )
    return f"; there are: {', '.join(sorted(names))}" if names else ""


def _words(value: str, allowed: Collection[str]) -> Iterator[str]:
    """The parts of a text in which commas divide a list, each as one of ``allowed`` where it is near one."""
    for part in filter(None, (part.strip() for part in value.split(","))):
        yield suggestion(part, allowed) or part


def _without_dashes(around: Mapping[str, Any], where: Where, schema: Mapping[str, Any]) -> str:
    """For a list where names and values belong. Nothing of the list itself: it may hold secrets."""
    own = resolved(inside(around, where[-1]) if where else {}, schema.get("$defs", {}))
    if own.get("properties"):
        return "; take out the dashes"
    return "; begin each entry with a name of its own and a colon, not with a dash"


def _example(kind: str, value: Any, around: Mapping[str, Any], where: Where) -> str:
    """The number that was likely meant, else the default, so that a person sees how such a value looks."""
    if kind in ("int_parsing", "float_parsing") and isinstance(value, str):
        near = number_meant(value, kind == "int_parsing")
        if near:
            return f"; did you mean {near}?"
    about = around.get("properties", {}).get(where[-1], {}) if where else {}
    return default_of(about, _unit(around, where)) if kind not in HOLDERS else ""


def _as_one_inside(own: Mapping[str, Any] | None, value: str, schema: Mapping[str, Any]) -> str:
    """``security: SASL_SSL`` and ``severity: page``: a word that only one name inside takes, or one for each name."""
    defs = schema.get("$defs", {})
    section = resolved(own or {}, defs)
    within = section.get("properties", {})
    takes = [name for name, about in within.items() if value in resolved(about, defs).get("enum", ())]
    if len(takes) == 1:
        return f"; write {{{takes[0]}: {value}}}"
    head, colon, rest = value.partition(":")
    if colon and head.strip() in within:
        return f"; write a space behind the colon: {head.strip()}: {rest.strip()}"
    each = resolved(section.get("additionalProperties") or {}, defs)
    if assigned := re.fullmatch(r"([\w.-]+)\s*=\s*(.*)", value):
        known = assigned[1] in within or each.get("type") == "string"
        return f"; write {{{assigned[1]}: {assigned[2]}}}" if known else ""
    names = resolved(section.get("propertyNames", {}), defs).get("enum", ())
    return f"; write such as {{{names[-1]}: {value}}}" if names and value in each.get("enum", ()) else ""


def _left_out(kind: str) -> str:
    """Of an empty section or list, whose default is to have none."""
    return ": leave it out" if kind == "list_type" else ""


def _read_by_yaml(value: Any) -> str | None:
    """What YAML makes of a word that was likely meant as one."""
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a date" if isinstance(value, date) else None


def _one_of(value: Any, known: list[str], must: str = "must be") -> str:
    near = suggestion(str(value), known)
    hint = f"; did you mean {near}?" if near else ""
    return (
        f"{must} {' or '.join(filter(None, (', '.join(known[:-1]), known[-1])))}, not {_input(value)}{hint}"
    )


def _unit(around: Mapping[str, Any], where: Where) -> str:
    """`` s`` or `` h`` behind the limit of a duration."""
    about = around.get("properties", {}).get(where[-1], {}) if where else {}
    kinds = {each.get("description") for each in about.get("anyOf", ())}
    return " s" if "seconds" in kinds else " h" if "hours" in kinds else ""


def _is_secret(around: Mapping[str, Any], where: Where) -> bool:
    """Whether the value must not be repeated; pydantic marks a SecretStr so."""
    about = around.get("properties", {}).get(where[-1], {}) if where else {}
    return any(each.get("writeOnly") for each in (about, *about.get("anyOf", ())))


def _input(value: Any) -> str:
    """The value as the file has it."""
    return str(value).lower() if isinstance(value, bool) else shown(repr(value), 60)
