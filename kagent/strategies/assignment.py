"""An assignment as columns: who has which partition, without an object per partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import methodcaller

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
_VALUES = methodcaller("values")


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Rows (topic code, partition, member code), each row one partition of one member.

    The codes are places in ``topics`` and ``members``. The rows of one member, in the order of the rows, are that
    member's list as Kafka's own code would list it; between members the order says nothing.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    topic: Codes
    partition: Codes
    member: Codes
    notes: tuple[str, ...] = ()
    """Where this differs from what Kafka's code would do, and why (its bugs B1–B6 in ``docs/strategies.md``)."""
    withheld: Assignment | None = field(default=None)
    """Cooperative only: partitions that stay unassigned in this round, with the member that gets them once their owner revoked them."""

    def __len__(self) -> int:
        return len(self.topic)

    @classmethod
    def from_dict(
        cls, lists: Mapping[str, Sequence[tuple[str, int]]], notes: tuple[str, ...] = ()
    ) -> Assignment:
        """Columns out of ``{member: [(topic, partition), …]}``."""
        topics = {name: None for owned in lists.values() for name, _ in owned}
        codes = {name: at for at, name in enumerate(topics)}
        rows = [(codes[t], p, at) for at, owned in enumerate(lists.values()) for t, p in owned]
        columns = np.array(rows, np.int32).reshape(-1, 3).T
        return cls(
            tuple(lists), tuple(topics), columns[0].copy(), columns[1].copy(), columns[2].copy(), notes
        )

    @classmethod
    def from_holdings(
        cls, members: Sequence[str], holdings: Iterable[Mapping[str, Sequence[int]]], topics: Sequence[str]
    ) -> Assignment:
        """Columns out of each member's ``{topic: [partition, …]}``, all of them of these topics."""
        code_of = {name: code for code, name in enumerate(topics)}
        listed = list(holdings)
        # No Python loop over partitions: a group may hold a million of them.
        lists = list(chain.from_iterable(map(_VALUES, listed)))
        size = np.fromiter(map(len, lists), np.int64, len(lists))
        codes = np.fromiter(
            map(code_of.__getitem__, chain.from_iterable(listed)), np.int32, len(lists)
        ).repeat(size)
        owner = np.arange(len(listed), dtype=np.int32).repeat(
            np.fromiter(map(len, listed), np.int64, len(listed))
        )
        partition = np.fromiter(chain.from_iterable(lists), np.int32, int(size.sum()))
        return cls(tuple(members), tuple(topics), codes, partition, owner.repeat(size))

    def of_topics(self, topics: Sequence[str]) -> Assignment:
        """The rows of these topics, with their places there as codes."""
        code_of = {name: code for code, name in enumerate(topics)}
        codes = np.array([code_of.get(name, -1) for name in self.topics], np.int32)[self.topic]
        columns = codes, self.partition, self.member
        if len(codes) and int(codes.min()) < 0:
            codes, partition, member = (column[codes >= 0] for column in columns)
            return Assignment(self.members, tuple(topics), codes, partition, member)
        return Assignment(self.members, tuple(topics), *columns)

    def to_dict(self) -> dict[str, list[tuple[str, int]]]:
        """``{member: [(topic, partition), …]}``, every member present; one object a partition, so only when asked."""
        order = self._by_member()
        names = [self.topics[code] for code in self.topic[order].tolist()]
        rows = list(zip(names, self.partition[order].tolist(), strict=True))
        counts = self.counts()
        ends = np.cumsum(counts)
        spans = zip(self.members, (ends - counts).tolist(), ends.tolist(), strict=True)
        return {member: rows[start:end] for member, start, end in spans}

    def counts(self) -> npt.NDArray[np.int64]:
        """Partitions per member."""
        return np.bincount(self.member, minlength=len(self.members)).astype(np.int64, copy=False)

    def sums(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of a weight per row, per member."""
        summed: npt.NDArray[np.float64] = np.bincount(
            self.member, weights=weight, minlength=len(self.members)
        ).astype(np.float64, copy=False)
        return summed

    def _by_member(self) -> npt.NDArray[np.intp]:
        # numpy's stable sort of 16-bit integers is a radix sort, in linear time; wider ones are compared.
        small = len(self.members) < 1 << 16
        return np.argsort(self.member.astype(np.uint16) if small else self.member, kind="stable")
