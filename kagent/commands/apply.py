"""``kagent apply GROUP``: have a KIP-848 group take its open recommendation now."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kagent.commands import completion, output
from kagent.commands.cluster_name import as_reported
from kagent.commands.common import chosen, user
from kagent.errors import InputError
from kagent.group_key import group_key
from kagent.policy import policy_for
from kagent.text import partition_name, shown

if TYPE_CHECKING:
    from kagent.apply.apply_plan import Applied, Applier
    from kagent.apply.attempts import Attempts
    from kagent.apply.preconditions import CheckedPlan

SHOWN_MOVES = 20


@click.command()
@click.argument("group", shell_complete=completion.groups)
@click.option("--yes", is_flag=True, help="Do not ask; for programs.")
@click.option("--dry-run", is_flag=True, help="Check and show, and move nothing.")
@output.json_option("The result as one line of JSON.")
@click.option(
    "--within",
    "deadline_s",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds to wait for the members.",
)
@click.option(
    "--reset",
    is_flag=True,
    help="Forget how often the group was moved, so that it may be moved again after too many moves (latched).",
)
@click.pass_context
def command(
    ctx: click.Context, group: str, yes: bool, dry_run: bool, as_json: bool, deadline_s: float, reset: bool
) -> None:
    """Have GROUP take its open recommendation now, if it can be followed to the letter.

    The brokers need kagent's assignor (`kagent assignor`). A member that gets nothing joins and leaves; only the partitions
    that move are revoked. At most once in 15 minutes and three times a day for each group.
    """
    settings, name, cluster = chosen(ctx)
    # Two topics are read to their end before the plan can be checked, which takes longer than a second.
    if not as_json:
        output.announce(f"Checking whether {shown(group)} may take its plan.")
    from kagent.apply.apply_plan import Applier
    from kagent.kafka.reach import refuse_absent

    home = settings.home_cluster(name)
    for address in dict.fromkeys((cluster.bootstrap, home.bootstrap)):
        refuse_absent(address)
    follows = policy_for(settings.policy, settings.groups, group).uniform_follows
    name = as_reported(settings, name)
    applier = Applier(cluster, home, name, group, settings.topics, uniform_follows=follows)
    # Before the check: a group that latched off cannot be moved, and that is what --reset is for.
    if reset:
        _attempts(applier).reset()
        output.say(f"{shown(group)} may be moved again.")
        return
    plan = applier.check()
    if not as_json:
        _show(plan)
    if dry_run:
        if as_json:
            click.echo(json.dumps({"applied": False, "moves": _moves(plan)}))
        return
    _confirm(group, yes)
    with _ended_in_order():
        applied = applier.apply(plan, _attempts(applier), deadline_s)
    _report(applied, as_json)
    # 1, not 2: kagent works, and a member has not taken up its part within the deadline.
    if not applied.whole:
        ctx.exit(1)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does. By default the member that gets nothing would not leave: it would stay in the
    group until its session ends."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _attempts(applier: Applier) -> Attempts:
    from kagent.apply.attempts import Attempts

    return Attempts(applier.home, applier.topics, group_key(applier.name, applier.group), user())


def _confirm(group: str, yes: bool) -> None:
    if yes:
        return
    # A prompt that no person sees would take the end of input for a no, or wait in a job for ever.
    if not sys.stdin.isatty():
        raise InputError("There is no terminal to ask on: give --yes, or --dry-run to see what would move.")
    click.confirm(f"Have {shown(group)} take this plan?", abort=True)


def _moves(plan: CheckedPlan) -> list[dict[str, object]]:
    return [
        {"topic": m.topic, "partition": m.partition, "from": m.source, "to": m.to}
        for m in plan.recommendation.moves
    ]


def _show(plan: CheckedPlan) -> None:
    rec = plan.recommendation
    output.say(shown(rec.reason), indent=2)
    for move in rec.moves[:SHOWN_MOVES]:
        source = shown(move.source) if move.source else "no member"
        click.echo(f"  {partition_name(move.topic, move.partition)}  {source} → {shown(move.to)}")
    if len(rec.moves) > SHOWN_MOVES:
        click.echo(f"  and {len(rec.moves) - SHOWN_MOVES} more")


def _report(applied: Applied, as_json: bool) -> None:
    if as_json:
        rows = [
            {"member": name, "partitions": parts, "after_s": seconds}
            for name, parts, seconds in _rows(applied)
        ]
        click.echo(json.dumps({"applied": applied.whole, "moves": _moves(applied.plan), "members": rows}))
        return
    for name, parts, seconds in _rows(applied):
        when = "has not taken up its part" if seconds is None else f"after {seconds} s"
        click.echo(f"{shown(name)}: {', '.join(parts) or 'nothing'} ({when})")


def _rows(applied: Applied) -> Iterator[tuple[str, list[str], float | None]]:
    for member_id, seconds in applied.taken_up_s.items():
        parts = [partition_name(*part) for part in sorted(applied.held.get(member_id, ()))]
        yield applied.plan.names[member_id], parts, seconds
