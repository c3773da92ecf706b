"""Every mistake in file and variables, each with its place and, where one is near, a suggestion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from kagent.settings.alert_destinations import DESTINATIONS, schemes_of
from kagent.settings.given_settings import PREFIX, GivenSettings
from kagent.settings.meant import default_of, number_meant
from kagent.settings.schema_ways import inside, resolved, walk, ways_in
from kagent.settings.sections_meant import with_meant_sections
from kagent.settings.settings_file import MISSING, SettingsFile, Twice, Where
from kagent.settings.unknown_names import suggestion, unknown_name, unknown_variable, with_own_name
from kagent.text import shown


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: where it stands (``kagent.yaml:7`` or a variable), which setting, what is wrong."""

    place: str
    setting: str
    problem: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.setting, self.problem) if part)


def mistakes(settings: type[BaseModel], given: GivenSettings, error: ValidationError | None) -> list[Mistake]:
    """All that pydantic found, what is given twice, and the unknown names at the top, which it ignores."""
    found = [_twice(given.file, each) for each in given.file.twice]
    found += _unknown_at_top(settings, given)
    if error is None:
        return found
    # pydantic reports a way and a type; names that exist at that place stand only in the schema.
    schema = _schema(settings)
    for each in error.errors(include_url=False):
        where, inner = walk(schema, tuple(each["loc"]))
        # Of a wrong name, pydantic's input is the name.
        written = MISSING if "[key]" in each["loc"] else given.written(where)
        about = dict(each) if written is MISSING else {**each, "input": written}
        place = given.place(where)
        problem = _joined_by_one(place, each["type"], schema) or _problem(about, inner, where, schema, given)
        if each["type"] == "extra_forbidden" and "did you mean" not in problem:
            problem = _instead_of_a_missing_one(error, each["loc"], problem)
        found.append(Mistake(given.place_named(where, problem), _dotted(where), problem))
        if each["type"].startswith("union_tag_"):
            found += _beside_the_type(where, each["input"], given, schema)
    return found


def _beside_the_type(
    where: Where, value: Any, given: GivenSettings, schema: Mapping[str, Any]
) -> list[Mistake]:
    """What is wrong in a destination besides its type: for the type that was likely meant, else for every type."""
    written = value if isinstance(value, Mapping) else {}
    near = suggestion(str(written.get("type", "")), DESTINATIONS)
    per_type = []
    for tag in (near,) if near else DESTINATIONS:
        found = []
        try:
            DESTINATIONS[tag].model_validate({**written, "type": tag})
        except ValidationError as error:
            for each in error.errors(include_url=False):
                # A value error of the whole follows from settings that only some types have.
                if each["loc"] and (near or each["type"] != "missing"):
                    at, inner = walk(schema, (*where, tag, *each["loc"]))
                    problem = _problem(each, inner, at, schema, given)
                    found.append(Mistake(given.place(at), _dotted(at), problem))
        per_type.append(found)
    first, *others = per_type
    return [mistake for mistake in first if all(_names(found, mistake) for found in others)]


def _names(found: list[Mistake], mistake: Mistake) -> bool:
    return any(other.setting == mistake.setting for other in found)


def _joined_by_one(place: str, kind: str, schema: Mapping[str, Any]) -> str | None:
    """Of a variable with one underscore where two belong: ``KAGENT_CLUSTERS__MAIN_BOOTSTRAP``."""
    if not place.startswith(PREFIX) or kind not in (*HOLDERS, "extra_forbidden"):
        return None
    near = with_own_name(place, ways_in(schema))
    return f"there is no such variable; did you mean {near}?" if near not in (None, place) else None


def _instead_of_a_missing_one(error: ValidationError, loc: Where, problem: str) -> str:
    """The problem of an unknown name; where one needed name is missing beside it, that one is likely meant."""
    missing = [
        str(each["loc"][-1])
        for each in error.errors(include_url=False)
        if each["type"] == "missing" and each["loc"][:-1] == loc[:-1]
    ]
    return (
        f"there is no setting {shown(str(loc[-1]))}; did you mean {missing[0]}?"
        if len(missing) == 1
        else problem
    )


def as_meant(settings: type[BaseModel], given: GivenSettings) -> GivenSettings:
    """What was given, with the sections of the file under the names that are meant."""
    return given.with_file(with_meant_sections(given.file, _schema(settings)))


