"""What is wrong with one value of the settings, in words, and how to write it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any

from kagent.durations import meant
from kagent.settings.alert_destinations import DESTINATIONS, schemes_of
from kagent.settings.meant import address_meant, default_of, duration_meant, numbers_meant, unit_meant
from kagent.settings.misplaced import looks_like_path
from kagent.settings.odd_characters import with_odd_character
from kagent.settings.other_words import EVERYTHING
from kagent.settings.right_values import right_value
from kagent.settings.schema_ways import length_unit
from kagent.settings.settings_file import MISSING
from kagent.settings.unknown_names import all_with_words, no_setting, suggestion, unknown_name
from kagent.settings.wrong_value import WrongValue
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
    "int_parsing_size": "must be a smaller whole number, not {value}",
    "int_type": "must be a whole number, not {value}",
    "int_from_float": "must be a whole number{of_units}, not {value}",
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

NUMBERS = (
    "int_parsing", "float_parsing", "greater_than", "greater_than_equal", "less_than", "less_than_equal"
)  # fmt: skip
NAMES_ALL = ("enum", "extra_forbidden", "literal_error", "union_tag_invalid", "union_tag_not_found")
"""Errors whose sentence lists what there is, or says where the name belongs."""
SAYS_HOW = ("; ", " such as ", "?", "in quotes")
"""Parts of a sentence that say how to write it right."""


def problem_of(wrong: WrongValue) -> str:
    """What is wrong, after the setting's name, also where it is a character that looks like another."""
    problem = _with_right_value(_problem(wrong), wrong)
    if wrong.kind == "extra_forbidden":
        return with_odd_character(problem, wrong.name, is_name=True)
    return problem if wrong.is_secret else with_odd_character(problem, wrong.value)


def _with_right_value(problem: str, wrong: WrongValue) -> str:
    """The problem, ending with a right value where it does not say by itself how to mend it."""
    if wrong.is_name:
        return problem
    named = problem.replace(_input(wrong.value), "")
    if any(word in named for word in SAYS_HOW) or wrong.kind in NAMES_ALL or not wrong.section:
        return problem
    # What a section as a whole lacks, its own sentence says.
    if wrong.kind == "value_error" and isinstance(wrong.value, Mapping):
        return problem
    right = right_value(wrong.section, wrong.schema.get("$defs", {}))
    return f"{problem}; write such as {f'{wrong.name}: ' if wrong.kind == 'missing' else ''}{right}"


def _problem(wrong: WrongValue) -> str:
    """What is wrong, but for the characters."""
    read_as = _read_by_yaml(wrong.value) if wrong.kind == "string_type" else None
    if read_as and wrong.value is True and wrong.about.get("examples"):
        # `history: true`: quotes would make a folder of that name.
        return f"must be a text such as {wrong.about['examples'][0]}, not true"
    if read_as:
        # `owner: no` may be Norway, or none.
        is_optional = wrong.value is False and wrong.about.get("default", "") is None
        return f"must be a text, and YAML reads {read_as}: put it in quotes{', or leave it out' if is_optional else ''}"
    if wrong.kind == "extra_forbidden":
        return _unknown(wrong)
    if wrong.kind in ("literal_error", "enum"):
        known = _quoted(wrong.context["expected"])
        every = (
            f"; write [{', '.join(known)}]"
            if isinstance(wrong.name, int) and wrong.value in EVERYTHING
            else ""
        )
        return _turned_around(wrong) or _one_of(wrong.value, known, hint=every)
    if wrong.kind == "union_tag_invalid":
        return _unknown_type(wrong)
    if wrong.kind in PLAIN:
        return _plain(wrong)
    return _with_hint(str(wrong.error["msg"]).removeprefix("Value error, ").strip(), wrong)


def _plain(wrong: WrongValue) -> str:
    """What is wrong by the words of the table."""
    in_words, is_list = PLAIN[wrong.kind], isinstance(wrong.value, list)
    hidden_value = wrong.is_secret or (wrong.kind in HOLDERS and is_list)
    words = in_words.replace(", not {value}", _instead_of_it(wrong, hidden_value))
    of_units = {" s": " of seconds", " h": " of hours"}.get(wrong.unit, "")
    words = words.format(value=_input(wrong.value), unit=wrong.unit, of_units=of_units, **wrong.context)
    if wrong.is_secret and isinstance(wrong.value, Mapping):
        return f"{words}{_in_a_file(wrong)}"
    # Of what lacks something, pydantic's input is all that stands beside it, secrets included.
    if "{value}" not in in_words or (hidden_value and not is_list):
        return words
    meant = _instead(wrong) or ("" if hidden_value else _alone(wrong) or _example(wrong))
    return f"{words}{meant}"


