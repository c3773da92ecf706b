"""Notes about settings that have no effect: of an older kagent, never reached, or not what they look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kagent.policy import retired
from kagent.settings.all_settings import Settings
from kagent.settings.given_settings import GivenSettings
from kagent.settings.odd_characters import in_odd_quotes
from kagent.settings.pattern_notes import pattern_notes
from kagent.settings.settings_file import Where

NEEDS: Mapping[Where, tuple[Where, str]] = {
    ("pipeline", "history_interval"): (("pipeline", "history"), "history: /path/to/folder"),
    ("pipeline", "metrics_host"): (("pipeline", "metrics_port"), "metrics_port: 9100"),
    ("redact_salt",): (("redact",), "redact: [host, client_id]"),
    ("redact_salt_file",): (("redact",), "redact: [host, client_id]"),
}
"""What is read only beside another setting → that one, and how to write it."""


def without_what_it_needs(settings: Settings) -> Iterator[tuple[Where, str]]:
    """Settings, with why they have no effect, that are not as by default and stand without the one that they need."""
    for where, (needed, how) in NEEDS.items():
        section, *name = (
            (settings, *where) if len(where) == 1 else (getattr(settings, str(where[0])), where[1])
        )
        default = type(section).model_fields[str(name[0])].default
        value = getattr(section, str(name[0]))
        if value and value != default and not getattr(section, str(needed[-1])):
            yield where, f"has no effect without {needed[-1]}; write {how}"


def notes(given: GivenSettings, mistakes: str = "") -> list[str]:
    """A sentence for each setting that has no effect, or is likely not what it looks like.

    ``mistakes``: the errors reported for the same settings; they already name odd quotes around a wrong value.
    """
    names: list[tuple[Where, str]] = [
        (("policy", name), name) for name in given.file.lines_beside(("policy",))
    ]
    for at in range(len(_list(given.file.values.get("groups")))):
        names += [(("groups", at, name), name) for name in given.file.lines_beside(("groups", at))]
    names += [(where, str(where[1])) for where in given.variables if where[0] == "policy" and len(where) > 1]
    return [
        f"{given.place(where)}: the setting {name} has no effect: {note}."
        for where, name in names
        if (note := retired(name)) is not None
    ] + [*pattern_notes(given), *_in_odd_quotes(given, mistakes)]


def _in_odd_quotes(given: GivenSettings, mistakes: str) -> Iterator[str]:
    """A sentence for each text in quotes that are none to YAML; the text itself may be a secret."""
    for where in given.file.lines:
        if in_odd_quotes(given.file.written(where)) and f"{given.place(where)}: " not in mistakes:
            yield f"{given.place(where)}: the quotes around {where[-1]} are none to YAML, and so part of it: write ' or \"."


def _list(value: Any) -> list[Any]:
    """The list; none where something else stands there, which is a mistake of its own."""
    return value if isinstance(value, list) else []
