"""``kagent replay``: a capture through the evaluation, with the policy of today or another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from kagent.commands import output
from kagent.commands.common import effective
from kagent.commands.output import Format, ListColumns, Record
from kagent.commands.past import cluster_name
from kagent.commands.past import policies as of_files
from kagent.commands.spans import SPAN
from kagent.contract.recommendation import Recommendation, to_bytes
from kagent.contract.words import in_words, verdict_words
from kagent.errors import InputError
from kagent.policy import Policy, make_policy
from kagent.text import counted, shown
from kagent.text_table import TableColumn

if TYPE_CHECKING:
    from kagent.settings import Settings

COLUMNS = (
    TableColumn("time", "TIME (UTC)"),
    TableColumn("group", "GROUP", least=16),
    TableColumn("status", "STATUS", rank=1),
    TableColumn("verdict", "VERDICT"),
    TableColumn("severity", "SEVERITY", rank=3),
    TableColumn("reason", "REASON", rank=2, least=24, keep="start"),
)

LISTING = ListColumns(
    COLUMNS,
    ("as_of", "time", "cluster", "group", "status", "resolution", "verdict", "severity", "reason"),
)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--group", "also", multiple=True, hidden=True, help="The same as the argument GROUP.")
@click.option(
    "--policy",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE|FILE",
    help="Change a field of the policy, or use a policy file; repeatable. Default: the settings' policy.",
)
@click.option(
    "--known-since",
    "known_for_s",
    type=SPAN,
    default=0.0,
    help="Treat groups as known for this long, for example 7d. Default: first seen when the capture begins.",
)
@output.options
@click.pass_context
def command(
    ctx: click.Context,
    folder: Path,
    groups: tuple[str, ...],
    also: tuple[str, ...],
    changes: tuple[str, ...],
    known_for_s: float,
    form: Format,
) -> None:
    """Replay a capture: what kagent would have published, when, and why it did not.

    FOLDER is written by `kagent capture`. GROUP is a name, a glob or a /regex/; all groups without any. --json prints the
    messages whole, in order of time.
    """
    from kagent.capture.folder import read_folder
    from kagent.check.judge_cluster import chooser
    from kagent.incident.session import EvaluationSession
    from kagent.replay.captured_events import recording
    from kagent.replay.driver import replay

    settings = effective(ctx)
    policies = _policies(settings, changes)
    cluster = cluster_name(settings, (ctx.find_root().obj or {}).get("cluster"))
    # Hours of records take seconds.
    ctx.with_resource(output.unless_at_once(f"Replaying {folder}."))
    record = recording(read_folder(folder), cluster, settings.pipeline.trigger)
    if record.unreadable:
        output.say(f"{record.unreadable} records could not be decoded and were skipped.", err=True)
    tick_ms = round(settings.worker.tick * 1000)
    session = EvaluationSession(policies)
    replayed = replay(record, session, chooser((*groups, *also)), tick_ms, round(known_for_s * 1000))
    if not replayed.suppressed_by:
        names = ", ".join(map(shown, record.groups[:20]))
        raise InputError(f"No group in {folder} matches; it holds: {names or 'none'}.")
    # The messages as they would be on the topic; sorted or cut they are rows.
    if form.output == "json" and not (form.sort or form.top):
        for message in replayed.messages:
            click.echo(output.escaped(to_bytes(message).decode()))
        return
    if replayed.messages or not form.is_table:
        output.print_list(form, LISTING, list(map(_record, replayed.messages, replayed.published_ms)), _cells)
    if form.is_table:
        _print_silent(replayed.messages, replayed.suppressed_by, policies)


def _policies(settings: Settings, changes: Sequence[str]) -> Callable[[str], Policy]:
    """The settings' policies or a file's, with single fields changed for all groups."""
    files = [change for change in changes if "=" not in change]
    if len(files) > 1:
        raise InputError("--policy takes one file; replay once for each.")
    chosen = next(iter(of_files(settings, files).values())) if files else settings.policies()
    fields = (change.split("=", 1) for change in changes if "=" in change)
    values = {name: yaml.safe_load(value) for name, value in fields}
    # Checked before hours of records are replayed: a wrong field is named at once.
    make_policy(values)
    # Asked at every tick of every group.
    return cache(lambda group: make_policy(values, chosen(group)))


def _print_silent(
    messages: Sequence[Recommendation],
    suppressed_by: Mapping[str, str | None],
    policies: Callable[[str], Policy],
) -> None:
    published = {message.group for message in messages}
    silent = [
        f"{shown(group)}: {_reason(reason, policies(group))}."
        for group, reason in suppressed_by.items()
        if group not in published
    ]
    if messages and silent:
        click.echo()
    # Sentences, not a table: the reason is what a person asks for, and would be cut.
    for line in ("Groups without a message, and why at the end of the capture:", *silent) if silent else ():
        output.say(line, indent=2)
    output.say(
        f"{counted(len(messages), 'message')}; {counted(len(suppressed_by), 'group')}, {len(silent)} of them silent."
    )


def _record(message: Recommendation, published_ms: int) -> Record:
    """A message as a row; its time is when it is published, its ``as_of`` that of its numbers."""
    return {
        "as_of": message.as_of,
        "time": datetime.fromtimestamp(published_ms / 1000, UTC).isoformat(),
        "cluster": message.cluster,
        "group": message.group,
        "status": message.status.value,
        "resolution": message.resolution.value if message.resolution else None,
        "verdict": message.verdict.value,
        "severity": message.severity.value,
        "reason": message.reason,
    }


def _cells(row: Record) -> dict[str, str]:
    return {
        "time": row["time"][:19].replace("T", " "),
        "group": shown(row["group"]),
        "status": f"{row['status']} ({in_words(row['resolution'])})" if row["resolution"] else row["status"],
        "verdict": verdict_words(row["verdict"]),
        "severity": row["severity"],
        "reason": shown(row["reason"], 300),
    }


def _reason(suppressed_by: str | None, policy: Policy) -> str:
    from kagent.incident.suppression import REASONS

    if policy.ignore:
        return REASONS["ignored"]
    return REASONS.get(suppressed_by, suppressed_by) if suppressed_by else "no finding"
