"""Every mistake in file and variables, each with its place and, where one is near, a suggestion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from kagent.settings.alert_destinations import DESTINATIONS
from kagent.settings.given_settings import DELIMITER, PREFIX, GivenSettings
from kagent.settings.misplaced import misplaced, problem_of_text
from kagent.settings.odd_characters import with_odd_character
from kagent.settings.problems import HOLDERS, problem_of, type_meant
from kagent.settings.schema_ways import resolved, schema_at, walk, ways_in
from kagent.settings.sections_meant import NAME, name_inside, nameless_entries, with_meant_sections
from kagent.settings.settings_file import MISSING, SettingsFile, Twice, Where
from kagent.settings.unknown_names import (
    suggestion,
    unknown_name,
    unknown_variable,
    with_own_name,
    without_own_names,
)
from kagent.settings.wrong_value import WrongValue
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
    schema = schema_of(settings)
    nameless = dict(nameless_entries(given.file.values, schema))
    found += [
        Mistake(given.place(where), dotted(where), _nameless(given, where, to))
        for where, to in nameless.items()
    ]
    for each in error.errors(include_url=False):
        wrong = _as_written(WrongValue.of(each, schema, given))
        # What such an entry holds is checked once it has a name.
        if any(wrong.where[: len(section)] == section for section in nameless):
            continue
        problem = _variable_problem(wrong) or problem_of(wrong)
        if wrong.kind == "extra_forbidden" and not re.search("did you mean|; write ", problem):
            problem = _instead_of_a_missing_one(error, each["loc"], problem)
        found.append(_mistake(wrong, problem))
        if wrong.kind.startswith("union_tag_"):
            found += _beside_the_type(wrong.where, each["input"], given, schema)
    return [mistake for mistake in found if not _is_misspelt(mistake, found)]


def _as_written(wrong: WrongValue) -> WrongValue:
    """With the value as the file has it, before pydantic read it."""
    # Of a wrong name, pydantic's input is the name.
    written = MISSING if wrong.is_name else wrong.given.written(wrong.where)
    return wrong if written is MISSING else replace(wrong, error={**wrong.error, "input": written})


def _mistake(wrong: WrongValue, problem: str) -> Mistake:
    given = wrong.given
    place = given.place(wrong.where) if wrong.is_name else given.place_named(wrong.where, problem)
    return Mistake(place, dotted(wrong.where), problem)


def _nameless(given: GivenSettings, where: Where, to: tuple[str, ...]) -> str:
    """What is wrong where an entry's settings stand in the place of entries; ``to``: the way on to the place of an entry."""
    own, names = name_inside(given.file.written(where)), given.file.lines_beside(where)
    inner = f"{own or NAME}: {{{', '.join(f'{name}: …' for name in names if not own or name != 'name')}}}"
    for step in reversed(to):
        inner = f"{step}: {{{inner}}}"
    if own:
        return f"the name stands above what it names; write {inner}"
    return f"the entry has no name; write {inner}, with a name of your own"


def _variable_problem(wrong: WrongValue) -> str | None:
    """What is wrong with the form of the variable that gave the value; None where a file gave it, or the form is right."""
    place = wrong.given.place(wrong.where)
    if not place.startswith(PREFIX):
        return None
    if wrong.kind == "list_type":
        return _no_json(place, wrong.where)
    joined = wrong.kind in (*HOLDERS, "extra_forbidden")
    return _joined_by_one(place, wrong.schema) if joined else None


def _is_misspelt(mistake: Mistake, found: Iterable[Mistake]) -> bool:
    """Whether what is missing stands there under a wrong name, which is a mistake of its own."""
    section, _, name = mistake.setting.rpartition(".")
    return mistake.problem.startswith("is missing") and any(
        # A name may hold dots itself: `bootstrap.servers`.
        other.setting.startswith(f"{section}.") and f"did you mean {name}?" in other.problem
        for other in found
    )


def _no_json(place: str, where: Where) -> str | None:
    """Of a variable for one entry of a list: ``KAGENT_GROUPS__0__MATCH``."""
    whole = PREFIX + DELIMITER.join(map(str, where)).upper()
    return f"a list is JSON in one variable, such as {whole}='[…]'" if place != whole else None


