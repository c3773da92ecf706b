"""``kagent mutes``: who silenced what, until when and why."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from kagent.active_mutes import Mutes
from kagent.client.incident_text import age
from kagent.commands import output
from kagent.commands.common import chosen
from kagent.commands.output import Format
from kagent.contract.mute import is_pattern
from kagent.kafka.names import run
from kagent.text import shown
from kagent.text_table import TableColumn

COLUMNS = (
    TableColumn("group", "GROUP", least=16),
    TableColumn("until", "UNTIL"),
    TableColumn("left", "LEFT", rank=1, right=True),
    TableColumn("by", "BY", rank=2, least=8),
    TableColumn("groups", "GROUPS", rank=3, right=True),
    TableColumn("why", "WHY", rank=4, least=14, keep="all"),
)


@click.command()
@output.options
@click.pass_context
def command(ctx: click.Context, form: Format) -> None:
    """List the mutes in effect; a pattern is one line, with how many groups it muted when it was set."""
    from kagent.client.mutes_topic import current_mutes

    settings, name, _ = chosen(ctx)
    home = settings.home_cluster(name)
    with output.waiting_for(home.bootstrap):
        found = run(current_mutes(home, settings.topics.mutes))
    now_ms = int(time.time() * 1000)
    records = form.chosen(list(mute_rows(found, now_ms)))
    if not form.is_table:
        output.print_records(records, form.output)
    elif records:
        output.print_rows(COLUMNS, [_cells(record, now_ms) for record in records], form.wide)
    else:
        output.say("No group is muted.")


def mute_rows(mutes: Mutes, now_ms: int) -> Iterator[dict[str, Any]]:
    """One row a mute that holds, the first to end first; groups that a pattern muted are counted in its row."""
    standing = {key: record for key, record in mutes.records.items() if record.until > now_ms}
    for key, record in sorted(standing.items(), key=lambda item: item[1].until):
        cluster, _, group = key.partition("/")
        # Written for a group by a pattern's mute: counted in the pattern's row.
        if record.pattern is not None and record.pattern != group:
            continue
        by_this = [
            k for k, r in standing.items() if r.pattern == group and k != key and k.startswith(f"{cluster}/")
        ]
        yield {
            "cluster": cluster,
            "group": group,
            "until": record.until,
            "by": record.by,
            "why": record.why,
            "groups": len(by_this) if is_pattern(group) else 1,
        }


def _cells(record: Mapping[str, Any], now_ms: int) -> dict[str, str]:
    return {
        "group": shown(record["group"]),
        "until": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record["until"] / 1000)),
        "left": age(record["until"] - now_ms),
        "by": shown(record["by"]) or "-",
        "groups": str(record["groups"]),
        "why": shown(record["why"]),
    }
