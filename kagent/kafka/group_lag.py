"""The lag that a person is shown, straight from the cluster: one row a group and partition.

Commits are read before log ends, so that lag is never too small; it is never below 0. A commit below the log's start is
counted from the start, and what lies between is ``lost``. A commit beyond the log's end belongs to a topic that was
deleted: it is void.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kagent.kafka.admin import Admin
from kagent.kafka.coordinators import with_lag
from kagent.kafka.descriptions import Described, GroupDescription, Key, MemberDescription, Offsets
from kagent.kafka.log_offsets import END, MISSING, START, OffsetQuery


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
    problem: str | None = None
    """Why the log's offsets are unknown."""


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group with its rows, by topic and partition. ``shown_ratio``: greatest ÷ mean shown lag of its members."""

    group: GroupDescription
    rows: tuple[Row, ...]
    shown_ratio: float | None


@dataclass(frozen=True, slots=True)
class ClusterLag:
    """The groups; why nothing is known of those whose coordinator does not answer, and no log offsets of some partitions."""

    groups: list[ShownGroup]
    failed: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[Key, str] = field(default_factory=dict)


def shown_lag(
    admin: Admin, groups: Iterable[str] | None = None, kinds: Mapping[str, str] | None = None
) -> ClusterLag:
    """The groups' lag by the cluster's own word; of all groups without ``groups``.

    Share groups are listed without rows: they have no lag. Raises KafkaError.

    :param kinds: all groups by their protocol type, where they are known already.
    """
    if kinds is None:
        kinds = admin.listed().kinds
    names = list(groups) if groups is not None else with_lag(kinds)
    # Before the log ends: logs only grow, so a lag read in this order may be too great by a moment, never negative.
    committed = admin.committed_each(names)
    answered = [name for name in names if name not in committed.failed]
    described = admin.described_each(answered)
    logs = _logs(admin, described.found.values(), committed.found.values())
    found = []
    for name in (name for name in answered if name not in described.failed):
        answer = described.found.get(name)
        group = _seen(answer.group if answer else None, name, kinds.get(name))
        rows = _rows(group, committed.found.get(name, {}), logs)
        found.append(ShownGroup(group, rows, max_to_mean_lag(group.members, rows)))
    return ClusterLag(found, {**committed.failed, **described.failed}, logs.unread())


def _logs(admin: Admin, described: Iterable[Described], committed: Iterable[Mapping[Key, int]]) -> _Logs:
    keys = {key for found in described for key in _holders(found.group)} | {
        key for c in committed for key in c
    }
    return _Logs.of(admin, keys)


def rows_of(admin: Admin, group: GroupDescription, committed: Mapping[Key, int]) -> tuple[Row, ...]:
    """The rows of one group whose commits were read a moment ago. Raises KafkaError."""
    keys = _holders(group).keys() | committed.keys()
    return _rows(group, committed, _Logs.of(admin, keys))


@dataclass(frozen=True, slots=True)
class _Logs:
    end: Offsets
    start: Offsets

    @classmethod
    def of(cls, admin: Admin, keys: Iterable[Key]) -> _Logs:
        return cls(*admin.offsets_each(keys, (OffsetQuery(END), OffsetQuery(START))))

    def unread(self) -> dict[Key, str]:
        """The partitions that exist and whose leader gives no answer."""
        return {key: why for key, why in self.end.failed.items() if why not in MISSING}


def _seen(group: GroupDescription | None, name: str, kind: str | None) -> GroupDescription:
    """The group as described; one that only its own kind of request describes is known by its kind."""
    if kind == "share":
        return GroupDescription(name, "unknown", kind, "", False)
    return group or GroupDescription(name, "unknown", "unknown", "", True)


def _rows(group: GroupDescription, committed: Mapping[Key, int], logs: _Logs) -> tuple[Row, ...]:
    held = _holders(group)
    return tuple(
        _row(group.group, key, committed.get(key), logs, held.get(key))
        for key in sorted(set(held) | set(committed))
    )


def _holders(group: GroupDescription) -> dict[Key, MemberDescription]:
    return {key: member for member in group.members for key in member.assigned}


def _row(group: str, key: Key, committed: int | None, logs: _Logs, member: MemberDescription | None) -> Row:
    lag, lost, void = None, 0, False
    end, start = logs.end.found.get(key), logs.start.found.get(key)
    if committed is not None and end is not None:
        lost = max(0, (start or 0) - committed)
        # The topic was created anew and is shorter: the commit counts records of the old one.
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
        problem=logs.end.failed.get(key),
    )


def max_to_mean_lag(members: Sequence[MemberDescription], rows: Iterable[Row]) -> float | None:
    """Greatest ÷ mean lag over all members, those without a partition too; None without two members to compare, 1.0 without lag."""
    if len(members) < 2:
        return None
    lags = dict.fromkeys((member.member_id for member in members), 0)
    for row in rows:
        if row.member_id in lags and row.lag is not None:
            lags[row.member_id] += row.lag
    total = sum(lags.values())
    return max(lags.values()) * len(lags) / total if total else 1.0
