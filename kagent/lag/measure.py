"""What lag is: one group's partitions as columns, with the lag that is shown and the lag that is judged.

*Shown* lag is log end − committed. It is as old as the commit, so a caught-up member shows its inflow times the commit's
age, and unequal inflow alone looks like skew. *Judged* lag is taken at the commit's own time: at least the end in the last
sample before the commit − committed. What is judged besides is in ``kagent.detect.backlog``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.membership import NOBODY, Roster
from kagent.lag.observation import Observation
from kagent.lag.partition_key import partition_key
from kagent.policy import Policy

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lags:
    """A group's partitions. All columns have one entry per partition, in the order of topic and partition.

    ``owner``: code in the roster or NOBODY. ``shown``, ``low``: records, UNKNOWN (-1) where there is no commit.
    ``lost``: records that retention took before they were read. ``inflow``: records/s. ``orphaned``: no member reads the topic. ``at_most``: a compacted topic has holes.
    ``stable``: last stable offset or UNKNOWN. ``cadence``: usual gap between commits, in ms.
    """

    topics: tuple[str, ...]
    topic: npt.NDArray[np.int32]
    partition: Longs
    owner: npt.NDArray[np.int32]
    committed: Longs
    time: Longs
    moved: Longs
    start: Longs
    end: Longs
    stable: Longs
    shown: Longs
    low: Longs
    lost: Longs
    inflow: Floats
    orphaned: Flags
    at_most: Flags
    cadence: Floats

    def __len__(self) -> int:
        return len(self.partition)

    @cached_property
    def known(self) -> Flags:
        """Whether the partition has a commit, or a reset policy that stands for one."""
        return np.asarray(self.shown != UNKNOWN)

    @cached_property
    def counted(self) -> Flags:
        """Whether it counts as some member's lag."""
        return np.asarray(self.known & ~self.orphaned & (self.owner != NOBODY))

    @property
    def undeleted(self) -> Lags:
        """The same as if no unread record had been deleted, where something unread is left."""
        # Where nothing is left nothing waits, however far below the log start the commit is.
        left = (self.committed != GONE) & (np.maximum(self.committed, self.start) < self.end)
        return replace(self, start=np.where(left, np.minimum(self.start, self.committed), self.start))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """:func:`partition_key` of each partition → its place."""
        rows = zip(self.topic.tolist(), self.partition.tolist(), strict=True)
        return {
            partition_key(self.topics[topic], partition): at for at, (topic, partition) in enumerate(rows)
        }

    def name(self, at: int) -> tuple[str, int]:
        """Topic and partition at this place."""
        return self.topics[self.topic[at]], int(self.partition[at])

    def keys(self, rows: Iterable[int]) -> list[str]:
        """:func:`partition_key` of each place."""
        return [partition_key(*self.name(at)) for at in rows]


def held_up(lags: Lags, allowed: int) -> Flags:
    """Partitions whose commit stands at the last stable offset while the log goes on beyond it: a transaction is open. ``allowed``:
    records that count as caught up."""
    # UNKNOWN (-1) where a sample came without last stable offsets, or the partition's leader did not answer.
    open_ = (lags.stable >= 0) & (lags.stable < lags.end - allowed)
    return np.asarray(open_ & (lags.committed >= lags.stable - allowed))


def measure(seen: Observation, policy: Policy) -> Lags:
    """The group's lag, partition by partition."""
    names = _sampled(seen)
    parts = [_topic(seen, policy, code, name) for code, name in enumerate(names)]
    columns = {
        column: np.concatenate([part[column] for part in parts]) if parts else np.zeros(0, kind)
        for column, kind in COLUMNS.items()
    }
    return Lags(topics=tuple(names), **columns)


