"""Pages made from the code: ``python -m kagent.reference_pages`` writes them, a test holds them current."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from prometheus_client import Metric

from kagent.cli import SECTIONS as COMMAND_SECTIONS
from kagent.cli import root
from kagent.commands.settings import json_schema
from kagent.contract.recommendation import (
    Action,
    ActionType,
    Alternative,
    Basis,
    GroupKind,
    IncidentNumbers,
    MemberWork,
    Move,
    Outcome,
    Recommendation,
    Resolution,
    Severity,
    Skew,
    State,
    Status,
    Verdict,
)
from kagent.contract.schema import asyncapi, schema
from kagent.contract.words import ACTIONS, VERDICTS, WITH_NUMBERS, VerdictWords
from kagent.duration_words import UNITS_S
from kagent.durations import to_text
from kagent.errors import InputError
from kagent.pipeline.stream_metrics import Metrics as PipelineMetrics
from kagent.policy import RETIRED, retired
from kagent.reference_http import http_page
from kagent.settings.alert_destinations import DESTINATIONS
from kagent.settings.schema_ways import length_unit
from kagent.strategies.registry import JAVA, LIBRDKAFKA, PYTHON, SERVER, STRATEGIES, Strategy
from kagent.text_table import markdown_row
from kagent.worker.http.metrics import METRICS

DOCS = Path(__file__).parents[1] / "docs"

SETTINGS_HEAD = """\
# Settings

<!-- Made from the code by `make docs`; edit the descriptions in kagent/settings/ and policy.py. -->

Settings are one YAML file (`--config FILE`, or `KAGENT_CONFIG`) and variables; the variable wins. A variable's name is
the path in upper case, joined by two underscores: `KAGENT_PIPELINE__TRIGGER=2s` is `pipeline: {trigger: 2s}`. A
name that you chose in the file may have dashes and dots, which a variable cannot have: write an underscore for each.
`KAGENT_CLUSTERS__EU_WEST__BOOTSTRAP` sets `bootstrap` of the cluster `eu-west`. Lists and mappings are JSON in a
variable: `KAGENT_IGNORE='["test-*"]'`.

Durations are seconds, or have a unit: `250ms`, `90s`, `5m`, `2h`, `1d`, also in words (`90 seconds`, `5 min`,
`1 day`). A number in quotes is that number, as templates and variables give it. Patterns are globs, or regular expressions
between slashes; both must match the whole name: `/nightly-.*/` matches `nightly-7`, `/^nightly-/` does not.

`kagent settings` prints what is in effect and where each value comes from; `kagent settings --check` names every mistake
with its line and exits 2 if there is one. A file that this machine does not have, such as `ca_file`, is a note and not a mistake. For completion and checks in an editor, write the schema to a file
(`kagent settings --schema`) and begin the settings file with `# yaml-language-server: $schema=kagent.schema.json`.

These variables are no settings: `KAGENT_CONFIG` (the file), `KAGENT_CLUSTER` (as `--cluster`), `KAGENT_BOOTSTRAP` (as
`--bootstrap-server`), `KAGENT_CACHE` (where the Java archives are kept), `KAGENT_MAVEN` (the address of a mirror of
Maven Central that they are fetched from), `KAGENT_FOLLOW` (see [follow](follow.md)).
"""

POLICY_ABOUT = (
    "What is judged, and when. `policy` holds for all groups; an entry of `groups` also has `match`, and the first one "
    "that matches a group's name wins over `policy`. To have a group judged that the list `ignore` or kagent itself leaves out (people's "
    "console consumers, kagent's own groups, …), write `ignore: false` in that entry."
)
SECTIONS: Mapping[str, tuple[str, str]] = {
    "Settings": ("Top level", ""),
    "Cluster": ("`clusters.NAME`", "One Kafka cluster; the name is yours, such as `main`."),
    "Security": ("`clusters.NAME.security`", "How to log in; the pipeline, the worker and the commands use the same."),
    "Topics": ("`topics`", "kagent's own topics."),
    "PipelineSettings": ("`pipeline`", "The Spark stream."),
    "WorkerSettings": ("`worker`", "The Faust worker."),
    "HttpSettings": ("`worker.http`", "Who may see the page and the API, and how they are encrypted."),
    "PolicySettings": ("`policy`, and each entry of `groups`", POLICY_ABOUT),
    **{
        model.__name__: (f"`alert.destinations.NAME`, type `{name}`", (model.__doc__ or "").strip())
        for name, model in DESTINATIONS.items()
    },
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
        # pydantic's own text about a field's type is no description.
        about = "" if about.startswith(("!!!", "``")) else " ".join(about.split())
        yield f"| `{name}` | {_kind(field, models)} | {default} | {about.replace('|', chr(92) + '|')} |"


def _resolved(field: Mapping[str, Any], models: Mapping[str, Any]) -> Mapping[str, Any]:
    return models[field["$ref"].rsplit("/", 1)[-1]] if "$ref" in field else field


def _default(field: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    value = field.get("default")
    inner = _resolved(field, models)
    if value in (None, "", {}, []) or "properties" in inner:
        return "–"
    if (unit := length_unit(field)) and isinstance(value, int | float):
        return f"`{to_text(value * UNITS_S[unit])}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _kind(field: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    field = _resolved(field, models)
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    # pydantic writes an optional value as anyOf with null; null is no kind of value for a reader.
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


CLI_HEAD = """\
# Commands

