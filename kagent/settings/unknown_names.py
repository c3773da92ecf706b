"""Names of settings and variables that do not exist: which one was likely meant, or where it belongs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from kagent.settings.given_settings import DELIMITER, OTHER_VARIABLES, PREFIX
from kagent.settings.meant import section_meant
from kagent.settings.other_words import (
    NO_SETTING,
    NO_SETTING_BESIDE,
    NO_SETTING_WITH,
    meant_by,
    meant_by_part,
)
from kagent.settings.schema_ways import entry_kinds, inside, resolved, ways_in
from kagent.text import shown

NOTHING: Mapping[str, int | None] = {}


def unknown_variable(variable: str, schema: Mapping[str, Any]) -> str:
    """What is wrong with a variable that is no setting."""
    if (instead := no_setting(variable.upper().removeprefix(PREFIX))) is not None:
        return f"there is no such variable; {instead}"
    if variable.upper() in OTHER_VARIABLES:
        return f"is written in capitals; did you mean {variable.upper()}?"
    near = _near_variable(variable.upper(), schema)
    return f"there is no such variable; {f'did you mean {near}?' if near else '`kagent settings --schema` prints all settings'}"


def _near_variable(variable: str, schema: Mapping[str, Any]) -> str | None:
    ways = list(ways_in(schema))
    # `KAGENT_WORKER_TICK`: steps are joined by two underscores, and one is what people write.
    whole = without_own_names(ways)
    near = get_close_matches(variable.replace(DELIMITER, "_"), whole, 1, 0.9)
    if near:
        return whole[near[0]]
    named = with_own_name(variable, ways)
    if named:
        return named
    # `KAGENT_THRESHOLD`, `KAGENT_SECURITY_PROTOCOL`: what stands above it is missing.
    wanted = variable.removeprefix(PREFIX).replace(DELIMITER, "_")
    ending = [way for way in ways if f"_{'_'.join(way).upper()}".endswith(f"_{wanted}")]
    if ending:
        return _variable(min(ending, key=len))
    # Without the prefix, which would make any two variables alike.
    head, *rest = variable.removeprefix(PREFIX).split(DELIMITER, 1)
    # Those are no sections: nothing stands below `KAGENT_CLUSTER`.
    others = [] if rest else [name.removeprefix(PREFIX) for name in OTHER_VARIABLES]
    if top := suggestion(head, (*schema["properties"], *others)):
        return PREFIX + DELIMITER.join((top.upper(), *rest))
    elsewhere = _near_elsewhere(wanted, [way for way in ways if way[-1]])
    return _variable(elsewhere) if elsewhere else None


def without_own_names(ways: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Every variable without a name of the person's own choice, by how it looks with one underscore between the steps."""
    return {_variable(way).replace(DELIMITER, "_"): _variable(way) for way in ways if "" not in way}


def with_own_name(variable: str, ways: Iterable[tuple[str, ...]]) -> str | None:
    """``KAGENT_CLUSTERS_MAIN_BOOTSTRAP``: a name of the person's own choice between known ones, joined by one underscore."""
    for way in ways:
        pattern = "_+".join(re.escape(step.upper()) or "(.+?)" for step in way)
        found = re.fullmatch(f"{PREFIX}{pattern}", variable) if "" in way and way[-1] else None
        if found:
            names = iter(found.groups())
            return _variable(tuple(step or next(names) for step in way))
    return None


def _variable(way: tuple[str, ...]) -> str:
    return PREFIX + DELIMITER.join(step.upper() or "<NAME>" for step in way)


def no_setting(name: str) -> str | None:
    """What there is in the place of something that people look for in the settings in vain, by its name or a word of it."""
    folded = _folded(name)
    words = (NO_SETTING_WITH.get(word) for word in folded.split("_"))
    return NO_SETTING.get(folded) or next(filter(None, words), None)


