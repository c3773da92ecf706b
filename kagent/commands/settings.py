"""``kagent settings``: what is in effect and where each value comes from, secrets masked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from pydantic import BaseModel

from kagent.commands import output
from kagent.commands.common import asked
from kagent.text import ended

if TYPE_CHECKING:
    from kagent.settings import Loaded, Settings
    from kagent.settings.all_settings import GroupSettings
    from kagent.settings.given_settings import GivenSettings
    from kagent.settings.loading import WrongSettings
    from kagent.settings.settings_file import Where

USUAL_FILE = "kagent.yaml"
"""The name of the settings file in the documentation."""


@click.command()
@click.option("--check", is_flag=True, help="Only say whether they are right; exit code 2 if not.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the settings file, for editors.")
@output.json_option("One line of JSON instead of YAML.", "yaml")
@click.pass_context
def command(ctx: click.Context, check: bool, schema: bool, as_json: bool) -> None:
    """Print the settings in effect, with the place each value comes from; secrets are masked."""
    if schema:
        from kagent.settings.editor_schema import with_quoted

        click.echo(json.dumps(with_quoted(json_schema()), indent=2))
        return
    from kagent.settings import loaded_from
    from kagent.settings.doubtful import doubt_of_address, doubtful
    from kagent.settings.loading import WrongSettings
    from kagent.settings.with_units import with_units

    try:
        loaded = loaded_from(asked(ctx, "config"), asked(ctx, "bootstrap"), asked(ctx, "cluster"))
    except WrongSettings as error:
        _print_notes((*getattr(error, "__notes__", ()), *(_beside(error) if error.rest else ())))
        raise
    address = asked(ctx, "bootstrap") or os.environ.get("KAGENT_BOOTSTRAP") or ""
    by = "--bootstrap-server" if asked(ctx, "bootstrap") else "KAGENT_BOOTSTRAP"
    if address and (why := doubt_of_address(address)):
        _print_notes([f"{by}: {ended(why)}"])
    _print_notes(
        (
            *loaded.notes,
            *unread_file(loaded),
            *missing_files(loaded.settings, loaded.given),
            *doubtful(loaded.settings, loaded.given),
        )
    )
    if check:
        if named := asked(ctx, "cluster"):
            loaded.settings.cluster(named)  # a name that no cluster has is refused
        click.echo(_right(loaded))
    elif as_json:
        click.echo(json.dumps(effective_values(loaded.settings)))
    else:
        over: dict[Where, str] = {("clusters", loaded.addressed, "bootstrap"): by} if loaded.addressed else {}
        values = with_units(effective_values(loaded.settings), json_schema())
        for line in lines(values, loaded.given, over):
            click.echo(line)


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _beside(error: WrongSettings) -> Iterator[str]:
    """The notes about what is left of wrong settings, but for those about what was left out, or reported already."""
    from kagent.settings.doubtful import doubtful

    assert error.rest is not None
    left_out = [rf"\b{re.escape(str(way[-1]))}\b" for way in error.taken]
    for note in (*missing_files(error.rest, error.given), *doubtful(error.rest, error.given)):
        about = note.partition(": ")[2]
        if not any(re.search(name, about) for name in left_out) and ": ".join(
            note.split(": ")[:2]
        ) not in str(error):
            yield note


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the settings file; a YAML language server reads it."""
    from kagent.settings import Settings

    found = Settings.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "Settings of kagent",
        "additionalProperties": False,
    }


def effective_values(settings: Settings) -> dict[str, Any]:
    """All values, defaults included; of a group's entry only what it says."""
    values = settings.model_dump(mode="json")
    # With defaults, each entry would seem to override the whole policy.
    values["groups"] = [_only_given(group) for group in settings.groups]
    return values


def _only_given(group: GroupSettings) -> dict[str, Any]:
    """What the entry says, the groups that it is about first."""
    return {"match": group.match, **group.model_dump(mode="json", exclude_unset=True)}


def unread_file(loaded: Loaded) -> Iterator[str]:
    """A sentence where a file of the usual name lies in the working directory and no file is named: it is not read."""
    if loaded.given.file.path is None and Path(USUAL_FILE).is_file():
        yield f"{USUAL_FILE} in this folder is not read; name it with --config {USUAL_FILE} or KAGENT_CONFIG."


def missing_files(settings: Settings, given: GivenSettings) -> Iterator[str]:
    """A sentence for each file that the settings name and this machine does not have: no mistake, as secrets are often elsewhere."""
    from kagent.settings.misplaced import missing_file

    for where, path, itself in _paths(settings, ()):
        if not path.expanduser().exists():
            place = given.place(where)
            problem = missing_file(path, itself)
            yield f"{f'{place}: ' if place else ''}{'.'.join(map(str, where))}: {problem}"


def _paths(section: Any, above: Where) -> Iterator[tuple[Where, Path, str | None]]:
    """Each path with the way to it, and the setting beside it that takes what stands in the file itself."""
    held = (
        section.items() if isinstance(section, Mapping) else section if isinstance(section, BaseModel) else ()
    )
    entries = dict(held)
    for name, value in entries.items():
        if isinstance(value, Path):
            itself = name.removesuffix("_file")
            yield (*above, name), value, itself if itself != name and itself in entries else None
        else:
            yield from _paths(value, (*above, name))


def _right(loaded: Loaded) -> str:
    path, variables = loaded.given.file.path, len(loaded.given.variables)
    sources = [str(path)] if path else []
    sources += [f"{variables} variable{'' if variables == 1 else 's'}"] if variables else []
    lacking = (
        ""
        if loaded.settings.clusters
        else " No cluster is in them: pass -b host:9092, or set KAGENT_BOOTSTRAP."
    )
    return f"The settings are right ({', '.join(sources) or 'defaults only'}).{lacking}"


def lines(
    values: Mapping[str, Any], given: GivenSettings, over: Mapping[Where, str], way: Where = ()
) -> Iterator[str]:
    """The values as YAML, each with its source as a comment. ``over``: the source of what stands over file and variables."""
    indent = "  " * len(way)
    for name, value in values.items():
        where = (*way, name)
        if isinstance(value, Mapping) and value:
            yield f"{indent}{_scalar(name)}:"
            yield from lines(value, given, over, where)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{indent}{_scalar(name)}:"
            for at, item in enumerate(value):
                first, *others = lines(item, given, over, (*where, at))
                yield f"{indent}  - {first.lstrip()}"
                yield from others
        else:
            yield f"{indent}{_scalar(name)}: {_scalar(value)}  # {over.get(where) or given.named(where) or 'default'}"


def _scalar(value: Any) -> str:
    text: str = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False
    )
    # safe_dump ends a lone scalar with the document end marker `...`.
    return text.removesuffix("\n").removesuffix("...").rstrip()
