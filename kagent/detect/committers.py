"""Who the members of a group are: the coordinator's members, or, where it knows none, the partitions that are committed together.

A consumer that uses ``assign()`` commits all its partitions in one request, so they have the same time. Partitions that
had the same time twice belong to one committer. Where a single committer commits everything (Flink's and Spark's
checkpoints), each partition stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.lag.measure import Lags
from kagent.lag.membership import NOBODY, Roster
from kagent.policy import Policy

WITHOUT_MEMBERS = frozenset({GroupKind.SIMPLE, GroupKind.SHARE})
"""Kinds whose records do not tell who holds which partition."""
TWICE = 2


@dataclass(frozen=True)
class Units:
    """``names`` of the members and, per partition, the code of the one that holds it. ``known``: whether the coordinator says
    so; ``committers``: <topic>/<partition> → (label of the committer it was seen with, how often)."""

    names: tuple[str, ...]
    owner: npt.NDArray[np.int32]
    known: bool
    committers: Mapping[str, tuple[str, int]]


def co_partitioned(policy: Policy, kind: GroupKind) -> bool:
    """Whether partition p of several topics must stay with one member."""
    # Equal partition counts prove nothing: only Streams, Faust and the settings tell.
    if policy.co_partitioned is not None:
        return policy.co_partitioned
    return kind in (GroupKind.FAUST, GroupKind.STREAMS)


def units_of(
    roster: Roster | None, lags: Lags, kind: GroupKind, committers: Mapping[str, tuple[str, int]]
) -> Units:
    """The members of a group."""
    if roster is not None and roster.members and kind not in WITHOUT_MEMBERS:
        return Units(roster.names, lags.owner, True, {})
    if roster is not None and roster.members:
        return Units((), np.full(len(lags), NOBODY, np.int32), False, {})
    return _by_committer(lags, committers)


def _by_committer(lags: Lags, known: Mapping[str, tuple[str, int]]) -> Units:
    keys = list(lags.places)
    seen = _seen_together(lags, keys, known)
    # Once may be chance: two programs that commit in the same millisecond.
    sure = {key: label for key, (label, times) in seen.items() if times >= TWICE}
    if len(set(sure.values())) < 2:  # one committer for all, or nothing known yet
        sure = {}
    labels = [sure.get(key, key) for key in keys]
    names = tuple(dict.fromkeys(labels))
    code = {name: at for at, name in enumerate(names)}
    owner = np.array([code[label] for label in labels], np.int32)
    return Units(tuple(_shown(n) for n in names), owner, False, seen)


def _shown(label: str) -> str:
    topic, _, partition = label.rpartition("/")
    return f"the reader of {topic}-{partition}"


def _seen_together(
    lags: Lags, keys: list[str], known: Mapping[str, tuple[str, int]]
) -> dict[str, tuple[str, int]]:
    """Which partitions bore the same commit time, each under the first of them, and how often that was seen."""
    first: dict[int, str] = {}
    for at, time in enumerate(lags.time.tolist()):
        if time > 0:
            first.setdefault(time, keys[at])
    out: dict[str, tuple[str, int]] = {}
    shared = dict(zip(*np.unique(lags.time, return_counts=True), strict=True))
    for at, key in enumerate(keys):
        time = int(lags.time[at])
        label, times = known.get(key, (key, 0))
        if time <= 0 or shared[time] < 2:
            out[key] = (label, times)
        elif label == first[time]:
            out[key] = (label, min(times + 1, TWICE))
        # Not yet sure: the partition joins those with which it was committed this time.
        elif times < TWICE:
            out[key] = (first[time], 1)
        else:
            out[key] = (label, times)
    return out
