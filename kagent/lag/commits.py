"""What a group has committed on one topic: the row of the lag table, as parallel lists.

    partition      ascending
    committed      the offset, or GONE: the commit was removed (tombstone) or belongs to a topic that was deleted
    time           of the latest commit, ms (the coordinator's clock)
    source_offset  where that commit or tombstone stood in `__consumer_offsets`
    moved          time of the latest commit that moved the offset, ms

Order is kept per partition: what stood earlier in the source never replaces what stood later, tombstones too, so a replay
changes nothing and brings nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import gt, lt
from statistics import median
from typing import Any

import msgspec
import numpy as np

from kagent.contract.admission import Millis, Offset, Partition, Topic, checked, same_length
from kagent.contract.events import TopicOffsets, TopicTombstones
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.time_units import MINUTE_MS

GONE = -1
"""In place of an offset that expired or was deleted."""
GAPS = 12
"""How many gaps between commits are remembered, to learn the group's own cadence on this topic; of each member as many of its own,
its busy windows, and of the group its pauses. Up to five that are not the usual ones leave the median among the usual ones."""
LATEST = NOT_CHANCE
"""Different offsets of a partition that are remembered at least, to tell progress from a retry that goes back and forth: where one goes back, those of
about a minute, at most as many as gaps."""


@dataclass(frozen=True, slots=True)
class TopicCommits:
    """The commits of one group on one topic.

    ``gaps``: the latest gaps between commits of a partition, ms; ``commits``: how often something newer came;
    ``first``: time of the first commit seen; ``rewound``: time of the last commit that went back, 0 if none did.
    ``moved``: when each partition last made progress; ``recent``: the latest different offsets of each, newest last: three, or as many
    as :func:`remembered` says where they do not rise.
    """

    topic: str
    topic_id: str | None = None
    partition: Sequence[int] = ()
    committed: Sequence[int] = ()
    time: Sequence[int] = ()
    source_offset: Sequence[int] = ()
    moved: Sequence[int] = ()
    gaps: Sequence[int] = ()
    commits: int = 0
    first: int = 0
    rewound: int = 0
    recent: Sequence[Sequence[int]] = ()

    @property
    def cadence(self) -> int | None:
        """The usual gap between commits in ms (median), None before three are known."""
        return cadence_of(self.gaps)

    @property
    def last(self) -> int:
        """Time of the newest commit, ms; 0 if there is none."""
        return max(self.time, default=0)

    def up_to(self, offset: int) -> TopicCommits:
        """Without partitions whose latest commit stood after this offset in the source; the same object if there is none."""
        kept = [at for at, source in enumerate(self.source_offset) if source <= offset]
        if len(kept) == len(self.source_offset):
            return self
        return replace(
            self,
            partition=[self.partition[at] for at in kept],
            committed=[self.committed[at] for at in kept],
            time=[self.time[at] for at in kept],
            source_offset=[self.source_offset[at] for at in kept],
            moved=[self.moved[at] for at in kept],
            recent=[self.recent[at] for at in kept] if self.recent else (),
        )

    def to_row(self) -> dict[str, Any]:
        """As it is kept in a table: plain lists."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> TopicCommits:
        """The commits that :meth:`to_row` wrote, also another release. Raises Refused for what it cannot have written."""
        read = checked(lambda: msgspec.convert(row, _StoredCommits))
        return cls(**{name: getattr(read, name) for name in cls.__slots__})


def cadence_of(gaps: Sequence[int]) -> int | None:
    """The usual one of these gaps in ms (median), None before three are known."""
    return int(median(gaps)) if len(gaps) >= NOT_CHANCE else None