<!-- Made from the code by `make docs`. -->

Global options stand before or after the command: `-b HOST:PORT` (or `--bootstrap-server`), `--config FILE`,
`--cluster NAME`, `--verbose`. Every command has `--help`.

Exit codes: 0 well, 1 findings (`check`, `status`, `topics`), 2 kagent or the cluster is in trouble, or the command is
wrong. After Ctrl-C: 0 of commands that run until they are stopped (`watch`, `decode --follow`, `up`, `pipeline`, `worker`,
`history write`) and of `capture`, whose folder is complete up to there; 130 of all others, as they have not finished.

Commands that print tables take `--output table|json|yaml|csv` (json is one object a line), `--wide`, `--sort NAME` and
`--top N`. NAME is a field of the JSON or the heading of a column, such as `seconds_behind` or `behind`. On a terminal a table is as wide as the terminal; in a pipe nothing is cut. Colours never say what a word does
not say, and `NO_COLOR` switches them off.

To complete commands, options, groups and topics in the shell, put one of these into its start-up file:

```sh
eval "$(_KAGENT_COMPLETE=bash_source kagent)"
eval "$(_KAGENT_COMPLETE=zsh_source kagent)"
_KAGENT_COMPLETE=fish_source kagent | source
```
"""


def cli_page() -> str:
    """docs/cli.md."""
    parts = [CLI_HEAD]
    with click.Context(root, info_name="kagent") as ctx:
        for title, commands in COMMAND_SECTIONS.items():
            parts.append(f"## {title}\n")
            for name in commands:
                command = root.get_command(ctx, name)
                assert command is not None
                parts += _command(command, ctx, name)
    return "\n".join(parts)


def _command(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    """A heading, what it does, and its options; then those of its commands."""
    ctx = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(piece for piece in command.collect_usage_pieces(ctx) if piece != "[OPTIONS]")
    yield f"### `{ctx.command_path}{' ' + usage if usage else ''}`\n"
    yield "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n")) + "\n"
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    rows = [record for option in options if (record := option.get_help_record(ctx))]
    if rows:
        lines = [markdown_row(f"`{names}`", " ".join(about.split())) for names, about in rows]
        yield "\n".join(["| option | |", "|---|---|", *lines]) + "\n"
    # Groups of commands (history, alert) document their own under them.
    for inner, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _command(each, ctx, inner)


JSON_HEAD = """\
# JSON on the recommendations topic

<!-- Made from the code by `make docs`; the descriptions stand in kagent/contract/recommendation.py. -->

The topic `kagent-recommendations` holds two kinds of messages, distinguished by `type`: `recommendation` under the key
`<cluster>/<group>`, and `state` under the key `<cluster>`. `kagent watch --json` prints them as they come. The same as JSON Schema:
[recommendations.schema.json](schema/recommendations.schema.json), and as AsyncAPI: [asyncapi.json](schema/asyncapi.json).
New optional fields may come at any time; anything else raises `schema`.
"""
JSON_MODELS = (
    Recommendation,
    State,
    Skew,
    MemberWork,
    Move,
    Alternative,
    Action,
    Basis,
    Outcome,
    IncidentNumbers,
)
JSON_ENUMS = (Status, Verdict, Severity, GroupKind, ActionType, Resolution)


def json_page() -> str:
    """docs/json.md."""
    parts = [JSON_HEAD]
    for model in JSON_MODELS:
        schema = model.model_json_schema(by_alias=True)
        models = {model.__name__: schema, **schema.get("$defs", {})}
        parts.append(f"## {model.__name__}\n\n{' '.join((model.__doc__ or '').split())}\n")
        parts.append("\n".join(_table(schema, models)).replace("| setting |", "| field |", 1) + "\n")
    parts.append("## Words\n")
    parts += [
        f"- **{enum.__name__}**: " + ", ".join(f"`{word.value}`" for word in enum) for enum in JSON_ENUMS
    ]
    return "\n".join(parts) + "\n"


METRICS_HEAD = """\
# Metrics

<!-- Made from the code by `make docs`; the meanings stand in kagent/worker/http/metrics.py and kagent/pipeline/stream_metrics.py. -->

## Worker

`/metrics` on the worker's web port. Every worker shows the groups that it owns: sum over all workers. A quiet group
of one topic has nine series, each further topic two, each partition four and each member one; `worker.max_series` bounds those of partitions and members.
"""
PIPELINE_METRICS_HEAD = """\
## Pipeline