def _beside_the_type(
    where: Where, value: Any, given: GivenSettings, schema: Mapping[str, Any]
) -> list[Mistake]:
    """What is wrong in a destination besides its type: for the type that was likely meant, else for every type."""
    written = value if isinstance(value, Mapping) else {}
    near = type_meant(str(written.get("type", "")))
    per_type = []
    for tag in (near,) if near else DESTINATIONS:
        found = []
        try:
            DESTINATIONS[tag].model_validate({**written, "type": tag})
        except ValidationError as error:
            for each in error.errors(include_url=False):
                # A value error of the whole follows from settings that only some types have.
                if each["loc"] and (near or each["type"] != "missing"):
                    wrong = WrongValue.of(each, schema, given, (*where, tag))
                    found.append(Mistake(given.place(wrong.where), dotted(wrong.where), problem_of(wrong)))
        per_type.append(found)
    first, *others = per_type
    return [mistake for mistake in first if all(_names(found, mistake) for found in others)]


def _names(found: list[Mistake], mistake: Mistake) -> bool:
    return any(other.setting == mistake.setting for other in found)


def _joined_by_one(place: str, schema: Mapping[str, Any]) -> str | None:
    """Of a variable with one underscore where two belong: ``KAGENT_CLUSTERS__MAIN_BOOTSTRAP``."""
    ways = list(ways_in(schema))
    near = with_own_name(place, ways) or without_own_names(ways).get(place.upper().replace(DELIMITER, "_"))
    return f"there is no such variable; did you mean {near}?" if near not in (None, place) else None


def _instead_of_a_missing_one(error: ValidationError, loc: Where, problem: str) -> str:
    """The problem of an unknown name; where one needed name is missing beside it, that one is likely meant."""
    beside = [each for each in error.errors(include_url=False) if each["loc"][:-1] == loc[:-1]]
    missing = [str(each["loc"][-1]) for each in beside if each["type"] == "missing"]
    unknown = [each for each in beside if each["type"] == "extra_forbidden"]
    return (
        f"there is no setting {shown(str(loc[-1]))}; did you mean {missing[0]}?"
        if len(missing) == len(unknown) == 1
        else problem
    )


def as_meant(settings: type[BaseModel], given: GivenSettings) -> GivenSettings:
    """What was given, with the sections of the file under the names that are meant."""
    return given.with_file(with_meant_sections(given.file, schema_of(settings)))


def not_replaced_or_no_path(settings: type[BaseModel], given: GivenSettings) -> list[Mistake]:
    """Texts that cannot be meant, whatever their setting takes."""
    found = []
    for where, text in misplaced(given):
        if (problem := problem_of_text(where, text, given, schema_of(settings))) is not None:
            found.append(Mistake(given.place(where), dotted(where), problem))
    return found


def without_repetition(found: Iterable[Mistake], texts: Collection[Mistake]) -> list[Mistake]:
    """The mistakes without those that the ``texts`` make besides: of the same setting, or of its section and about it."""
    return [mistake for mistake in found if not any(_is_of(mistake, text) for text in texts)]


def _is_of(mistake: Mistake, text: Mistake) -> bool:
    section, _, name = text.setting.rpartition(".")
    about = mistake.setting == section and re.search(rf"\b{re.escape(name)}\b", mistake.problem)
    return mistake.setting == text.setting or bool(about)


@cache
def schema_of(settings: type[BaseModel]) -> dict[str, Any]:
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
    schema = schema_of(settings)
    found = []
    for each in error.errors(include_url=False):
        wrong = WrongValue.of(each, schema, given)
        if wrong.kind == "value_error" and not absent(
            each["msg"], wrong.where, taken, beside=not isinstance(each["input"], Mapping)
        ):
            found.append(_mistake(wrong, problem_of(wrong)))
    return found


def meant_names(settings: type[BaseModel], error: ValidationError) -> Iterator[Where]:
    """The ways to what unknown names were likely meant to be: that it is missing is no mistake of its own."""
    schema = schema_of(settings)
    for each in error.errors(include_url=False):
        where, inner = walk(schema, tuple(each["loc"]))
        near = suggestion(str(where[-1]), inner.get("properties", ())) if where else None
        if each["type"] == "extra_forbidden" and near:
            yield (*where[:-1], near)


def absent(problem: str, where: Where, taken: Collection[Where], beside: bool = True) -> bool:
    """Whether the problem is about something that was taken out in this place or ``beside`` it. A whole section is checked by what it
    holds: that its sentence has the name of another one is chance."""
    names = [str(way[-1]) for way in taken if way[:-1] == where or (beside and way[:-1] == where[:-1])]
    return any(re.search(rf"\b{re.escape(name)}\b", problem) for name in names)


