"""A scenario: everything an assignment may hang on, given as values.

All of it is columns: there can be a million owned partitions and lags, and thousands of members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.strategies.assignment import Assignment
from kagent.strategies.group_members import GroupMembers
from kagent.strategies.layout import Layout
from kagent.strategies.scenario_lines import fields_of
from kagent.strategies.subscribed_member import Member
from kagent.text import shown

Lags = Mapping[str, npt.ArrayLike]
Owned = Assignment | Mapping[str, Sequence[tuple[str, int]]]
DENSE = 4
"""Up to this many cells per claim, claims are counted in a table; beyond it they are sorted."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A group before a rebalance. Build it with ``of`` or ``from_json``, which check it."""

    members: GroupMembers
    """In the order in which they joined: where two member ids fall into one bucket, Java's order hangs on it."""
    partitions_per_topic: Mapping[str, int]
    owned: Assignment
    """What the members say they own (cooperative, KIP-848). Codes are places in ``layout.topics`` and ``members``."""
    remembered: Assignment
    """What ``sticky`` knows: the partitions in the members' user data."""
    lags: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Lag per topic, one number a partition; topics that are missing have an unknown lag."""
    replica_racks: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Topic → partition → the racks of its replicas."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic → id in Kafka's base64 form; needed by the server's assignors alone, made from the name where missing."""
    layout: Layout = field(default_factory=Layout.empty, repr=False)

    @classmethod
    def of(
        cls,
        members: Sequence[Member],
        partitions_per_topic: Mapping[str, int],
        *,
        owned: Owned | None = None,
        remembered: Owned | None = None,
        lags: Lags | None = None,
        replica_racks: Mapping[str, Sequence[Sequence[str]]] | None = None,
        topic_ids: Mapping[str, str] | None = None,
    ) -> Scenario:
        """A scenario out of columns or plain dicts.

        ``owned`` and ``remembered`` take an Assignment (columns; rows of members that are not here are dropped: they
        left) or ``{member: [(topic, partition), …]}``. Without ``remembered`` the sticky assignor reads what is owned,
        as it would be in a running group. Raises InputError naming the field.
        """
        joined = GroupMembers.of(members)
        _check_counts(partitions_per_topic)
        had = _columns(owned)
        knew = had if remembered is None else _columns(remembered)
        layout = Layout.of(
            joined.kinds,
            joined.kind,
            partitions_per_topic,
            (*had.topics, *(knew.topics if knew is not had else ())),
        )
        owned_here = _translated(had, joined.ids, layout, "owned")
        return cls(
            joined,
            dict(partitions_per_topic),
            owned_here,
            owned_here if knew is had else _translated(knew, joined.ids, layout, "user_data.partitions"),
            _checked_lags(lags or {}, partitions_per_topic),
            replica_racks or {},
            topic_ids or {},
            layout,
        )

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Scenario:
        """A scenario out of one line of the ``kagent assign`` format; InputError names the field at fault."""
        read = fields_of(line)
        return cls.of(
            read.members,
            read.partitions_per_topic,
            owned=read.owned,
            remembered=read.remembered,
            lags=read.lags,
            replica_racks=read.replica_racks,
            topic_ids=read.topic_ids,
        )

    def with_owned(self, owned: Owned, generation: int) -> Scenario:
        """The same group after a rebalance: everybody in ``generation`` and owning what is given."""
        return Scenario.of(
            self.members.at_generation(generation),
            self.partitions_per_topic,
            owned=owned,
            lags=self.lags,
            replica_racks=self.replica_racks,
            topic_ids=self.topic_ids,
        )

    @property
    def member_ids(self) -> tuple[str, ...]:
        """The members' ids; a member's code is its place here."""
        return self.members.ids

    @cached_property
    def has_static_members(self) -> bool:
        """Whether a member has a ``group.instance.id`` (KIP-345)."""
        return any(instance is not None for instance in self.members.instances)

    def lag(self) -> npt.NDArray[np.int64]:
        """Lag of every partition of ``layout`` (by its global number); unknown lag counts as none."""
        flat = np.zeros(self.layout.total, np.int64)
        for topic, values in self.lags.items():
            code = self.layout.code_of.get(topic)
            if code is not None:
                start = int(self.layout.start[code])
                flat[start : start + len(values)] = values
        return flat