`/metrics` on `pipeline.metrics_port`; without that setting they are not served.
"""


def metrics_page() -> str:
    """docs/metrics.md."""
    head = ["| name | kind | labels | meaning |", "|---|---|---|---|"]
    worker = [
        markdown_row(f"`{a.name}`", a.kind, ", ".join(a.labels) or "–", a.meaning) for a in METRICS.values()
    ]
    families = list(PipelineMetrics("main").registry.collect())
    pipeline = [markdown_row(f"`{_sample_name(f)}`", f.type, "cluster", f.documentation) for f in families]
    return "\n".join([METRICS_HEAD, *head, *worker, "", PIPELINE_METRICS_HEAD, *head, *pipeline]) + "\n"


def _sample_name(family: Metric) -> str:
    """The name that a query asks for: a counter's ends in ``_total``."""
    return f"{family.name}_total" if family.type == "counter" else family.name


VERDICTS_HEAD = """\
# Verdicts

<!-- Made from the code by `make docs`; edit kagent/contract/words.py. -->

What an incident says is wrong, and what to do first. All that people read has the words; the name is in `--json`, in settings and filters, on the topic and
in labels of alerts. How each is found is in [judgement](judgement.md#verdicts). Every incident has its own ranked actions with the exact
command: `kagent explain GROUP`.
"""


def _words(verdict: Verdict) -> VerdictWords:
    if verdict not in VERDICTS:
        raise InputError(
            f"The verdict {verdict.value} has no words: add them to VERDICTS in kagent/contract/words.py."
        )
    return VERDICTS[verdict]


def verdicts_page() -> str:
    """docs/verdicts.md."""
    rows = [
        f"| `{verdict.value}` | {words.short} | {words.meaning} | {words.first} |"
        for verdict in Verdict
        for words in (_words(verdict),)
    ]
    actions = [f"| `{kind.value}` | {words} |" for kind, words in ACTIONS.items()]
    return "\n".join(
        [
            VERDICTS_HEAD,
            "| name | in `watch` | what it means | what to do first |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Actions",
            "",
            "A number stands with them where there is one, as in `run 4 members`.",
            "",
            "| name | in `watch` |",
            "|---|---|",
            *actions,
            "",
        ]
    )


STRATEGIES_ABOUT = "<!-- Made from kagent/strategies/registry.py by `make docs`; the rest of this page is written by hand. -->"
STRATEGIES_END = "<!-- End of the table. -->"
CLIENTS = {JAVA: "Java", LIBRDKAFKA: "librdkafka", PYTHON: "Python", SERVER: "the broker"}


def strategies_page() -> str:
    """docs/strategies.md: the table is made, the examples stay as they are."""
    page = (DOCS / "strategies.md").read_text(encoding="utf-8")
    before, _, rest = page.partition(STRATEGIES_ABOUT)
    _, _, after = rest.partition(STRATEGIES_END)
    table = [
        "| strategy | runs in | sticky | keeps co-partitions | in one sentence |",
        "|---|---|---|---|---|",
        *map(_strategy, STRATEGIES.values()),
    ]
    return f"{before}{STRATEGIES_ABOUT}\n\n" + "\n".join(table) + f"\n\n{STRATEGIES_END}{after}"


def _strategy(strategy: Strategy) -> str:
    # aiokafka speaks the eager protocol only.
    clients = CLIENTS | ({PYTHON: "kafka-python"} if strategy.cooperative else {})
    runs_in = ", ".join(word for client, word in clients.items() if client in strategy.runs_on)
    keeps = ("yes" if kept else "no" for kept in (strategy.sticky, strategy.copartitions))
    return markdown_row(f"`{strategy.name}`", runs_in, *keeps, strategy.summary)


PAGES = {
    "settings.md": settings_page,
    "verdicts.md": verdicts_page,
    "cli.md": cli_page,
    "json.md": json_page,
    "metrics.md": metrics_page,
    "http.md": http_page,
    "strategies.md": strategies_page,
}
WORDS_OF_THE_PAGE = DOCS.parent / "kagent" / "worker" / "http" / "ui" / "words.js"


def words_of_the_page() -> str:
    """``words.js``: the words of verdicts and actions, for the worker's page."""
    tables = {
        "VERDICTS": {verdict: words.short for verdict, words in VERDICTS.items()},
        "ACTIONS": ACTIONS,
        "WITH_NUMBERS": {kind: [parameter, words] for kind, parameter, words in WITH_NUMBERS},
    }
    made = [f"export const {name} = {json.dumps(table, indent=2)};" for name, table in tables.items()]
    return "\n".join(["// Made from the code by `make docs`; edit kagent/contract/words.py.", *made, ""])


SCHEMAS = {"recommendations.schema.json": schema, "asyncapi.json": asyncapi}


def write(folder: Path = DOCS) -> None:
    """Write all pages, and the schemas of the messages."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
    WORDS_OF_THE_PAGE.write_text(words_of_the_page(), encoding="utf-8")
    for name, made in SCHEMAS.items():
        (folder / "schema" / name).write_text(json.dumps(made(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
