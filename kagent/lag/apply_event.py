"""A group's event folded into what is known of it: its commits by topic, its membership. Pure; who keeps rows writes them."""

from __future__ import annotations

from collections.abc import Mapping

from kagent.contract.events import GroupEvent, TopicOffsets, TopicTombstones
from kagent.groups import KnownRecords
from kagent.groups import apply_all as fold
from kagent.lag.commits import TopicCommits
from kagent.lag.commits import apply as commit
from kagent.offsets import Record


def commits_after(known: Mapping[str, TopicCommits], event: GroupEvent) -> dict[str, TopicCommits]:
    """The topics whose commits the event changes, by name. What is older than what is known changes nothing."""
    changed: dict[str, TopicCommits] = {}
    updates: list[TopicOffsets | TopicTombstones] = [*event.offsets, *event.tombstones]
    for update in updates:
        # An event may hold two parts of one topic, commits and tombstones: the second is applied to what the first made.
        before = changed.get(update.topic) or known.get(update.topic)
        after = commit(before, update)
        if after is not before:
            changed[update.topic] = after
    return changed


def membership_after(state: KnownRecords | None, event: GroupEvent) -> KnownRecords | None:
    """The group after the event's records, in log order. A record that is older than what is known changes nothing."""
    return fold(state, [(Record.from_json(r.record), r.source_offset, r.time) for r in event.records])
