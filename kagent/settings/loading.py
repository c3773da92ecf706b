"""From the file, the variables and the command line to the settings in effect, or to every mistake at once."""

from __future__ import annotations

import copy
import json
import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError as UnreadableVariable

from kagent.errors import SettingsError
from kagent.settings.all_settings import DEFAULT_CLUSTER, LEFT_OUT, Settings
from kagent.settings.cluster import Cluster, with_ports
from kagent.settings.contradictions import contradictions
from kagent.settings.given_settings import DELIMITER, PREFIX, GivenSettings, as_in_file, folded
from kagent.settings.mistakes import (
    Mistake,
    as_meant,
    hidden,
    in_order,
    meant_names,
    mistakes,
    needed_of_an_entry,
    not_replaced_or_no_path,
    one_of_the_section,
    only_one_that_takes,
    overridden,
    sentence,
    take_out,
    variables_of,
    without_repetition,
)
from kagent.settings.settings_file import MISSING, SettingsFile, Where, read, read_text
from kagent.settings.without_effect import notes
from kagent.text import ended, shown

log = logging.getLogger("kagent.settings")


STAND_IN = "localhost:9092"
"""In the place of an address that `-b` gives, until the rest is checked."""

SECRETIVE = ("alert", "clusters", "worker")
"""Sections that hold secrets."""


class WrongSettings(SettingsError):
    """``rest``: the settings without what is wrong, for notes about them; None where nothing is left. ``taken``: what was left out."""

    def __init__(
        self, problem: str, given: GivenSettings, rest: Settings | None, taken: Collection[Where]
    ) -> None:
        super().__init__(problem)
        self.given, self.rest, self.taken = given, rest, taken


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in effect, what they were made from, notes about what has no effect any more, and the cluster whose
    address came from ``-b`` or ``KAGENT_BOOTSTRAP``."""

    settings: Settings
    given: GivenSettings
    notes: tuple[str, ...] = ()
    addressed: str | None = None


def load(
    config: str | Path | None = None, bootstrap: str | None = None, cluster: str | None = None
) -> Settings:
    """The settings in effect: file (``config``, else ``KAGENT_CONFIG``), then variables, then ``bootstrap``.

    ``bootstrap`` (else ``KAGENT_BOOTSTRAP``) is the address of the cluster that ``cluster`` (else ``KAGENT_CLUSTER``) names,
    of the first one without a name; where no cluster is configured, it makes one of that name, or ``main``.
    Raises SettingsError with every mistake, its file and line or its variable.
    """
    loaded = loaded_from(config, bootstrap, cluster)
    for note in loaded.notes:
        log.warning("%s", note)
    return loaded.settings


def loaded_from(
    config: str | Path | None = None, bootstrap: str | None = None, cluster: str | None = None
) -> Loaded:
    """As :func:`load`, with where every value comes from."""
    path = config or os.environ.get("KAGENT_CONFIG")
    bootstrap = bootstrap or os.environ.get("KAGENT_BOOTSTRAP")
    given = GivenSettings.of(read(Path(path)) if path else SettingsFile(), os.environ)
    named = cluster or os.environ.get("KAGENT_CLUSTER")
    try:
        settings = _checked(_with_stand_in(given, named) if bootstrap else given)
    except WrongSettings as error:
        # Beside the mistakes: who mends them all wants to mend the rest too.
        for note in notes(given, str(error)):
            error.add_note(note)
        raise
    if path:
        # Absolute: a command in advice is pasted in another folder.
        settings._file = os.path.abspath(path)
    # After validation, over the file and the variables: what stands on the command line wins.
    addressed = None
    if bootstrap:
        first = next(iter(settings.clusters), named or DEFAULT_CLUSTER)
        addressed = named if named in settings.clusters else first
        is_guess = not named and not settings.clusters
        settings = _at_address(settings, addressed, bootstrap)
        settings._is_addressed, settings._name_is_guess = True, is_guess
    return Loaded(settings, given, (*notes(given), *_overridden(given)), addressed)


def _with_stand_in(given: GivenSettings, named: str | None) -> GivenSettings:
    """With some address for the cluster that gets its own afterwards: without one its login would be refused."""
    known = given.file.values.get("clusters") or {}
    # In the order in which pydantic joins file and variables.
    ways = [
        as_in_file(way, given.file.values) for way in given.variables if len(way) > 1 and way[0] == "clusters"
    ]
    names = [*known, *(str(way[1]) for way in ways)] if isinstance(known, Mapping) else []
    name = named if named in names else next(iter(names), None)
    entry = known.get(name) if name else MISSING
    if entry is not MISSING and (entry is None or isinstance(entry, Mapping)):
        clusters = {**known, name: {"bootstrap": STAND_IN, **(entry or {})}}
        return given.with_file(replace(given.file, values={**given.file.values, "clusters": clusters}))
    return given


def _at_address(settings: Settings, name: str, bootstrap: str) -> Settings:
    """With this address for the cluster of this name; of the others only the one that holds kagent's topics is left."""
    known = settings.clusters
    try:
        address = with_ports(bootstrap)
    except ValueError as error:
        raise SettingsError(f"-b or KAGENT_BOOTSTRAP: {ended(str(error))}") from error
    given = known[name].model_copy(update={"bootstrap": address}) if known else Cluster(bootstrap=address)
    home = {n: other for n, other in known.items() if n == settings.home}
    return settings.model_copy(update={"clusters": {**home, name: given}})