def unknown_name(
    name: str,
    known: Mapping[str, Any],
    schema: Mapping[str, Any],
    value: Any = None,
    beside: Mapping[str, int | None] = NOTHING,
) -> str:
    """What is wrong with a name that its section, with the names ``known``, does not have.

    ``value``: what it holds; ``beside``: the names that the file has beside it, each with its line.
    """
    if name.isdigit() and value is None:
        # `{threshold: 1,5}` is threshold 1 and a setting 5 to YAML, which holds nothing.
        return f"there is no setting {name}; a decimal number has a point, as in 1.{name}"
    names = sorted(known)
    if name[:1].isspace() and not name[0].isascii():
        return f"there is no setting {shown(name)}; what indents it is no space to YAML, so write spaces"
    if (instead := no_setting(name) or _no_setting_beside(name, known)) is not None:
        return f"there is no setting {shown(name)}; {instead}"
    defs = schema.get("$defs", {})
    dotted = tuple(name.split("."))
    if len(dotted) > 1 and _is_way(dotted, known, defs):
        return f"there is no setting {shown(name)}; write {': {'.join(dotted)}: …{'}' * (len(dotted) - 1)}"
    near = suggestion(name, names)
    if near:
        return f"there is no setting {shown(name)}; {_instead_of(near, value, beside)}"
    if isinstance(value, Mapping) and value and set(value) <= set(names):
        return f"there is no setting {shown(name)}; write what it holds without it"
    names_inside = {each: resolved(known[each], defs).get("properties", {}) for each in names}
    parts = [f"{name}_{part}" for part in value] if isinstance(value, Mapping) else []
    if joined := [part for part in parts if part in known]:
        return f"there is no setting {shown(name)}; write {joined[0]}: …"
    fitting = section_meant(value, names_inside)
    if fitting:
        return f"there is no setting {shown(name)}; did you mean {fitting}?"
    # A setting at the wrong depth: `bootstrap:` at the top, `threshold:` under a cluster.
    belongs = [_dotted(way) for way in ways_in(schema) if way[-1] == name]
    if not belongs and (of_entries := [each for each in names if _is_of_entries(name, known[each], defs)]):
        return f"there is no setting {shown(name)}; it belongs under a name of your own: write {of_entries[0]}: {{NAME: {{{name}: …}}}}"
    holders = [each for each in names if _holds_entry(value, known[each], defs)]
    if len(names) == 1 and isinstance(value, Mapping) and entry_kinds(resolved(known[names[0]], defs), defs):
        holders = names
    if len(holders) == 1:
        return f"there is no setting {shown(name)}; it belongs under {holders[0]}"
    listed = f"; there are: {', '.join(names)}" if names else ""
    inner = [each for each, inside in names_inside.items() if name in inside]
    if len(dotted) > 1 and (near := _in_one_of(name, names_inside)):
        # As Kafka's clients have it: `sasl.mechanism` beside `security`.
        listed = f"; it belongs in {near}"
    elif len(inner) == 1 and not any(way.endswith(f"{inner[0]}.{name}") for way in belongs):
        listed = f"; it belongs in {inner[0]}.{name}"
    elif name in belongs:
        listed = "; it belongs at the top, in no section"
    elif belongs:
        listed = f"; it belongs in {min(belongs, key=lambda way: way.count('.'))}"
    elif elsewhere := _elsewhere(name, [way for way in ways_in(schema) if way[-1]]):
        listed = f"; did you mean {_dotted(elsewhere)}?"
    elif inside := _held_elsewhere(value, [way for way in ways_in(schema) if way[-1]]):
        listed = f"; write {inside[0]} as {_dotted(inside[1])}"
    return f"there is no setting {shown(name)}{listed or '; `kagent settings --schema` prints all'}"


def _instead_of(near: str, value: Any, beside: Mapping[str, int | None]) -> str:
    """What to do about a name in whose place ``near`` was likely meant, also where the file has both."""
    if near not in beside:
        return f"did you mean {near}?"
    if isinstance(value, Mapping | list):
        return f"did you mean {near}? It is given too (line {beside[near]}): put all under that name"
    return f"{near} is given too (line {beside[near]}): keep that one"