def _instead_of_it(wrong: WrongValue, hidden_value: bool) -> str:
    """What the table's words end with: what stands there, or that nothing does."""
    if wrong.value is None:
        # Of an empty section or list, whose default is to have none.
        return f", and is empty{': leave it out' if wrong.kind == 'list_type' else ''}"
    if not hidden_value:
        return ", not {value}"
    return ", not a list" if isinstance(wrong.value, list) else ""


def _unknown_type(wrong: WrongValue) -> str:
    """What is wrong with the type of a destination."""
    tag = str(wrong.context["tag"])
    problem = _one_of(tag, _quoted(wrong.context["expected_tags"]), "type must be")
    # `type: slack`: one of the services that are reached through another type.
    found = [] if suggestion(tag, DESTINATIONS) else schemes_of(tag)
    urls = " or ".join(f"{scheme}://…" for scheme in found)
    return f"{problem}; did you mean apprise, with url: {urls}?" if 0 < len(found) < 4 else problem


def type_meant(tag: str) -> str | None:
    """The type of destination that this is likely meant to be: by its name, or one that reaches the service of that name."""
    return suggestion(tag, DESTINATIONS) or ("apprise" if tag and schemes_of(tag) else None)


def _turned_around(wrong: WrongValue) -> str | None:
    """``severity: {page: [stalled]}``: where names and what they hold are each one of a few words, and change places; else None."""
    names = wrong.resolved(wrong.around.get("propertyNames", {})).get("enum", ())
    values = wrong.resolved(wrong.around.get("additionalProperties") or {}).get("enum", ())
    value = suggestion(str(wrong.name), values)
    written = wrong.given.written(wrong.where)
    held = [suggestion(str(each), names) for each in (written if isinstance(written, list) else [written])]
    if value is None or wrong.name in names or not held or None in held:
        return None
    return f"the name belongs behind the colon; write {', '.join(f'{name}: {value}' for name in held)}"


def _unknown(wrong: WrongValue) -> str:
    """What is wrong with a name that its section does not have."""
    known, name = wrong.around.get("properties", {}), str(wrong.name)
    section = wrong.resolved(wrong.schema["properties"].get(name, {})).get("properties", {})
    if isinstance(wrong.value, Mapping) and section and set(section) <= set(known):
        return f"there is no setting {shown(name)} here; write what it holds without it"
    # A variable may override what the file has under the right name.
    in_file = wrong.given.written(wrong.where) is not MISSING
    beside = wrong.given.file.lines_beside(wrong.where[:-1]) if in_file else {}
    return unknown_name(name, known, wrong.schema, wrong.value, beside)


def _with_hint(problem: str, wrong: WrongValue) -> str:
    """The problem of one value with how to write it, where the problem does not say so itself."""
    value = wrong.value
    if wrong.unit and isinstance(value, str):
        # By the limits of this setting, which those who read a duration do not know.
        bare = problem.removesuffix(meant(value, length_unit(wrong.about)))
        return f"{bare}{duration_meant(value, wrong.about) or default_of(wrong.about, wrong.unit)}"
    if problem.endswith("?") or wrong.is_secret:
        return problem
    # Of a whole section nothing is repeated: it may hold secrets.
    if (isinstance(value, list) or wrong.unit) and (alone := _alone(wrong)):
        return f"{problem}{alone}"
    if isinstance(value, str):
        near = suggestion(value, wrong.about.get("examples", ())) or address_meant(value, problem)
        if near and near != value:
            return f"{problem}; did you mean {near}?"
    return f"{problem}{default_of(wrong.about, wrong.unit)}"


