"""The members of a group as columns: a strategy mostly asks for all ids or all subscriptions, seldom for one member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import overload

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.strategies.subscribed_member import Member
from kagent.text import shown

Ints = npt.NDArray[np.int64]
Topics = tuple[str, ...]
_ROW = attrgetter("id", "topics", "group_instance_id", "rack", "generation", "remembered_generation")


@dataclass(frozen=True, eq=False)
class GroupMembers(Sequence[Member]):
    """A sequence of members, each of which becomes an object only where it is asked for."""

    # At 2,100 members, making their objects took longer than the strategies themselves.
    ids: tuple[str, ...]
    kinds: tuple[Topics, ...]
    """The subscriptions, in the order of their first member."""
    kind: Ints
    """Per member, which of the subscriptions."""
    instances: Sequence[str | None]
    racks: Sequence[str | None]
    generations: Sequence[int | None]
    remembered: Sequence[int | None]

    def __post_init__(self) -> None:
        """Raises InputError where there is no member, or one twice."""
        if not self.ids:
            raise InputError("members: a group without members has no assignment")
        if len(set(self.ids)) < len(self.ids):
            _refuse_twice(self.ids)

    @classmethod
    def of(cls, members: Sequence[Member]) -> GroupMembers:
        """The columns of these members."""
        if isinstance(members, GroupMembers):
            return members
        ids, topics, *others = zip(*map(_ROW, members), strict=True) if members else ((),) * 6
        kinds, kind = distinct(topics)
        return cls(tuple(ids), tuple(kinds), kind, *others)

    def subscribed_to(self, kinds: Sequence[Topics]) -> GroupMembers:
        """The same members, with another subscription in the place of each one here."""
        return replace(self, kinds=tuple(kinds))

    def at_generation(self, generation: int | None) -> GroupMembers:
        """The same members, all of them in one generation, which they also remember."""
        same = (generation,) * len(self.ids)
        return replace(self, generations=same, remembered=same)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> Member: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Member]: ...
    def __getitem__(self, at: int | slice) -> Member | Sequence[Member]:
        if isinstance(at, slice):
            return tuple(self)[at]
        topics, generations = self.kinds[int(self.kind[at])], (self.generations[at], self.remembered[at])
        return Member(self.ids[at], topics, self.instances[at], self.racks[at], *generations)

    def __iter__(self) -> Iterator[Member]:
        topics = map(self.kinds.__getitem__, self.kind.tolist())
        return map(Member, self.ids, topics, self.instances, self.racks, self.generations, self.remembered)


def distinct(subscribed: Sequence[Topics]) -> tuple[list[Topics], Ints]:
    """The distinct subscriptions in the order of their first member, and per member which of them it has."""
    # Equal tuples are mostly the same object, and hashing a long one takes time.
    by_identity = dict(zip(map(id, subscribed), subscribed, strict=True))
    by_value: dict[Topics, int] = {}
    kinds = {key: by_value.setdefault(topics, len(by_value)) for key, topics in by_identity.items()}
    which = np.fromiter(map(kinds.__getitem__, map(id, subscribed)), np.int64, len(subscribed))
    return list(by_value), which


def _refuse_twice(ids: Sequence[str]) -> None:
    places: dict[str, int] = {}
    for at, member in enumerate(ids):
        first = places.setdefault(member, at)
        if first != at:
            raise InputError(
                f'members[{at}].id: "{shown(member)}" is a member twice (already members[{first}])'
            )
