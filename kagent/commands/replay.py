"""``kagent replay``: a captured piece of a cluster's past through the evaluation of today."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click
import yaml

from kagent.advice.explain import WHY_NOT
from kagent.check.run import chooser
from kagent.commands.check import policies as of_settings
from kagent.commands.common import effective
from kagent.commands.output import print_table
from kagent.commands.past import cluster_name
from kagent.commands.past import policies as of_files
from kagent.commands.spans import SPAN
from kagent.contract.recommendation import Recommendation, to_bytes
from kagent.errors import InputError
from kagent.incident.session import COMMON, EvaluationSession
from kagent.policy import Policy, make_policy
from kagent.settings import Settings
from kagent.text import shown


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--group", "groups", multiple=True, help="Only groups that match this glob or /regular expression/."
)
@click.option(
    "--policy",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE|FILE",
    help="A field of the policy, or a policy file; by default the settings' policy.",
)
@click.option("--known-since", "known", type=SPAN, default=0.0, help="Count groups as known for so long: 7d.")
@click.option(
    "--json", "as_json", is_flag=True, help="One recommendation a line, in order of time, and nothing else."
)
@click.pass_context
def command(
    ctx: click.Context,
    folder: Path,
    groups: tuple[str, ...],
    changes: tuple[str, ...],
    known: float,
    as_json: bool,
) -> None:
    """Replay FOLDER, written by `kagent capture`: what would have been published, when, and why not."""
    from kagent.replay.capture import read
    from kagent.replay.run import replay

    settings = effective(ctx)
    policies = _policies(settings, changes)
    name = cluster_name(settings, (ctx.find_root().obj or {}).get("cluster"))
    capture = read(folder, name, settings.pipeline.trigger)
    found = replay(
        capture,
        EvaluationSession(policies),
        chooser(groups),
        round(settings.worker.tick * 1000),
        round(known * 1000),
    )
    if not found.groups:
        raise InputError(
            f"No group in {folder} matches; there are: {', '.join(map(shown, capture.groups[:20]))}."
        )
    if as_json:
        for message in found.messages:
            click.echo(to_bytes(message))
        return
    _tell(found.messages, found.why_not, policies)


def _policies(settings: Settings, changes: Sequence[str]) -> Callable[[str], Policy]:
    """The settings' policies, a file's in their place, with single fields changed for all groups."""
    files = [change for change in changes if "=" not in change]
    fields = dict(change.split("=", 1) for change in changes if "=" in change)
    if len(files) > 1:
        raise InputError("One policy file at a time can be replayed.")
    chosen = next(iter(of_files(settings, files).values())) if files else of_settings(settings)
    values = {name: yaml.safe_load(value) for name, value in fields.items()}
    make_policy(values)
    return cache(lambda group: make_policy(values, chosen(group)))


def _tell(
    messages: Sequence[Recommendation], why_not: Mapping[str, str | None], policies: Callable[[str], Policy]
) -> None:
    print_table(("time (UTC)", "group", "status", "verdict", "severity", "reason"), map(_said, messages))
    silent = [(group, why) for group, why in why_not.items() if group not in {m.group for m in messages}]
    print_table(
        ("group", "why nothing was said"),
        [(shown(group, 60), _why(group, why, policies)) for group, why in silent],
    )


def _said(message: Recommendation) -> tuple[str, ...]:
    at = datetime.fromtimestamp(message.as_of / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    status = f"{message.status} ({message.resolution})" if message.resolution else str(message.status)
    return (
        at,
        shown(message.group, 60),
        status,
        str(message.verdict),
        str(message.severity),
        shown(message.reason, 300),
    )


def _why(group: str, why: str | None, policies: Callable[[str], Policy]) -> str:
    if policies(group).ignore:
        return WHY_NOT["ignored"]
    if why == COMMON:
        return "an incident common to many groups speaks for it"
    return WHY_NOT.get(why, why) if why else "nothing is the matter with it"