@cache
def _schema(settings: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of the settings: made only once something is wrong, as it takes a quarter of a command's start."""
    return settings.model_json_schema()


def in_order(found: Iterable[Mistake]) -> list[Mistake]:
    """Once each (a union may report the same mistake for several of its members), by the lines of the file, then by variable."""
    return sorted(dict.fromkeys(found), key=_order)


def hidden(
    settings: type[BaseModel], given: GivenSettings, error: ValidationError, taken: Collection[Where]
) -> list[Mistake]:
    """What pydantic found once the wrong values were taken out: it checks values beside each other only where each is right.

    ``taken``: the ways to what was taken out. What follows from its absence is no mistake of the person's.
    """
    schema = _schema(settings)
    found = []
    for each in error.errors(include_url=False):
        where, inner = walk(schema, tuple(each["loc"]))
        if each["type"] == "value_error" and not absent(each["msg"], where, taken):
            problem = _problem(dict(each), inner, where, schema, given)
            found.append(Mistake(given.place_named(where, problem), _dotted(where), problem))
    return found


def absent(problem: str, where: Where, taken: Collection[Where]) -> bool:
    """Whether the problem is about something that was taken out beside or in this place."""
    names = [str(way[-1]) for way in taken if way[:-1] in (where, where[:-1])]
    return any(re.search(rf"\b{re.escape(name)}\b", problem) for name in names)


def overridden(settings: type[BaseModel], given: GivenSettings, error: ValidationError) -> list[str]:
    """A sentence for each wrong value of the file that a variable overrides; ``error`` is that of the file by itself."""
    schema = _schema(settings)
    found = []
    for each in error.errors(include_url=False):
        where, inner = walk(schema, tuple(each["loc"]))
        variable, written = given.place(where), given.file.written(where)
        # A section that is wrong as a whole may be so for what the variables add to it.
        if variable not in given.variables.values() or written is MISSING or isinstance(written, Mapping):
            continue
        problem = _problem(each, inner, where, schema, given)
        mistake = Mistake(given.file.place(where), _dotted(where), problem)
        found.append(f"{mistake}{'' if problem.endswith('?') else ';'} {variable} overrides it.")
    return found


def variables_of(settings: type[BaseModel], given: GivenSettings, error: ValidationError) -> dict[str, Where]:
    """The variables that gave what is wrong, each with the way to it."""
    schema, names = _schema(settings), set(given.variables.values())
    ways = [walk(schema, tuple(each["loc"]))[0] for each in error.errors(include_url=False)]
    return {given.place(way): way for way in ways if given.place(way) in names}


def take_out(values: dict[str, Any], settings: type[BaseModel], error: ValidationError) -> list[Where]:
    """Take the wrong values out of ``values``, or the sections that hold them; returns the ways to what is gone."""
    schema = _schema(settings)
    ways = [walk(schema, tuple(each["loc"]))[0] for each in error.errors(include_url=False)]
    gone = [way for way in ways if _taken(values, way)]
    return gone or list({around for way in ways if (around := _nearest_taken(values, way))})


def _nearest_taken(values: dict[str, Any], way: Where) -> Where | None:
    """Take out the least that holds this: of ``scopes[0]`` the list. Returns the way to it."""
    return next((way[:end] for end in range(len(way) - 1, 0, -1) if _taken(values, way[:end])), None)


def _taken(values: dict[str, Any], way: Where) -> bool:
    *above, last = way or (None,)
    at: Any = values
    for step in above:
        at = at[step] if _holds(at, step) else None
    # Nothing of a list: the places of what follows are in the messages.
    if not isinstance(at, dict) or last not in at:
        return False
    del at[last]
    return True


def _holds(at: Any, step: Any) -> bool:
    return (isinstance(at, dict) and step in at) or (
        isinstance(at, list) and isinstance(step, int) and step < len(at)
    )


def _order(mistake: Mistake) -> tuple[bool, int, str]:
    line = re.search(r":(\d+)$", mistake.place)
    return line is None, int(line[1]) if line else 0, mistake.place


def _twice(file: SettingsFile, twice: Twice) -> Mistake:
    where, line, first = twice
    return Mistake(f"{file.path}:{line}", _dotted(where), f"is given twice (first at line {first}); keep one")


def _unknown_at_top(settings: type[BaseModel], given: GivenSettings) -> list[Mistake]:
    known = settings.model_fields
    names = [name for name in given.file.values if name not in known]
    variables = [name for where, name in given.variables.items() if where[0] not in known]
    if not names and not variables:
        return []
    schema = _schema(settings)
    top, values = schema["properties"], given.file.values
    beside = given.file.lines_beside(())
    found = [
        Mistake(given.file.place((n,)), "", unknown_name(n, top, schema, values[n], beside)) for n in names
    ]
    return found + [Mistake(name, "", unknown_variable(name, schema)) for name in variables]


def _dotted(where: Where) -> str:
    text = ""
    for step in where:
        text += f"[{step}]" if isinstance(step, int) else f".{shown(str(step))}" if text else shown(str(step))
    return text


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


def _problem(
    error: Mapping[str, Any],
    around: Mapping[str, Any],
    where: Where,
    schema: Mapping[str, Any],
    given: GivenSettings,
) -> str:
    """What is wrong, after the setting's name."""
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
        instead = ", and is empty" if value is None else "" if hidden_value else ", not {value}"
        instead = ", not a list" if hidden_value and isinstance(value, list) else instead
        words = PLAIN[kind].replace(", not {value}", instead)
        words = words.format(value=_input(value), unit=_unit(around, where), **context)
        if hidden_value and not isinstance(value, list):
            return words
        instead = _instead(kind, value, around, where, schema) or (
            "" if hidden_value else _alone(kind, value) or _example(kind, value, around, where)
        )
        return f"{words}{instead}"
    return _with_hint(str(error["msg"]).removeprefix("Value error, ").strip(), value, around, where)


def _with_hint(problem: str, value: Any, around: Mapping[str, Any], where: Where) -> str:
    """The problem of one value with how to write it, where the problem does not say so itself."""
    if problem.endswith("?") or _is_secret(around, where):
        return problem
    if isinstance(value, list) and len(value) == 1:
        return f"{problem}; write {_input(value[0])}"
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
    names = resolved(section.get("propertyNames", {}), defs).get("enum", ())
    return f"; write such as {{{names[-1]}: {value}}}" if names and value in each.get("enum", ()) else ""


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


def sentence(found: list[Mistake]) -> str:
    """One mistake as a sentence, several as a list below a heading."""
    if len(found) == 1:
        return f"The settings are wrong: {found[0]}" + ("" if str(found[0]).endswith("?") else ".")
    return f"The settings have {len(found)} mistakes:\n" + "\n".join(f"  {mistake}" for mistake in found)
