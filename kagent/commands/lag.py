"""``kagent lag``: the lag of groups as the cluster reports it, with the columns of ``kafka-consumer-groups.sh``."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from kagent.commands import completion, output, unanswered
from kagent.commands.common import admin_of, chosen
from kagent.commands.output import SHOWN_RATIO, Format, ListColumns
from kagent.errors import InputError, KafkaError
from kagent.kafka.names import run
from kagent.own_groups import is_own
from kagent.text import counted, did_you_mean, shown
from kagent.text_table import TableColumn

if TYPE_CHECKING:
    from kagent.kafka.admin import Admin
    from kagent.kafka.group_lag import Row, ShownGroup
    from kagent.policy import Policies
    from kagent.settings import Settings

COLUMNS = (
    TableColumn("group", "GROUP", least=16),
    TableColumn("topic", "TOPIC", rank=1, least=12),
    TableColumn("partition", "PARTITION", rank=2, right=True),
    TableColumn("committed", "CURRENT-OFFSET", rank=5, right=True),
    TableColumn("log_end", "LOG-END-OFFSET", rank=6, right=True),
    TableColumn("lag", "LAG", right=True),
    TableColumn("member_id", "CONSUMER-ID", rank=8, least=20),
    TableColumn("host", "HOST", rank=7, least=12),
    TableColumn("client_id", "CLIENT-ID", rank=3, least=14),
)

LISTING = ListColumns(
    COLUMNS,
    (
        "group", "topic", "partition", "committed", "log_start", "log_end", "lag", "lost", "void", "member_id", "client_id",
        "host", "instance_id", "problem", "state", "type", "protocol", "shown_ratio",
    ),
)  # fmt: skip


@click.command()
@click.argument("groups", nargs=-1, metavar="[GROUP]...", shell_complete=completion.groups)
@click.option(
    "--all", "everything", is_flag=True, help="Also kagent's own groups and those that are ignored."
)
@output.options
@click.pass_context
def command(ctx: click.Context, groups: tuple[str, ...], everything: bool, form: Format) -> None:
    """Show the lag of GROUPS, or of all users' groups. `-` stands for no commit.

    max/mean lag (`shown_ratio` in JSON) is the greatest lag of a member over the mean of all. It is not the skew that kagent judges, which counts
    work and commit times: `kagent explain` has that. Where kagent watches the cluster, the last line says how many groups
    it judges, is learning, cannot see, has muted and ignores.

    Exit code 2: some groups or log offsets are not known, as a broker does not answer; all others are shown.
    """
    settings, name, cluster = chosen(ctx)
    from kagent.kafka.coordinators import with_lag
    from kagent.kafka.group_lag import shown_lag

    admin = admin_of(cluster)
    with output.waiting_for(cluster.bootstrap):
        listing = admin.listed()
        listed = () if groups else with_lag(listing.kinds)
        ignored = set() if everything else _ignored(listed, settings.policies())
        # A group that is named is shown, whatever the settings ignore.
        names = groups or [name for name in listed if name not in ignored]
        lag = shown_lag(admin, names, listing.kinds)
        found = lag.groups
        _refuse_unknown(found, groups, admin)
    if not found and not lag.failed:
        click.echo(_none(cluster.bootstrap, ignored, settings.topics.app), err=True)
    if form.is_table and not (form.sort or form.top):
        for group in found:
            _print_group(group, form)
    else:
        _print_rows(found, form)
    # On standard error: standard output has the table alone.
    if ignored and found and form.is_table:
        output.say(f"Not shown: {_left_out(ignored, settings.topics.app)}; --all shows them.", err=True)
    if form.is_table and (states := run(_states(settings, name))):
        output.say(states, indent=2, err=True)
    # Asked last: it is nothing to wait for where all answer.
    unlisted = {} if groups else admin.without_coordinator()
    if unanswered.report(lag.failed, unlisted, {} if groups else listing.failed, lag.partitions):
        ctx.exit(2)


async def _states(settings: Settings, name: str) -> str | None:
    """In which states kagent has the cluster's groups; None where no worker has ever reported, or without the right to read it."""
    from kagent.client.client import current
    from kagent.client.incident_text import state_line
    from kagent.contract.recommendation import State

    try:
        messages = await current(settings.home_cluster(name), settings.topics.recommendations)
    except KafkaError:
        return None
    state = messages.get(name)
    return state_line(state, int(time.time() * 1000)) if isinstance(state, State) else None


def _ignored(names: Iterable[str], of: Policies) -> set[str]:
    return {name for name in names if of(name).ignore}