def remembered(gaps: Sequence[int]) -> int:
    """How many different offsets of a partition are remembered where one goes back, by the gaps (ms) between commits."""
    cadence = cadence_of(gaps)
    return min(GAPS, max(LATEST, MINUTE_MS // cadence)) if cadence else LATEST


class _StoredCommits(msgspec.Struct):
    """A row's commits with their bounds; what is missing has been added later."""

    topic: Topic
    topic_id: str | None = None
    partition: list[Partition] = []
    committed: list[Offset] = []
    time: list[Millis] = []
    source_offset: list[Offset] = []
    moved: list[Millis] = []
    gaps: list[Millis] = []
    commits: int = 0
    first: Millis = 0
    rewound: Millis = 0
    recent: list[list[Offset]] = []

    def __post_init__(self) -> None:
        if not self.moved:
            # Rows of releases without `moved`: the latest commit stands for the latest progress.
            self.moved = list(self.time)
        columns = (self.partition, self.committed, self.time, self.source_offset, self.moved)
        same_length(self.topic, *columns)
        if self.recent and len(self.recent) != len(self.partition):
            raise ValueError(f"columns of {self.topic}: recent has another length")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else value


def apply(row: TopicCommits | None, update: TopicOffsets | TopicTombstones) -> TopicCommits:
    """The row after one part of an event; the same object if it says nothing new."""
    known = row or TopicCommits(update.topic)
    if isinstance(update, TopicTombstones):
        # A tombstone: the offsets expired (offsets.retention.minutes) or were deleted with the topic.
        gone = [GONE] * len(update.partition)
        partition, source = _list(update.partition), _list(update.source_offset)
        return _merged(known, partition, gone, [0] * len(gone), source)
    # KIP-516: a topic that was deleted and created again has another id under the same name.
    other_topic = bool(update.topic_id and known.topic_id and update.topic_id != known.topic_id)
    if other_topic:
        # A replay may bring commits of the deleted topic after those of the new one; the log's order decides, not arrival.
        if max(_list(update.source_offset), default=-1) < max(known.source_offset, default=-1):
            return known  # of the topic that was deleted
        known = _void(known)
    if update.topic_id and known.topic_id != update.topic_id:
        known = replace(known, topic_id=update.topic_id)
    columns = (_list(c) for c in (update.partition, update.committed, update.time, update.source_offset))
    return _merged(known, *columns)


def _list(column: Any) -> list[int]:
    """Python's own integers: a row goes into JSON."""
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _void(row: TopicCommits) -> TopicCommits:
    """The topic was created anew: its old commits count no more, but are not forgotten by order."""
    gone = [GONE] * len(row.partition)
    # Source offsets stay: otherwise a replay would bring the deleted topic's commits back.
    return replace(row, committed=gone, recent=[[GONE] for _ in gone], topic_id=None, rewound=0)


def _merged(
    row: TopicCommits,
    partitions: Sequence[int],
    committed: Sequence[int],
    times: Sequence[int],
    source: Sequence[int],
) -> TopicCommits:
    # The usual event: all of the partitions known, each commit newer. It needs no merge.
    if row.partition == partitions and all(map(gt, source, row.source_offset)):
        return _replaced(row, committed, times, source)
    place = {partition: at for at, partition in enumerate(row.partition)}
    newer = [
        at
        for at, partition in enumerate(partitions)
        if partition not in place or source[at] > row.source_offset[place[partition]]
    ]
    if not newer:
        return row
    merge = _Merge(row, place)
    for at in newer:
        merge.take(partitions[at], committed[at], times[at], source[at])
    return merge.row(row)


def _replaced(
    row: TopicCommits, committed: Sequence[int], times: Sequence[int], source: Sequence[int]
) -> TopicCommits:
    """The row after newer commits of exactly its partitions, in its order: what nearly every event is.

    The same as :class:`_Merge` makes of it, without its bookkeeping for partitions that come anew or twice.
    """
    moved, recent = list(row.moved), list(row.recent) or [[o] for o in row.committed]
    gap, rewound = 0, row.rewound
    for at, (offset, before, time) in enumerate(zip(committed, row.committed, times, strict=True)):
        if offset != GONE and before != GONE:
            since = time - row.time[at]
            # The smallest gap of the event: a partition that is seldom committed says nothing about the cadence.
            if since > 0 and (since < gap or not gap):
                gap = since
            if offset < before:
                rewound = max(rewound, time)
        if offset != before:
            known = recent[at]
            # Nearly always: what _with and _is_progress say of offsets that rise, in half of the time.
            if len(known) == LATEST and known[0] < known[1] < known[2] < offset:
                recent[at], moved[at] = [known[1], known[2], offset], time
                continue
            recent[at], progress = _remember(known, offset, row)
            if progress:
                moved[at] = time
    return TopicCommits(
        row.topic,
        row.topic_id,
        row.partition,
        list(committed),
        list(times),
        list(source),
        moved,
        [*row.gaps, gap][-GAPS:] if gap else row.gaps,
        row.commits + 1,
        row.first or min((t for t in times if t), default=0),
        rewound,
        recent,
    )


def _remember(known: Sequence[int], offset: int, row: TopicCommits) -> tuple[list[int], bool]:
    """The remembered offsets after a changed one, and whether that was progress."""
    kept = _with(known, offset, row)
    # Before what was passed is forgotten, which is none.
    return without_passed(kept), _is_progress(known, kept)


def _with(known: Sequence[int], offset: int, row: TopicCommits) -> list[int]:
    """The remembered offsets and a new one."""
    kept = [*known, offset]
    if len(known) > LATEST or not _rise(kept):
        kept = kept[-remembered(row.gaps) :]
    # Of offsets that rise, which is the usual case, more would cost bytes and tell nothing.
    return kept[-LATEST:] if _rise(kept) else latest_beyond(kept)


def latest_beyond(offsets: Sequence[int]) -> list[int]:
    """The remembered offsets; the latest three alone where they rise beyond all others: a client that commits ahead of a record comes back."""
    before, latest = list(offsets[:-LATEST]), list(offsets[-LATEST:])
    return latest if _rise(latest) and latest[0] > max(before, default=GONE) else [*before, *latest]


def without_passed(offsets: Sequence[int]) -> list[int]:
    """The remembered offsets without those that were passed for good before the one that the commits come back to: once they are forgotten,
    the least would rise, though nothing moves.

    Java's KIP-848 consumer, a record retried with ``seek()``: 3309, 3316, 3330, 3317, 3647, 3317, 3728, 3317.
    """
    kept = list(offsets)
    for at, offset in enumerate(kept):
        if kept[at:].count(offset) >= NOT_CHANCE and offset == min(kept[at:]):
            return kept[at:]
    return kept


def _rise(offsets: Sequence[int]) -> bool:
    return all(map(lt, offsets, offsets[1:]))


def _is_progress(known: Sequence[int], kept: Sequence[int]) -> bool:
    """Whether a changed offset is progress: the least of the remembered ones rose.

    A client that retries a record with ``seek()`` may commit ahead of it and back for ever, the record's own offset now and then (aiokafka with
    auto-commit: 10711, 10811, 10804, 10807, 10811, 10711).
    """
    return len(known) < LATEST or GONE in known or min(kept) > min(known)


class _Merge:
    """The columns while they are changed; a partition may come more than once, in any order."""

    def __init__(self, row: TopicCommits, place: dict[int, int]) -> None:
        self.place, self.before = place, row
        self.partition = list(row.partition)
        self.committed = list(row.committed)
        self.time = list(row.time)
        self.source = list(row.source_offset)
        self.moved = list(row.moved)
        # Rows of older versions have no `recent`; the latest offset is all that is known of their past.
        self.recent = [list(r) for r in row.recent] or [[o] for o in self.committed]
        self.rewound = row.rewound
        self.gap = 0

    def take(self, partition: int, committed: int, time: int, source: int) -> None:
        at = self.place.get(partition)
        if at is None:
            self.place[partition] = len(self.partition)
            self.partition.append(partition)
            self.committed.append(committed)
            self.time.append(time)
            self.source.append(source)
            self.moved.append(time)
            self.recent.append([committed])
            return
        # Order by partition, not by row: one newer commit of partition 0 must not make an older, missed one of partition 1 void.
        if source <= self.source[at]:
            return
        before = self.committed[at]
        if committed != GONE and before != GONE:
            self._learn(time - self.time[at], before, committed, time)
        if committed != before:
            self._progress(at, committed, time)
        self.committed[at], self.source[at] = committed, source
        self.time[at] = time

    def _progress(self, at: int, committed: int, time: int) -> None:
        """Note a changed offset."""
        self.recent[at], progress = _remember(self.recent[at], committed, self.before)
        if progress:
            self.moved[at] = time

    def _learn(self, gap: int, before: int, committed: int, time: int) -> None:
        if gap > 0:
            self.gap = min(self.gap or gap, gap)
        if committed < before:
            self.rewound = max(self.rewound, time)

    def row(self, before: TopicCommits) -> TopicCommits:
        order = sorted(range(len(self.partition)), key=self.partition.__getitem__)
        first = before.first or min((t for t in self.time if t), default=0)
        return replace(
            before,
            partition=[self.partition[at] for at in order],
            committed=[self.committed[at] for at in order],
            time=[self.time[at] for at in order],
            source_offset=[self.source[at] for at in order],
            moved=[self.moved[at] for at in order],
            recent=[self.recent[at] for at in order],
            gaps=[*before.gaps, self.gap][-GAPS:] if self.gap else before.gaps,
            commits=before.commits + 1,
            first=first,
            rewound=self.rewound,
        )