def _instead(wrong: WrongValue) -> str:
    """How to write it, where the value has the wrong form; empty where that is not known."""
    value = wrong.value
    if wrong.kind == "list_type":
        return _as_list(wrong)
    if wrong.kind in HOLDERS and isinstance(value, list):
        return _without_dashes(wrong)
    if wrong.kind in HOLDERS and isinstance(value, bool | int | float):
        return _names_inside(wrong)
    if wrong.kind == "string_type" and wrong.name == "bootstrap" and isinstance(value, list | Mapping):
        parts = value.values() if isinstance(value, Mapping) else value
        joined = ",".join(re.split(r"[,;\s]+", ",".join(map(str, parts))))
        # A number is a port: `[b, 9092]`, `{host: b, port: 9092}`.
        return "; write " + re.sub(r",(?=\d+(?:,|$))", ":", joined)
    if (
        wrong.kind == "string_type"
        and isinstance(value, Mapping)
        and (path := _joined(value, str(wrong.name)))
    ):
        return f"; write {path}"
    if wrong.kind == "string_type" and wrong.name == "match" and isinstance(value, list) and len(value) > 1:
        entries = ", ".join(f"{{match: {_input(each)}, …}}" for each in value)
        return f"; each has an entry of its own: [{entries}]"
    if wrong.kind == "string_type" and _is_free_text(wrong) and isinstance(value, list) and len(value) > 1:
        return f"; write {_input(', '.join(map(str, value)))}"
    if (
        wrong.kind in HOLDERS
        and len(wrong.where) == 2
        and wrong.where[0] == "groups"
        and isinstance(value, str)
    ):
        return f"; write {{match: {_input(value)}}}"
    return _as_section(wrong, value) if wrong.kind in HOLDERS and isinstance(value, str) else ""


def _is_free_text(wrong: WrongValue) -> bool:
    """Whether any words will do, as people alone read them."""
    return wrong.name == "owner" or wrong.where[-2:-1] == ("labels",)


def _in_a_file(wrong: WrongValue) -> str:
    """``password: {file: /run/secrets/x}``: how to write that a secret stands in a file; empty where it cannot."""
    name, held = f"{wrong.name}_file", list(wrong.value.values())
    path = held[0] if len(held) == 1 and looks_like_path(held[0]) else "/path/to/file"
    return f"; write {name}: {path}" if name in wrong.around.get("properties", {}) else ""


def _joined(value: Mapping[str, Any], name: str) -> str:
    """``spark: {sql: {x: 2}}`` as ``spark.sql.x: 2``, where each section holds one name; else empty."""
    (step, inner), *others = value.items() if value else [("", None)]
    if others or not isinstance(inner, Mapping):
        return f"{name}.{step}: {inner}" if not others and "." in name else ""
    return _joined(inner, f"{name}.{step}")


def _as_section(wrong: WrongValue, value: str) -> str:
    """How to write a text where names and values belong."""
    own = wrong.about or None
    entry = wrong.resolved(wrong.around.get("additionalProperties") or {})
    if own is None and wrong.name in entry.get("properties", {}):
        return f"; a name is missing above it, such as main: {{{wrong.name}: …}}"
    head, colon, rest = value.partition(":")
    if colon and head.strip() in wrong.section.get("properties", {}):
        return f"; write a space behind the colon: {head.strip()}: {rest.strip()}"
    if value in wrong.resolved(own or {}).get("properties", {}):
        return f"; write {{{value}: …}}"
    required: list[str] = entry.get("required", []) if own is None else []
    if len(required) == 1:
        return f"; write {required[0]}: {_input(value)}"
    return _as_one_inside(wrong, value)


def _as_list(wrong: WrongValue) -> str:
    """How to write as a list what is none."""
    value, entry = wrong.value, wrong.resolved(wrong.about.get("items", {}))
    words = entry.get("enum", ())
    if isinstance(value, str) and (not words or set(_words(value, words)) <= set(words)):
        return f"; write [{', '.join(map(_input, _words(value, words)))}]"
    if not isinstance(value, Mapping):
        return f"; there are: {', '.join(words)}" if words else ""
    needed, name = entry.get("required", []), next(iter(value), "")
    # `{match: a}`, as entries of other sections have it, where the text alone belongs.
    if entry.get("type") == "string" and all(isinstance(each, str) for each in value.values()):
        return f"; write [{', '.join(map(_input, value.values()))}]"
    # The entries by their names, as other sections have them.
    if len(needed) == 1 and needed[0] not in value and isinstance(value.get(name), Mapping):
        return f"; begin each entry with a dash, as in - {needed[0]}: {_input(name)}"
    return "; begin each entry with a dash"


