"""The problem a plan solves: who may hold what, who holds what, and how much work each partition is.

Everything there can be a million of is a numpy column; names are kept apart and referred to by code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.text import shown

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def summed(codes: Codes, weights: Numbers, count: int) -> Numbers:
    """The sum of the weights per code; codes below 0 count nowhere."""
    held = codes >= 0
    if not held.all():
        # np.bincount refuses negative codes; nearly always there is none, and no copy is made.
        codes, weights = codes[held], weights[held]
    sums: Numbers = np.bincount(codes, weights=weights, minlength=count).astype(np.float64, copy=False)
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class PlanningProblem:
    """A group to plan for. Build it with ``of``, which checks it, unless the columns are known to be sound.

    Work of a partition is lag × cost of its topic; a member's work is the sum over its partitions ÷ its speed.
    With inflow and with costs or capacities, the objective is the time until drained instead.
    """

    members: tuple[str, ...]
    """Member ids; a member's code is its place here."""
    topics: tuple[str, ...]
    """Topic names; a topic's code is its place here."""
    topic: Codes
    """Topic code per partition."""
    partition: Codes
    """Partition number per partition."""
    lag: Numbers
    """Records behind per partition, ≥ 0."""
    owner: Codes
    """Member code per partition; -1 where it has no owner."""
    subscribed: Flags
    """[class, topic]: what the members of a class subscribe to."""
    member_class: Codes
    """Class per member: members with equal subscriptions share one."""
    cost: Numbers | None = None
    """Seconds per record, per topic; None: 1 for all, and work is in records."""
    speed: Numbers | None = None
    """How fast a member is, 1.0 being the ordinary one; None: all alike."""
    rate: Numbers | None = None
    """Records that arrive per second, per partition."""
    capacity: Numbers | None = None
    """Records a member can do per second; takes the place of cost and speed in drain times."""
    unit: Codes | None = None
    """Partitions with the same number here must stay together (co-partitioned topics); None: each is its own."""
    pinned: Flags | None = None
    """Partitions that must stay where they are."""
    instance: tuple[str | None, ...] = ()
    """Instance id per member, of static members: the name that outlives a restart, and so the one that orders."""
    rack: tuple[str | None, ...] = ()
    """Rack per member."""
    replica_racks: tuple[frozenset[str], ...] = ()
    """Racks of the replicas, per partition."""

    def __len__(self) -> int:
        return len(self.topic)

    @classmethod
    def of(
        cls,
        subscriptions: Mapping[str, Sequence[str]],
        lags: Mapping[str, Sequence[float] | npt.ArrayLike],
        owned: Mapping[str, Sequence[tuple[str, int]]] | None = None,
        *,
        costs: Mapping[str, float] | None = None,
        speeds: Mapping[str, float] | None = None,
        rates: Mapping[str, Sequence[float] | npt.ArrayLike] | None = None,
        capacities: Mapping[str, float] | None = None,
        units: Sequence[Sequence[str]] | None = None,
        pinned: Sequence[tuple[str, int]] = (),
        instances: Mapping[str, str | None] | None = None,
        racks: Mapping[str, str | None] | None = None,
        replica_racks: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> PlanningProblem:
        """A problem out of plain mappings: member → topics, topic → lag of each partition, member → partitions.

        ``units`` names the topics that are co-partitioned: [["orders", "payments"], …]. Members missing from
        ``speeds`` have speed 1, topics missing from ``costs`` cost 1. Raises InputError naming the field.
        """
        members, topics = tuple(subscriptions), tuple(lags)
        columns = {name: _column(name, values, "lags") for name, values in lags.items()}
        sizes = np.array([len(columns[name]) for name in topics], np.int64)
        topic = np.repeat(np.arange(len(topics)), sizes)
        # Row of each topic's partition 0: partition n of a topic stands at start[topic] + n.
        start = np.concatenate(([0], np.cumsum(sizes)))[:-1].astype(np.int64)
        code = {name: at for at, name in enumerate(topics)}
        place = {name: at for at, name in enumerate(members)}

        def row(at: tuple[str, int], field: str) -> int:
            name, number = at
            if name not in code or not 0 <= number < sizes[code[name]]:
                raise InputError(f"{field}: there is no partition {number} of {_quoted(name)} among the lags")
            return int(start[code[name]]) + number

        subscribed, member_class = classes(list(subscriptions.values()), code)
        return cls(
            members,
            topics,
            topic,
            np.arange(len(topic)) - start[topic] if len(topics) else topic,
            np.concatenate([columns[name] for name in topics]) if topics else np.zeros(0),
            _owners(owned or {}, place, row, len(topic)),
            subscribed,
            member_class,
            _per(topics, costs, "costs"),
            _per(members, speeds, "speeds"),
            _rates(rates, topics, sizes),
            _capacities(members, capacities),
            _units(units, code, topic, sizes, start) if units else None,
            _pinned(pinned, row, len(topic)) if pinned else None,
            tuple((instances or {}).get(name) for name in members) if instances else (),
            tuple((racks or {}).get(name) for name in members) if racks else (),
            _replica_racks(replica_racks, topics, sizes) if replica_racks else (),
        )


def classes(subscriptions: Sequence[Sequence[str]], code: Mapping[str, int]) -> tuple[Flags, Codes]:
    """Members by what they subscribe to: flags [class, topic] and the class of each member."""
    seen: dict[frozenset[str], int] = {}
    member_class = [seen.setdefault(frozenset(topics), len(seen)) for topics in subscriptions]
    subscribed = np.zeros((len(seen), len(code)), np.bool_)
    for topics, at in seen.items():
        subscribed[at, [code[name] for name in topics if name in code]] = True
    return subscribed, np.array(member_class, np.int64)


def _quoted(name: str) -> str:
    return f'"{shown(name)}"'


def _column(name: str, values: Sequence[float] | npt.ArrayLike, field: str) -> Numbers:
    column = np.asarray(values, np.float64)
    wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
    if len(wrong):
        raise InputError(
            f"{field}[{_quoted(name)}]: partition {wrong[0]} has {column[wrong[0]]:g}; a number from 0 up is expected"
        )
    return column


def _per(names: tuple[str, ...], values: Mapping[str, float] | None, field: str) -> Numbers | None:
    if not values:
        return None
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise InputError(f"{field}[{_quoted(name)}]: {value:g} cannot be; a number above 0 is expected")
    return np.array([float(values.get(name, 1.0)) for name in names])


def _capacities(members: tuple[str, ...], values: Mapping[str, float] | None) -> Numbers | None:
    """None unless the capacity of every member is known: one is never made up."""
    known = _per(members, values, "capacities")
    return known if values and all(name in values for name in members) else None


def _rates(
    rates: Mapping[str, Sequence[float] | npt.ArrayLike] | None, topics: tuple[str, ...], sizes: Codes
) -> Numbers | None:
    if not rates:
        return None
    columns = []
    for name, size in zip(topics, sizes.tolist(), strict=True):
        column = _column(name, rates.get(name, np.zeros(size)), "rates")
        if len(column) != size:
            raise InputError(f"rates[{_quoted(name)}]: {len(column)} rates for {size} partitions")
        columns.append(column)
    return np.concatenate(columns) if columns else np.zeros(0)


def _owners(
    owned: Mapping[str, Sequence[tuple[str, int]]], place: Mapping[str, int], row: _RowLookup, count: int
) -> Codes:
    owner = np.full(count, -1, np.int64)
    for member, partitions in owned.items():
        if member not in place:
            raise InputError(f"owned: {_quoted(member)} is not a member")
        for name, number in partitions:
            at = row((name, number), f"owned[{_quoted(member)}]")
            if owner[at] >= 0:
                raise InputError(
                    f"owned[{_quoted(member)}]: partition {number} of {_quoted(name)} is owned twice"
                )
            owner[at] = place[member]
    return owner


def _pinned(pinned: Sequence[tuple[str, int]], row: _RowLookup, count: int) -> Flags:
    flags = np.zeros(count, np.bool_)
    flags[[row((name, number), "pinned") for name, number in pinned]] = True
    return flags


def _units(
    units: Sequence[Sequence[str]], code: Mapping[str, int], topic: Codes, sizes: Codes, start: Codes
) -> Codes:
    first = np.arange(len(topic))
    taken: set[str] = set()
    for names in units:
        for name in names:
            if name not in code:
                raise InputError(f"units: topic {_quoted(name)} is not among the lags")
            if name in taken:
                raise InputError(f"units: topic {_quoted(name)} is there twice")
            taken.add(name)
        # Topics of unequal length: every partition number of the shorter ones exists in the longest, whose rows name the units.
        lead = code[max(names, key=lambda name: int(sizes[code[name]]))] if names else -1
        for name in names:
            at, size = int(start[code[name]]), int(sizes[code[name]])
            first[at : at + size] = start[lead] + np.arange(size)
    return first


def _replica_racks(
    racks: Mapping[str, Sequence[Sequence[str]]], topics: tuple[str, ...], sizes: Codes
) -> tuple[frozenset[str], ...]:
    columns: list[frozenset[str]] = []
    for name, size in zip(topics, sizes.tolist(), strict=True):
        known = [frozenset(names) for names in racks.get(name, ())][:size]
        columns += known + [frozenset()] * (size - len(known))
    return tuple(columns)


class _RowLookup(Protocol):
    def __call__(self, at: tuple[str, int], field: str) -> int: ...