COLUMNS: Mapping[str, type] = {
    "topic": np.int32,
    "partition": np.int64,
    "owner": np.int32,
    "committed": np.int64,
    "time": np.int64,
    "moved": np.int64,
    "start": np.int64,
    "end": np.int64,
    "stable": np.int64,
    "shown": np.int64,
    "low": np.int64,
    "lost": np.int64,
    "inflow": np.float64,
    "orphaned": np.bool_,
    "at_most": np.bool_,
    "cadence": np.float64,
}


@dataclass(frozen=True, slots=True)
class ShownLag:
    """What is shown of a topic's partitions, one entry each: ``committed`` may be GONE, ``shown`` UNKNOWN; ``age_s``: how long ago the
    oldest unread record was written, at least; ``owner``: code in the roster or NOBODY. ``timeless``: it stays so until a commit comes, the
    roster changes or a sample of the log says something new."""

    topic: str
    partition: Longs
    owner: npt.NDArray[np.int32]
    committed: Longs
    shown: Longs
    age_s: Floats
    timeless: bool


def shown_lags(seen: Observation, policy: Policy) -> Iterator[ShownLag]:
    """What pages and metrics show of a group: `measure` without what only a judgement needs, at a quarter of its cost."""
    for name in _sampled(seen):
        part = _Part.of(seen, policy, name)
        late, age_s = np.flatnonzero(part.shown > 0), np.zeros(len(part.partition))
        if len(late):
            base = np.maximum(part.committed, part.start)[late]
            age_s[late] = seen.ends[name].age(part.partition[late], base, seen.measured_at)[0]
        owner = _owners(seen.roster, name, part.partition)
        # Unread records age; and a commit beyond the log end becomes void, see void().
        timeless = not len(late) and not (part.committed > part.end).any()
        yield ShownLag(name, part.partition, owner, part.committed, part.shown, age_s, timeless)


def _sampled(seen: Observation) -> list[str]:
    roster = seen.roster
    names = sorted(set(seen.commits) | (set(roster.owners) if roster else set()))
    # A topic that was never sampled has no lag yet; the caller reports the group as blind if that lasts (log_end_coverage).
    return [name for name in names if name in seen.ends]


def _owners(roster: Roster | None, name: str, partition: Longs) -> npt.NDArray[np.int32]:
    return roster.holder(name, partition) if roster else np.full(len(partition), NOBODY, np.int32)


class _Part(NamedTuple):
    """The columns of a topic that both need."""

    partition: Longs
    committed: Longs
    time: Longs
    moved: Longs
    start: Longs
    end: Longs
    shown: Longs
    none: Flags
    assumed: Longs

    @classmethod
    def of(cls, seen: Observation, policy: Policy, name: str) -> _Part:
        ends, commits = seen.ends[name], seen.commits.get(name, TopicCommits(name))
        partition, committed, time, moved = _rows(commits, ends, seen.roster, name)
        committed = np.where(void(commits, ends, partition, committed, time), GONE, committed)
        start, end = ends.start[partition], ends.end[partition]
        none, assumed = committed == GONE, _assumed(start, end, policy)
        # A commit below the log start cannot be read from there: its reader continues at the start.
        shown = np.where(none, assumed, np.maximum(end - np.maximum(committed, start), 0))
        return cls(partition, committed, time, moved, start, end, shown, none, assumed)


def _topic(seen: Observation, policy: Policy, code: int, name: str) -> dict[str, npt.NDArray[np.generic]]:
    ends, roster, part = seen.ends[name], seen.roster, _Part.of(seen, policy, name)
    commits, info = seen.commits.get(name), seen.topics.get(name)
    cadence = float((commits and commits.cadence) or policy.cadence * 1000)
    count = len(part.partition)
    return {
        "topic": np.full(count, code, np.int32),
        "partition": part.partition,
        "owner": _owners(roster, name, part.partition),
        "committed": part.committed,
        "time": part.time,
        "moved": part.moved,
        "start": part.start,
        "end": part.end,
        "stable": ends.stable[part.partition],
        "shown": part.shown,
        "low": np.where(part.none, part.assumed, _judged(ends, part, policy.allowed_lag)),
        "lost": np.where(part.none, 0, np.maximum(part.start - part.committed, 0)),
        "inflow": ends.rates()[part.partition],
        "orphaned": np.full(count, is_orphaned(roster, name)),
        "at_most": np.full(count, bool(info and info.compacted)),
        "cadence": np.full(count, cadence),
    }


