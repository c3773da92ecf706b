"""Who the members of a group are: the coordinator's members, or, where it knows none, the partitions that are committed together.

A consumer that uses ``assign()`` commits its partitions in one request, so they have the same time. Two processes may do so in the same
millisecond by chance: partitions belong to one committer while they are committed at the same time again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.detect.state import JudgeState
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.measure import Lags
from kagent.lag.membership import NOBODY, Roster
from kagent.lag.observation import Observation
from kagent.lag.partition_key import of_partition_key, partition_key
from kagent.policy import Policy
from kagent.text import partition_name

WITHOUT_MEMBERS = frozenset({GroupKind.SIMPLE, GroupKind.SHARE})
"""Kinds whose records do not tell who holds which partition."""
APART = 0.1
"""What a look takes from it at which both were committed at different times. Of those that share a process some move in every commit,
others in every tenth; that two processes meet twice within ten looks happens to them once a year. Three common commits are all that counts (NOT_CHANCE), so thirty looks apart end what is known: a
partition that was given to another process."""


@dataclass(frozen=True)
class Units:
    """``names`` of the members and, per partition, the code of the one that holds it. ``known``: whether the coordinator says
    so."""

    names: tuple[str, ...]
    owner: npt.NDArray[np.int32]
    known: bool


Committer: TypeAlias = tuple[str, float]
UNKNOWN: Committer = ("", 0.0)


def co_partitioned(policy: Policy, kind: GroupKind) -> bool:
    """Whether partition p of several topics must stay with one member."""
    # Equal partition counts prove nothing: only Streams, Faust and the settings tell.
    if policy.co_partitioned is not None:
        return policy.co_partitioned
    return kind in (GroupKind.FAUST, GroupKind.STREAMS)


def learned(state: JudgeState, seen: Observation) -> JudgeState:
    """The state after a look at which partitions were committed together; the same object where nothing was learned."""
    if seen.roster is not None and seen.roster.members:
        return state
    every = [time for row in seen.commits.values() for time in row.time]
    latest = max(every, default=0)
    if latest <= state.committed_at or _is_as_ever(every, state.committed_together):
        return state
    times = {
        partition_key(topic, partition): time
        for topic, row in seen.commits.items()
        for partition, time in zip(row.partition, row.time, strict=True)
    }
    together = _after_commits(times, state.committed_together, state.committed_at)
    # Nearly every look learns nothing: a new state would be compared and written for each of them.
    if together == state.committed_together:
        return state
    return replace(state, committed_together=together, committed_at=latest)


def _is_as_ever(times: Sequence[int], known: Mapping[str, Committer]) -> bool:
    """Whether all that commit at these times (ms) are known for one process, or for one each: most groups, at every look."""
    different = len(set(times))
    if not known:
        return different == len(times)
    all_known = different == 1 and len(known) == len(times)
    return all_known and len(set(known.values())) == 1 and next(iter(known.values()))[1] >= NOT_CHANCE


def units_of(roster: Roster | None, lags: Lags, kind: GroupKind, known: Mapping[str, Committer]) -> Units:
    """The members of a group; ``known``: the committers of its partitions."""
    if roster is not None and roster.members and kind not in WITHOUT_MEMBERS:
        return Units(roster.names, lags.owner, True)
    if roster is not None and roster.members:
        return Units((), np.full(len(lags), NOBODY, np.int32), False)
    return _by_committer(list(lags.places), known)


def _by_committer(keys: Sequence[str], known: Mapping[str, Committer]) -> Units:
    seen = [known.get(key, UNKNOWN) for key in keys]
    first: dict[str, str] = {}
    # Named after its first partition, not by its label: another of them may have left since.
    names = [
        first.setdefault(each[0], key) if _is_sure(each) else key
        for key, each in zip(keys, seen, strict=True)
    ]
    code = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return Units(tuple(map(_shown, code)), np.array([code[name] for name in names], np.int32), False)


def _shown(key: str) -> str:
    topic, partition = of_partition_key(key)
    return f"the reader of {partition_name(topic, partition)}"


def _is_sure(known: Committer) -> bool:
    # More than one common commit: two processes with five seconds between commits meet in a millisecond three times a day.
    return known[1] > 1


@dataclass(frozen=True)
class _Batch:
    """What a commit at one time says of the partitions in it. ``joined``: the label of those that are new in it."""

    label: str
    joined: str
    here: Counter[str]
    """How many partitions with each label are in it."""


def _after_commits(
    times: Mapping[str, int], known: Mapping[str, Committer], since: int
) -> dict[str, Committer]:
    """The committer of each partition after the commits that came since ``since`` (ms)."""
    # A commit counts once, however many looks there are until the next one.
    newer = {key: known.get(key, UNKNOWN) for key, time in times.items() if time > since}
    moved, all_of = (Counter(label for label, _ in some.values()) for some in (newer, known))
    # Of each label the commit of its first partition counts: two processes under one label would confirm each other else.
    counts = {newer[key][0]: times[key] for key in reversed(newer)}
    batches = _batches(times, newer)
    out = {key: known[key] for key in times if key in known}
    for key, (label, _) in newer.items():
        batch = batches[times[key]]
        again = batch.here[label] > 1 and counts[label] == times[key]
        out[key] = _after_commit(newer[key], batch, again, moved[label], all_of[label])
    return {key: each for key, each in out.items() if each != UNKNOWN}


def _batches(times: Mapping[str, int], newer: Mapping[str, Committer]) -> dict[int, _Batch]:
    """The partitions that were committed at the same time, by that time (ms)."""
    batches: dict[int, list[Committer]] = {}
    for key, each in newer.items():
        batches.setdefault(times[key], []).append(each)
    return {time: _batch(str(time), some) for time, some in batches.items()}


def _batch(time: str, some: Sequence[Committer]) -> _Batch:
    joined = next((each[0] for each in some if _is_sure(each)), time)
    return _Batch(time, joined, Counter(label for label, _ in some))


def _after_commit(known: Committer, batch: _Batch, again: bool, moved: int, all_of: int) -> Committer:
    """The committer of a partition after its commit. ``again``: whether it came with the first of its label; ``moved`` and
    ``all_of``: how many of its label were committed since the last look, and how many there are."""
    label, times = known
    if label and again:
        # They were committed with the others of their label once, as by a reset of all offsets, and without those now.
        split = not _is_sure(known) and batch.here[label] < all_of
        return (batch.label if split else label), min(times + 1, NOT_CHANCE)
    if batch.here.total() > 1 and not _is_sure(known):
        return batch.joined, 1.0
    if not label or moved == batch.here[label]:
        return known
    left = round(times - APART, 1)
    return (label, left) if left > 0 else UNKNOWN