def _alone(wrong: WrongValue) -> str:
    """How to write what stands alone in a list, or under one name, where a single value belongs."""
    value = wrong.value
    if wrong.kind in HOLDERS or wrong.kind == "list_type":
        return ""
    if isinstance(value, Mapping) and len(value) == 1:
        value = list(value.values())
    single = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | int | float)
    return f"; write {_input(value[0])}" if single else ""


def _names_inside(wrong: WrongValue) -> str:
    """The names of the section in whose place something else stands."""
    names = wrong.section.get("properties", {})
    return f"; there are: {', '.join(sorted(names))}" if names else ""


def _words(value: str, allowed: Collection[str]) -> Iterator[str]:
    """The parts of a text in which commas divide a list, each as one of ``allowed`` where it is near one."""
    for part in filter(None, (part.strip() for part in value.split(","))):
        if part in EVERYTHING and allowed:
            yield from allowed
        else:
            yield suggestion(part, allowed) or part


def _without_dashes(wrong: WrongValue) -> str:
    """For a list where names and values belong. Nothing of the list itself: it may hold secrets."""
    if wrong.section.get("properties"):
        return "; take out the dashes or brackets"
    names = wrong.resolved(wrong.section.get("propertyNames", {})).get("enum", ())
    # Words of kagent's own are no secrets.
    if wrong.value and all(each in names for each in wrong.value):
        return f"; write {', '.join(f'{name}: …' for name in wrong.value)}"
    return "; begin each entry with a name of its own and a colon, not with a dash"


def _example(wrong: WrongValue) -> str:
    """The number that was likely meant, else the default, so that a person sees how such a value looks."""
    if wrong.kind in NUMBERS and isinstance(wrong.value, int | float | str) and not wrong.unit:
        near = numbers_meant(wrong.value, wrong.about, wrong.kind.startswith("int"))
        if near:
            return f"; did you mean {' or '.join(near[:2])}?"
    if (
        wrong.unit
        and isinstance(wrong.value, int | float)
        and (length := unit_meant(wrong.value, wrong.about))
    ):
        return f"; did you mean {length}?"
    return default_of(wrong.about, wrong.unit) if wrong.kind not in HOLDERS else ""


def _as_one_inside(wrong: WrongValue, value: str) -> str:
    """``security: SASL_SSL`` and ``severity: page``: a word that only one name inside takes, or one for each name."""
    section = wrong.resolved(wrong.about)
    within = section.get("properties", {})
    takes = [name for name, about in within.items() if value in wrong.resolved(about).get("enum", ())]
    if len(takes) == 1:
        return f"; write {{{takes[0]}: {value}}}"
    each = wrong.resolved(section.get("additionalProperties") or {})
    if assigned := re.fullmatch(r"([\w.-]+)\s*(?:=|:\s)\s*(.*)", value):
        known = assigned[1] in within or each.get("type") == "string"
        return f"; write {{{assigned[1]}: {assigned[2]}}}" if known else ""
    names = wrong.resolved(section.get("propertyNames", {})).get("enum", ())
    return f"; write such as {{{names[-1]}: {value}}}" if names and value in each.get("enum", ()) else ""


def _read_by_yaml(value: Any) -> str | None:
    """What YAML makes of a word that was likely meant as one."""
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a date" if isinstance(value, date) else None


def _quoted(expected: str) -> list[str]:
    return re.findall(r"'([^']*)'", expected)


def _one_of(value: Any, known: list[str], must: str = "must be", hint: str = "") -> str:
    word = value[0] if isinstance(value, list) and len(value) == 1 else value
    near, instead = suggestion(str(word), known), no_setting(str(word))
    # `SASL` is as near to SSL; by its words it is one of two others.
    if word not in known and len(holding := all_with_words(str(word), known)) == 2:
        near = " or ".join(holding)
    several = isinstance(value, list) and len(value) > 1
    hint = hint or ("; write one of them" if several else f"; did you mean {near}?" if near else "")
    hint = hint or (f"; {instead}" if instead else "")
    return (
        f"{must} {' or '.join(filter(None, (', '.join(known[:-1]), known[-1])))}, not {_input(value)}{hint}"
    )


def _input(value: Any) -> str:
    """The value as the file has it."""
    if isinstance(value, date):
        return str(value)
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).lower() if isinstance(value, bool) else shown(repr(value), 60)
