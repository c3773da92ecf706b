"""Pages made from the code: ``python -m kagent.commands.reference`` writes them, a test holds them current."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kagent.commands.settings import json_schema
from kagent.policy import RETIRED, retired

DOCS = Path(__file__).parents[2] / "docs"

SETTINGS_HEAD = """\
# Settings

<!-- Made from the code by `make docs`; edit the descriptions in kagent/settings.py, policy.py and alert/destinations.py. -->

Settings are one YAML file (`--config FILE`, or `KAGENT_CONFIG`) and variables; the variable wins. A variable's name is
the path in upper case, joined by two underscores: `KAGENT_PIPELINE__TRIGGER=2s` is `pipeline: {trigger: 2s}`. Lists and
mappings are JSON in a variable: `KAGENT_IGNORE='["test-*"]'`.

Durations are seconds, or have a unit: `250ms`, `90s`, `5m`, `2h`, `1d`. Patterns are globs, or regular expressions
between slashes.

`kagent settings` prints what is in effect and where each value comes from; `kagent settings --check` names every mistake
with its line and exits 2 if there is one. For completion and checks in an editor, write the schema to a file
(`kagent settings --schema`) and begin the settings file with `# yaml-language-server: $schema=kagent.schema.json`.

These variables are no settings: `KAGENT_CONFIG` (the file), `KAGENT_CLUSTER` (as `--cluster`), `KAGENT_BOOTSTRAP` (as
`--bootstrap-server`), `KAGENT_CACHE` (where the Java archives are kept), `KAGENT_FOLLOW` (see [follow](follow.md)).
"""

POLICY_ABOUT = (
    "What is judged, and when. `policy` holds for all groups; an entry of `groups` also has `match`, and the first one "
    "that matches a group's name wins over `policy`."
)
SECTIONS: Mapping[str, tuple[str, str]] = {
    "Settings": ("Top level", ""),
    "Cluster": ("`clusters.NAME`", "One Kafka cluster; the name is yours, such as `main`."),
    "Security": ("`clusters.NAME.security`", "How to log in; the pipeline, the worker and the commands use the same."),
    "Topics": ("`topics`", "kagent's own topics."),
    "PipelineSettings": ("`pipeline`", "The Spark stream."),
    "WorkerSettings": ("`worker`", "The Faust worker."),
    "PolicySettings": ("`policy`, and each entry of `groups`", POLICY_ABOUT),
    "Alertmanager": ("`alert.destinations.NAME`, type `alertmanager`", "Prometheus Alertmanager, API v2."),
    "PagerDuty": ("`alert.destinations.NAME`, type `pagerduty`", "PagerDuty Events v2."),
    "Webhook": ("`alert.destinations.NAME`, type `webhook`", "Any HTTP receiver."),
    "Apprise": ("`alert.destinations.NAME`, type `apprise`", "Slack, Teams, e-mail and what else apprise reaches."),
    "Wants": ("`alert.destinations.NAME.only`", "Which incidents a destination gets."),
}  # fmt: skip


def settings_page() -> str:
    """docs/settings.md."""
    schema = json_schema()
    models = {"Settings": schema, **schema["$defs"]}
    models["PolicySettings"] = _policy(models)
    parts = [SETTINGS_HEAD]
    for name, (title, about) in SECTIONS.items():
        parts.append(
            f"## {title}\n\n"
            + (f"{about}\n\n" if about else "")
            + "\n".join(_table(models[name], models))
            + "\n"
        )
    old = [f"| `{name}` | {note} |" for name, note in RETIRED.items() if retired(name)]
    if old:
        head = [
            "## Old settings",
            "",
            "They are read with a note and have no effect.",
            "",
            "| setting | note |",
            "|---|---|",
        ]
        parts.append("\n".join([*head, *old]) + "\n")
    return "\n".join(parts)


def _policy(models: Mapping[str, Any]) -> Any:
    return models.get("PolicySettings") or models["GroupSettings"]


def _table(model: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[str]:
    yield "| setting | is | default | |"
    yield "|---|---|---|---|"
    for name, field in sorted(
        model["properties"].items(), key=lambda item: item[0] not in model.get("required", ())
    ):
        default = "needed" if name in model.get("required", ()) else _default(field, models)
        about = field.get("description", "") or _resolved(field, models).get("description", "")
        about = "" if about.startswith(("!!!", "``")) else " ".join(about.split())
        yield f"| `{name}` | {_kind(field, models)} | {default} | {about.replace('|', chr(92) + '|')} |"


def _resolved(field: Mapping[str, Any], models: Mapping[str, Any]) -> Mapping[str, Any]:
    return models[field["$ref"].rsplit("/", 1)[-1]] if "$ref" in field else field


def _default(field: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    value = field.get("default")
    inner = _resolved(field, models)
    if value in (None, "", {}, []) or "properties" in inner:
        return "–"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _kind(field: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    field = _resolved(field, models)
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "anyOf" in field:
        kinds = [_kind(one, models) for one in field["anyOf"] if one.get("type") != "null"]
        durations = {one.get("description") for one in field["anyOf"]} & {"seconds", "hours"}
        return f"duration ({durations.pop()})" if durations else " or ".join(dict.fromkeys(kinds))
    if field.get("type") == "array":
        return f"list of {_kind(field['items'], models)}" if field.get("items") else "list"
    if field.get("type") == "object":
        return "names and values" if "properties" not in field else "see below"
    if field.get("format") == "password":
        return "secret"
    return (
        {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}.get(
            str(field.get("type")), "text"
        )
        if field.get("format") != "path"
        else "path"
    )


PAGES = {"settings.md": settings_page}


def write(folder: Path = DOCS) -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