def _rows(
    commits: TopicCommits, ends: EndHistory, roster: Roster | None, name: str
) -> tuple[Longs, Longs, Longs, Longs]:
    """The partitions with a commit and those that somebody holds or should hold; only those whose log is known."""
    subscribed = roster is not None and name in roster.subscribed
    listed = np.asarray(commits.partition, np.int64)
    columns = [np.asarray(c, np.int64) for c in (listed, commits.committed, commits.time, commits.moved)]
    # The usual case: a commit of every partition of a subscribed topic, in their order.
    if len(listed) == ends.partitions and len(listed) and listed[-1] == len(listed) - 1 and subscribed:
        return columns[0], columns[1], columns[2], columns[3]
    here = listed < ends.partitions
    columns = [column[here] for column in columns]
    if not subscribed:
        has = columns[1] != GONE
        return columns[0][has], columns[1][has], columns[2][has], columns[3][has]
    # All partitions of a subscribed topic: one without a commit may be the one that waits.
    every = np.arange(ends.partitions, dtype=np.int64)
    out = [np.full(ends.partitions, GONE, np.int64), np.zeros_like(every), np.zeros_like(every)]
    for column, filled in zip(columns[1:], out, strict=True):
        filled[columns[0]] = column
    return every, out[0], out[1], out[2]


def void(commits: TopicCommits, ends: EndHistory, partition: Longs, committed: Longs, time: Longs) -> Flags:
    """Commits that are none: of a topic that was deleted and created anew."""
    if commits.topic_id and ends.topic_id and commits.topic_id != ends.topic_id:
        return np.ones(len(partition), bool)
    # Beyond the log end a minute after the commit: a topic created anew, on a cluster that names no topic ids. A fresh commit may
    # be ahead of the last sample.
    beyond = (committed > ends.end[partition]) & (time < ends.last - 60_000)
    return (time < ends.born) | beyond


def _judged(ends: EndHistory, part: _Part, allowed_lag: int) -> Longs:
    """Lag at the commits' own time, at least, in records. Within ``allowed_lag`` it is 0."""
    before, _ = ends.bracket(part.partition, part.time)
    low = np.maximum(before - np.maximum(part.committed, part.start), 0)
    return np.where(low <= allowed_lag, 0, low)


def _assumed(start: Longs, end: Longs, policy: Policy) -> Longs:
    """Lag without a commit: unknown, unless the settings name the reset policy (the rule of KAFKA-5337)."""
    if policy.reset_policy is None:
        return np.full(len(end), UNKNOWN, np.int64)
    return np.zeros(len(end), np.int64) if policy.reset_policy == "latest" else np.maximum(end - start, 0)


def is_orphaned(roster: Roster | None, topic: str) -> bool:
    """Whether the group has members and none of them reads the topic."""
    # With a pattern or an unknown subscription some member may read the topic after all.
    return bool(roster and roster.members and topic not in roster.subscribed and not roster.open_subscription)


def ages(seen: Observation, lags: Lags) -> tuple[Floats, Flags]:
    """Time lag of every partition in seconds, and whether it is only a lower bound (``≥``)."""
    age, beyond = np.zeros(len(lags)), np.zeros(len(lags), bool)
    for code, name in enumerate(lags.topics):
        at = np.flatnonzero((lags.topic == code) & (lags.committed != GONE))
        base = np.maximum(lags.committed[at], lags.start[at])
        age[at], beyond[at] = seen.ends[name].age(lags.partition[at], base, seen.measured_at)
    return age, beyond