def overridden(settings: type[BaseModel], given: GivenSettings, error: ValidationError) -> list[str]:
    """A sentence for each wrong value of the file that a variable overrides; ``error`` is that of the file by itself."""
    schema = schema_of(settings)
    found = []
    for each in error.errors(include_url=False):
        wrong = WrongValue.of(each, schema, given)
        where = wrong.where
        variable, written = given.place(where), given.file.written(where)
        # A section that is wrong as a whole may be so for what the variables add to it.
        if variable not in given.variables.values() or written is MISSING or isinstance(written, Mapping):
            continue
        problem = problem_of(wrong)
        mistake = Mistake(given.file.place(where), dotted(where), problem)
        found.append(f"{mistake}{'' if problem.endswith('?') else ';'} {variable} overrides it.")
    return found


def variables_of(settings: type[BaseModel], given: GivenSettings, error: ValidationError) -> dict[str, Where]:
    """The variables that gave what is wrong, each with the way to it."""
    schema, names = schema_of(settings), set(given.variables.values())
    ways = [walk(schema, tuple(each["loc"]))[0] for each in error.errors(include_url=False)]
    return {given.place(way): way for way in ways if given.place(way) in names}


def one_of_the_section(variable: str, where: Where, name: str, settings: type[BaseModel]) -> str | None:
    """``KAGENT_PIPELINE=trigger=1s``: the variable of the one setting that a variable of its section was to give."""
    near = suggestion(name, _part(settings, where).get("properties", ()))
    return f"{variable}{DELIMITER}{near.upper()}" if near else None


def only_one_that_takes(word: str, where: Where, settings: type[BaseModel]) -> str | None:
    """``KAGENT_CLUSTERS__MAIN__SECURITY=SSL``: the one setting of this section that takes the word; None if it is not one."""
    defs = schema_of(settings).get("$defs", {})
    within = _part(settings, where).get("properties", {})
    takes = [name for name, about in within.items() if word in resolved(about, defs).get("enum", ())]
    return takes[0] if len(takes) == 1 else None


def needed_of_an_entry(settings: type[BaseModel], where: Where) -> list[str]:
    """What each entry of the list at this place must have; nothing where it is no list of sections."""
    entry = _part(settings, where).get("items", {})
    needed: list[str] = resolved(entry, schema_of(settings).get("$defs", {})).get("required", [])
    return needed


def _part(settings: type[BaseModel], where: Where) -> Mapping[str, Any]:
    """The schema of the setting or section at this place."""
    return schema_at(schema_of(settings), where, {})


def take_out(values: dict[str, Any], settings: type[BaseModel], error: ValidationError) -> list[Where]:
    """Take the wrong values out of ``values``, or the sections that hold them; returns the ways to what is gone."""
    schema = schema_of(settings)
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
    return Mistake(f"{file.path}:{line}", dotted(where), f"is given twice (first at line {first}); keep one")


def _unknown_at_top(settings: type[BaseModel], given: GivenSettings) -> list[Mistake]:
    known = settings.model_fields
    names = [name for name in given.file.values if name not in known]
    variables = [name for where, name in given.variables.items() if where[0] not in known]
    if not names and not variables:
        return []
    schema = schema_of(settings)
    top, values = schema["properties"], given.file.values
    beside = given.file.lines_beside(())
    problems = {n: unknown_name(n, top, schema, values[n], beside) for n in names}
    found = [
        Mistake(given.file.place((n,)), "", with_odd_character(problem, n, is_name=True))
        for n, problem in problems.items()
    ]
    return found + [Mistake(name, "", unknown_variable(name, schema)) for name in variables]


def dotted(where: Where) -> str:
    """``groups[0].match``"""
    text = ""
    for step in where:
        text += f"[{step}]" if isinstance(step, int) else f".{shown(str(step))}" if text else shown(str(step))
    return text


def sentence(found: list[Mistake]) -> str:
    """One mistake as a sentence, several as a list below a heading."""
    if len(found) == 1:
        return f"The settings are wrong: {found[0]}" + ("" if str(found[0]).endswith("?") else ".")
    return f"The settings have {len(found)} mistakes:\n" + "\n".join(f"  {mistake}" for mistake in found)
