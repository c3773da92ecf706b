"""``kagent mutes``: who silenced what, until when and why."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from kagent.active_mutes import Mutes, covers
from kagent.client.incident_text import age
from kagent.commands import output
from kagent.commands.common import chosen
from kagent.commands.output import Format, ListColumns
from kagent.contract.mute import MuteRecord, is_pattern
from kagent.errors import KafkaError
from kagent.group_key import split_key
from kagent.kafka.names import run
from kagent.text import shown
from kagent.text_table import TableColumn

if TYPE_CHECKING:
    from kagent.settings import Settings

WITHIN_S = 5.0
"""Seconds for a cluster to list its groups: the mutes are the answer, how many groups match is beside it."""
COLUMNS = (
    TableColumn("group", "GROUP", least=16),
    TableColumn("until", "UNTIL"),
    TableColumn("left", "LEFT", rank=1, right=True, sort="until"),
    TableColumn("by", "BY", rank=2, least=8),
    TableColumn("groups", "GROUPS", rank=3, right=True),
    TableColumn("why", "WHY", rank=4, least=14, keep="all"),
)

LISTING = ListColumns(COLUMNS, ("cluster", "group", "until", "by", "why", "groups"))


@click.command()
@output.options
@click.pass_context
def command(ctx: click.Context, form: Format) -> None:
    """List the mutes in effect; a pattern is one line, with how many groups of the cluster it matches now."""
    from kagent.client.mutes_topic import current_mutes

    settings, name, _ = chosen(ctx)
    home = settings.home_cluster(name)
    with output.waiting_for(home.bootstrap):
        found = run(current_mutes(home, settings.topics.mutes))
    now_ms = int(time.time() * 1000)
    records = form.chosen(list(mute_rows(found, now_ms, _existing(settings, found))), LISTING)
    if not form.is_table:
        output.print_records(records, form.output, LISTING.fields)
    elif records:
        output.print_rows(COLUMNS, [_cells(record, now_ms) for record in records], form.wide)
    else:
        output.say("No group is muted.")


def _existing(settings: Settings, mutes: Mutes) -> dict[str, list[str]]:
    """The groups of each cluster on which a pattern mutes; of one that does not list them nothing."""
    from kagent.kafka.admin import Admin

    policies, found = settings.policies(), {}
    for name, cluster in settings.clusters.items():
        if any(of == name and is_pattern(group) for of, group in map(split_key, mutes.records)):
            # A reader of mutes may have no right on groups, and a cluster may be away.
            with contextlib.suppress(KafkaError):
                found[name] = [g for g in Admin(cluster, WITHIN_S).groups() if not policies(g).ignore]
    return found


def mute_rows(
    mutes: Mutes, now_ms: int, existing: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Iterator[dict[str, Any]]:
    """One row a mute that holds, the first to end first; groups that a pattern mutes are counted in its row.

    ``existing``: cluster → its groups; where they are not known, those count that were muted when the pattern was set.
    """
    standing = {key: record for key, record in mutes.records.items() if record.until > now_ms}
    for key, record in sorted(standing.items(), key=lambda item: item[1].until):
        cluster, group = split_key(key)
        # Written for a group by a pattern's mute: counted in the pattern's row.
        if record.pattern is not None and record.pattern != group:
            continue
        yield {
            "cluster": cluster,
            "group": group,
            "until": record.until,
            "by": record.by,
            "why": record.why,
            "groups": _count(standing, key, existing.get(cluster)) if is_pattern(group) else 1,
        }


def _count(standing: Mapping[str, MuteRecord], key: str, existing: Sequence[str] | None) -> int:
    cluster, pattern = split_key(key)
    if existing is not None:
        # One of that very name is a match, too: a group may be called like a pattern.
        return sum(name == pattern or covers(pattern, name) for name in existing)
    return sum(r.pattern == pattern and k != key and split_key(k)[0] == cluster for k, r in standing.items())


def _cells(record: Mapping[str, Any], now_ms: int) -> dict[str, str]:
    return {
        "group": shown(record["group"]),
        "until": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record["until"] / 1000)),
        "left": age(record["until"] - now_ms),
        "by": shown(record["by"]) or "-",
        "groups": str(record["groups"]),
        "why": shown(record["why"]),
    }