def refuse_contradiction(scenario: Scenario) -> None:
    """Raises InputError when two members own one partition in one generation."""
    owned = scenario.owned
    holder: dict[tuple[int, int, int], int] = {}
    rows = zip(owned.member.tolist(), owned.topic.tolist(), owned.partition.tolist(), strict=True)
    for member, topic, partition in rows:
        generation = scenario.members[member].generation
        if generation is None:
            continue
        first = holder.setdefault((topic, partition, generation), member)
        if first != member:
            raise InputError(
                f'members[{member}].owned: partition {partition} of "{shown(owned.topics[topic])}" '
                f"is owned by members[{first}] in the same generation {generation}"
            )


def _check_counts(partitions_per_topic: Mapping[str, int]) -> None:
    for topic, count in partitions_per_topic.items():
        if count < 0:
            raise InputError(f'partitions_per_topic["{shown(topic)}"]: {count} partitions cannot be')


def _columns(owned: Owned | None) -> Assignment:
    if owned is None:
        return Assignment.from_dict({})
    return owned if isinstance(owned, Assignment) else Assignment.from_dict(owned)


def _translated(rows: Assignment, ids: tuple[str, ...], layout: Layout, field_name: str) -> Assignment:
    """The rows under this scenario's codes, without members that are not in it."""
    member, topic, partition = rows.member, rows.topic, rows.partition
    if len(rows) and rows.members != ids:
        places = dict(zip(ids, range(len(ids)), strict=True))
        member = np.fromiter(map(places.get, rows.members, repeat(-1)), np.int32, len(rows.members))[member]
    if len(rows) and rows.topics != layout.topics:
        codes = map(layout.code_of.__getitem__, rows.topics)
        topic = np.fromiter(codes, np.int32, len(rows.topics))[topic]
    if len(member) and int(member.min()) < 0:
        stays = member >= 0
        member, topic, partition = member[stays], topic[stays], partition[stays]
    claims = Assignment(ids, layout.topics, topic, partition, member)
    _check_claims(claims, field_name)
    return claims


def _check_claims(claims: Assignment, field_name: str) -> None:
    """Refuses a member that claims a partition twice, and partition numbers below 0."""
    if not len(claims):
        return
    if int(claims.partition.min()) < 0:
        row = int(np.argmin(claims.partition))
        raise InputError(
            f"members[{claims.member[row]}].{field_name}: partition {claims.partition[row]} cannot be"
        )
    width = int(claims.partition.max()) + 1
    # A table of counts beats a sort of the claims while it is not much larger than they are.
    if width * len(claims.topics) <= DENSE * len(claims):
        cells = np.bincount(claims.topic.astype(np.int64) * width + claims.partition)
        if int(cells.max()) == 1:  # no partition has two claims, so no member claims one twice
            return
    key = (claims.member.astype(np.int64) * len(claims.topics) + claims.topic) * width + claims.partition
    key.sort()
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        rest, partition = divmod(int(key[twice[0]]), width)
        member, topic = divmod(rest, len(claims.topics))
        name = shown(claims.topics[topic])
        raise InputError(f'members[{member}].{field_name}: partition {partition} of "{name}" is there twice')


def _checked_lags(lags: Lags, partitions_per_topic: Mapping[str, int]) -> dict[str, npt.NDArray[np.int64]]:
    checked: dict[str, npt.NDArray[np.int64]] = {}
    for topic, values in lags.items():
        column = np.asarray(values, np.int64)
        if len(column) and int(column.min()) < 0:
            at = int(np.argmin(column))
            raise InputError(f'lags["{shown(topic)}"]: partition {at} has the negative lag {column[at]}')
        if len(column) != partitions_per_topic.get(topic, 0):
            raise InputError(
                f'lags["{shown(topic)}"]: {len(column)} lags for {partitions_per_topic.get(topic, 0)} partitions'
            )
        checked[topic] = column
    return checked