def _checked(given: GivenSettings) -> Settings:
    found, wrong_variables = list[Mistake](), set[str]()
    try:
        settings, error = _validated(given.file.values)
    except UnreadableVariable:
        found, wrong_variables = _unreadable(given)
        given = given.without(wrong_variables)
        settings, error = _validated(given.file.values, wrong_variables)
    # Also without an error: pydantic ignores unknown names at the top, as KAGENT_CONFIG and the like are none.
    found += mistakes(Settings, given, error)
    # The mistakes inside a section must not wait until its name is right.
    while found and (meant := as_meant(Settings, given)).file is not given.file:
        given = meant
        settings, error = _validated(given.file.values, wrong_variables)
        found += mistakes(Settings, given, error)
    rest, taken, wrong = copy.deepcopy(given.file.values), set[Where](), error
    # Once more without what is wrong, until the rest is right: all mistakes are named at once.
    while wrong is not None:
        variables = variables_of(Settings, given, wrong)
        gone = [*variables.values(), *take_out(rest, Settings, wrong)]
        if not gone:
            break
        wrong_variables |= variables.keys()
        taken.update(gone, meant_names(Settings, wrong))
        settings, wrong = _validated(rest, wrong_variables)
        found += hidden(Settings, given, wrong, taken) if wrong else []
    if settings is not None:
        found += contradictions(settings, given, taken)
    texts = not_replaced_or_no_path(Settings, given)
    found = [*without_repetition(found, texts), *texts]
    if found or settings is None:
        raise WrongSettings(sentence(in_order(found)), given, settings, taken) from error
    return settings


def _validated(
    values: Mapping[str, Any], without: Collection[str] = ()
) -> tuple[Settings | None, ValidationError | None]:
    """``without``: variables that are not read."""
    token = LEFT_OUT.set(frozenset(name.lower() for name in without))
    try:
        # pydantic-settings would take `Clusters` for `clusters`, and leave that out.
        return Settings(**{name: values[name] for name in values if name in Settings.model_fields}), None
    except ValidationError as wrong:
        return None, wrong
    finally:
        LEFT_OUT.reset(token)


def _overridden(given: GivenSettings) -> list[str]:
    """Notes, not mistakes: a file may hold placeholders that variables replace."""
    lines = set(map(folded, given.file.lines))
    if lines.isdisjoint(map(folded, given.variables)):
        return []
    _, error = _validated(given.file.values, set(given.variables.values()))
    return overridden(Settings, given, error) if error else []


def _unreadable(given: GivenSettings) -> tuple[list[Mistake], set[str]]:
    """The variables for a list or a mapping that are no JSON, as mistakes and by name."""
    # Each by itself: pydantic stops at the first one, and names only the setting at the top.
    names = {name for name in given.variables.values() if not _reads(given, name)}
    ways = {name: way for way, name in given.variables.items()}
    return [Mistake(name, "", _as_json(name, ways[name], os.environ[name])) for name in sorted(names)], names


def _as_json(variable: str, way: Where, text: str) -> str:
    """How to write this text, which is no JSON, in a variable for a list or a mapping."""
    one = one_of_the_section(variable, way, re.split(r"[=:]", text)[0].strip(" {"), Settings)
    if one:
        return f"must hold JSON; did you mean {one}?"
    as_yaml = None if way[0] in SECRETIVE else read_text(text)
    if as_yaml is not None and _is_right(way, as_yaml):
        return f"must hold JSON; write '{shown(json.dumps(as_yaml, default=str))}'"
    if text.startswith(("[", "{")) and "'" in text:
        return "must hold JSON, whose texts stand in double quotes, such as '[\"a\"]' or '{\"a\": 1}'"
    # Nothing that may hold a secret is repeated.
    if way == ("clusters",) and re.fullmatch(r"[\w.-]+:\d+", text):
        return f"must hold JSON; write {variable}{DELIMITER}MAIN{DELIMITER}BOOTSTRAP={text}"
    if only := only_one_that_takes(text, way, Settings):
        return f"must hold JSON; write {variable}{DELIMITER}{only.upper()}={text}"
    if way[0] not in SECRETIVE and not text.startswith(("[", "{")):
        for meant in (*_lists(text), *_entries(way, text), *_mappings(text)):
            if _is_right(way, meant):
                return f"must hold JSON; write '{shown(json.dumps(meant))}'"
    return "must hold JSON, such as '[\"a\"]' or '{\"a\": 1}'"


def _lists(text: str) -> Iterator[list[str]]:
    """The text as a list: of what commas divide, or spaces too."""
    yield [part.strip() for part in text.split(",")]
    yield re.split(r"[,\s]+", text.strip())


def _entries(way: Where, text: str) -> Iterator[list[dict[str, str]]]:
    """The text as a list of entries of which one setting is needed: ``orders-*`` as ``[{"match": "orders-*"}]``."""
    needed = needed_of_an_entry(Settings, way)
    if len(needed) == 1:
        yield from ([{needed[0]: part} for part in parts] for parts in _lists(text))


def _mappings(text: str) -> Iterator[dict[str, str]]:
    """``stalled=page,unstable=info`` as names and values, and turned around."""
    pair = r"([\w.*-]+)\s*[=:]\s*([\w./-]+)"
    if re.fullmatch(rf"{pair}(?:[,;\s]+{pair})*", text.strip()):
        found = re.findall(pair, text)
        yield dict(found)
        yield {value: name for name, value in found}


def _is_right(way: Where, value: Any) -> bool:
    """Whether the setting of this way may have this value."""
    for step in reversed(way):
        value = {step: value}
    names = {name for name in os.environ if name.upper().startswith(PREFIX)}
    return _validated(value, names)[1] is None


def _reads(given: GivenSettings, variable: str) -> bool:
    try:
        _validated({}, set(given.variables.values()) - {variable})
    except UnreadableVariable:
        return False
    return True