def _in_one_of(name: str, sections: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The setting of the one section that has one of almost this name."""
    found = {each: near for each, inside in sections.items() if (near := suggestion(name, inside))}
    return ".".join(next(iter(found.items()))) if len(found) == 1 else None


def _near_elsewhere(name: str, ways: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    """``bootstrap_servers`` at the top: the way to a setting of almost this name in another section."""
    by_name: dict[str, tuple[str, ...]] = {}
    for way in sorted(ways, key=len):
        by_name.setdefault(way[-1], way)
    # `security.protocol`: the last steps of a way, not a word of its last one.
    for way in sorted(ways, key=len):
        if "_" in _folded(name) and "_".join(way).endswith(f"_{_folded(name)}"):
            return way
    near = get_close_matches(_folded(name), by_name, 1, 0.85)
    near = near or [each for each in by_name if len(each) > 4 and _folded(name).startswith(f"{each}_")]
    return by_name[near[0]] if near else None


def _elsewhere(name: str, ways: Collection[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The way to a setting elsewhere of almost this name, or for which this is another word: `receivers` at the top."""
    other = meant_by(_folded(name), {way[-1] for way in ways})
    return _near_elsewhere(name, ways) or (
        min((w for w in ways if w[-1] in other), key=len) if other else None
    )


def _is_way(steps: tuple[str, ...], known: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    """Whether a section with the names ``known`` has a setting there: `security.protocol`, and `main.bootstrap` of clusters."""
    at: Mapping[str, Any] = {"properties": known}
    for step in steps:
        at = inside(resolved(at, defs), step)
    return bool(at)


def _is_of_entries(name: str, about: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    """Whether the section holds entries by a name of the person's own choice, of which some have this setting."""
    return any(name in kind.get("properties", {}) for kind in entry_kinds(resolved(about, defs), defs))


def _no_setting_beside(name: str, known: Collection[str]) -> str | None:
    """What there is in the place of a name that other sections have, and this one with a setting of its own kind has not."""
    return next(
        (found for each in known if (found := NO_SETTING_BESIDE.get(each, {}).get(_folded(name)))), None
    )


def _held_elsewhere(value: Any, ways: Collection[tuple[str, ...]]) -> tuple[str, tuple[str, ...]] | None:
    """``spring: {kafka: {bootstrap-servers: …}}``: the first name in a foreign section that is near a setting, and the way to that one."""
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        way = None if isinstance(inner, Mapping | list) else _near_elsewhere(str(name), ways)
        if found := (str(name), way) if way else _held_elsewhere(inner, ways):
            return found
    return None


def _dotted(way: Iterable[str]) -> str:
    return ".".join(step or "<name>" for step in way)


def _holds_entry(value: Any, about: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    """Whether the section holds entries by a name of the person's own choice, and this is one of them by what it has."""
    return isinstance(value, Mapping) and any(
        kind.get("required")
        and set(kind["required"]) <= set(value)
        and set(value) <= set(kind.get("properties", {}))
        for kind in entry_kinds(resolved(about, defs), defs)
    )


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """The known name that this was likely meant to be: another word for it, of almost the same letters, of the same words, or similar."""
    by_folded = {_folded(each): each for each in known}
    folded = _folded(name)
    near = [folded] if folded in by_folded else meant_by(folded, by_folded)
    near = near or get_close_matches(folded, by_folded, 1, 0.85) or _of_its_words(folded, by_folded)
    near = near or get_close_matches(folded, by_folded, 1, 0.65) or meant_by_part(folded, by_folded)
    return by_folded[near[0]] if near else None


def all_with_words(name: str, known: Iterable[str]) -> list[str]:
    """All known names that have every word of this one: `SCRAM` is in two."""
    words = set(_folded(name).split("_"))
    return [each for each in known if words <= set(_folded(each).split("_"))]


def _of_its_words(folded: str, known: Iterable[str]) -> list[str]:
    """The one name that has all words of this one (`java`), or only words of it (`kafka_bootstrap_servers`); else none."""
    words = set(folded.split("_"))
    holding = [each for each in known if words <= set(each.split("_")) or set(each.split("_")) <= words]
    return holding if len(holding) == 1 else []


def _folded(name: str) -> str:
    """In lower case with underscores: `passwordFile`, `bootstrap.servers` and `SASL-SSL` have the words that they show."""
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"[-.\s]", "_", parted).lower()
