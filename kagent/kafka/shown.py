"""The lag that a person is shown, straight from the cluster: one row a group and partition.

Commits are read before log ends, so that lag is never too small; it is never below 0. A commit below the log's start is
counted from the start, and what lies between is ``lost``. A commit beyond the log's end belongs to a topic that was
deleted: it is void.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kagent.kafka.admin import Admin, Group, Key, Member


@dataclass(frozen=True, slots=True)
class Row:
    """One partition of one group. Offsets in records; None where unknown or not committed."""

    group: str
    topic: str
    partition: int
    committed: int | None
    log_start: int | None
    log_end: int | None
    lag: int | None
    lost: int
    void: bool
    member_id: str | None
    client_id: str | None
    host: str | None
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group with its rows, by topic and partition. ``skew``: greatest ÷ mean shown lag of its members."""

    group: Group
    rows: tuple[Row, ...]
    skew: float | None


def shown_lag(admin: Admin, groups: Iterable[str] | None = None) -> list[ShownGroup]:
    """The groups' lag by the cluster's own word; of all groups without ``groups``. Raises KafkaError."""
    names = list(groups) if groups is not None else admin.groups()
    described = admin.describe(names)
    committed = admin.committed(names)
    holders = {name: _holders(group) for name, group in described.items()}
    keys = {key for held in holders.values() for key in held} | {key for c in committed.values() for key in c}
    end, start = admin.log_end(keys).found, admin.log_start(keys).found
    found = []
    for name in names:
        group = described.get(name) or Group(name, "unknown", "unknown", "", True)
        held, commits = holders.get(name, {}), committed.get(name, {})
        rows = tuple(
            _row(name, key, commits.get(key), start.get(key), end.get(key), held.get(key))
            for key in sorted(set(held) | set(commits))
        )
        found.append(ShownGroup(group, rows, member_skew(group.members, rows)))
    return found


def _holders(group: Group) -> dict[Key, Member]:
    return {key: member for member in group.members for key in member.assigned}


def _row(
    group: str, key: Key, committed: int | None, start: int | None, end: int | None, member: Member | None
) -> Row:
    lag, lost, void = None, 0, False
    if committed is not None and end is not None:
        lost = max(0, (start or 0) - committed)
        void = committed > end
        lag = None if void else max(0, end - max(committed, start or 0))
    return Row(
        group=group,
        topic=key[0],
        partition=key[1],
        committed=committed,
        log_start=start,
        log_end=end,
        lag=lag,
        lost=lost,
        void=void,
        member_id=member.member_id if member else None,
        client_id=member.client_id if member else None,
        host=member.host if member else None,
        instance_id=member.instance_id if member else None,
    )


def member_skew(members: Sequence[Member], rows: Iterable[Row]) -> float | None:
    """Greatest ÷ mean lag over all members, those without a partition too; None without members, 1.0 without lag."""
    if not members:
        return None
    lags = dict.fromkeys((member.member_id for member in members), 0)
    for row in rows:
        if row.member_id in lags and row.lag is not None:
            lags[row.member_id] += row.lag
    total = sum(lags.values())
    return max(lags.values()) * len(lags) / total if total else 1.0