def _refuse_unknown(found: Sequence[ShownGroup], asked: Sequence[str], admin: Admin) -> None:
    gone = [g.group.group for g in found if asked and not g.rows and _does_not_exist(g)]
    if gone:
        names = ", ".join(shown(name) for name in gone)
        near = did_you_mean(gone[0], admin.groups()) if len(gone) == 1 else "."
        raise InputError(f"There is no group {names} on this cluster (or no right to describe it){near}")


def _does_not_exist(group: ShownGroup) -> bool:
    # The broker describes a group that does not exist as Dead, without an error (before KIP-1043).
    return group.group.state in ("dead", "unknown") and group.group.type not in ("share", "streams")


def _left_out(names: Collection[str], app: str) -> str:
    """How many groups are not shown, and why. kagent's own are in no count of the state message; those that are ignored are."""
    own = sum(is_own(app, name) for name in names)
    kinds = (
        (own, "group of kagent's own", "groups of kagent's own"),
        (len(names) - own, "ignored group", "ignored groups"),
    )
    return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in kinds if count)


def _none(bootstrap: str, ignored: Collection[str], app: str) -> str:
    more = f" besides {_left_out(ignored, app)} (--all shows them)" if ignored else ""
    return f"{bootstrap} shows no consumer group{more}: there is none, or no right to describe it."


def records(group: ShownGroup) -> Iterator[dict[str, Any]]:
    """The group's rows for programs. ``shown_ratio``: the max/mean lag."""
    extra = {
        "state": group.group.state,
        "type": group.group.type,
        "protocol": group.group.protocol,
        "shown_ratio": group.shown_ratio,
    }
    for row in group.rows:
        yield {**asdict(row), **extra}


def _print_rows(found: Sequence[ShownGroup], form: Format) -> None:
    rows = form.chosen([record for group in found for record in records(group)], LISTING)
    if form.is_table:
        output.print_rows(COLUMNS, [_cells(row) for row in rows], form.wide)
    else:
        output.print_records(rows, form.output, LISTING.fields)


def _print_group(group: ShownGroup, form: Format) -> None:
    if group.rows:
        output.print_rows(COLUMNS, [_cells(asdict(row)) for row in group.rows], form.wide)
    output.say(_sentence(group), indent=2)
    click.echo()


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    names = {name: shown(row[name]) if row[name] else "-" for name in ("member_id", "host", "client_id")}
    numbers = {name: "-" if row[name] is None else str(row[name]) for name in ("committed", "log_end", "lag")}
    # lost: the commit is before the log start; void: it is of a topic of that name that was deleted.
    numbers["lag"] += f" ({row['lost']} lost)" if row["lost"] else " (void)" if row["void"] else ""
    return {
        "group": shown(row["group"]),
        "topic": shown(row["topic"]),
        "partition": str(row["partition"]),
        **numbers,
        **names,
    }


def _sentence(group: ShownGroup) -> str:
    name, count = shown(group.group.group), len(group.group.members)
    # Where the lag of no partition is known, 1.00 would read as evenly spread.
    is_known = any(row.lag is not None for row in group.rows)
    ratio = "" if group.shown_ratio is None or not is_known else f", {SHOWN_RATIO} {group.shown_ratio:.2f}"
    if group.group.type == "share":
        return f"{name}: a share group, which has no lag"
    problems = sorted({row.problem for row in group.rows if row.problem})
    unknown = f"; log offsets unknown: {shown('; '.join(problems))}" if problems else ""
    members = f"{count} member{'' if count == 1 else 's'}"
    return f"{name}: {group.group.state}, {members}, {_sum(group.rows)}{ratio}{unknown}"


def _sum(rows: Sequence[Row]) -> str:
    """The lag that is known, and of which partitions it is not: of one without a commit, all that its log holds may wait."""
    known = [row.lag for row in rows if row.lag is not None]
    unknown = [row for row in rows if row.lag is None]
    if not unknown:
        return f"lag {sum(known):,}"
    beside = f"{sum(known):,} in {counted(len(known), 'partition')}" if known else "unknown"
    return f"lag {beside} ({', '.join(_without_lag(unknown))})"


def _without_lag(rows: Sequence[Row]) -> Iterator[str]:
    """How many partitions have no lag, by reason."""
    if uncommitted := [row for row in rows if row.committed is None]:
        held = [row.log_end - (row.log_start or 0) for row in uncommitted if row.log_end is not None]
        yield f"{len(uncommitted)} without a commit" + (
            f", holding {counted(sum(held), 'record')}" if held else ""
        )
    if void := sum(row.void for row in rows):
        yield f"{void} with a commit of a deleted topic of the same name (void)"
    if rest := len(rows) - len(uncommitted) - void:
        yield f"{rest} whose log end is unknown"
