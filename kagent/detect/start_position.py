"""Where a partition without a commit is read from: held by a member, on a topic that its group commits.

Clients of the librdkafka family, franz-go, sarama, kafka-go and kafkajs commit only what moved, so a partition that has not been
served yet has no commit at all, however much waits there. Whatever ``auto.offset.reset`` is, its reader began no later than at the
log end of the moment in which it got the partition: what arrived since waits. A group whose first commits were nearer to the log
start than to the log end began at the start (``earliest``), and all that is there waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kagent.detect.evidence import RECORDS
from kagent.detect.state import JudgeState
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import EndHistory
from kagent.lag.measure import Flags, Lags, Longs, measure
from kagent.lag.membership import NOBODY
from kagent.lag.observation import Observation
from kagent.policy import Policy


def located(seen: Observation, state: JudgeState, policy: Policy) -> tuple[Lags, JudgeState]:
    """The group's lags, those of partitions without a commit among them, and the state that knows whether it begins at the start."""
    if not state.from_start and begins_at_start(seen.commits, seen.ends):
        state = replace(state, from_start=True)
    return with_start_positions(measure(seen, policy), seen, state, policy), state


def with_start_positions(lags: Lags, seen: Observation, state: JudgeState, policy: Policy) -> Lags:
    """The lags with a position for every held partition without a commit, on the topics that the group commits."""
    without = (lags.committed == GONE) & (lags.owner != NOBODY) & ~lags.orphaned
    if not without.any():
        return lags
    # The latest moment at which the member can have got the partition: later than that its reader did not begin.
    since = max(state.generation_at, state.assigned_at)
    earliest = state.from_start or policy.reset_policy == "earliest"
    committed, shown = lags.committed.copy(), lags.shown.copy()
    for code in np.unique(lags.topic[without]).tolist():
        topic = lags.topic == code
        if not (lags.committed[topic] != GONE).any():
            continue  # its reader may keep positions elsewhere
        rows = np.flatnonzero(topic & without)
        committed[rows] = _positions(seen.ends[lags.topics[code]], lags.partition[rows], since, earliest)
        shown[rows] = np.maximum(lags.end[rows] - committed[rows], 0)
    return replace(lags, committed=committed, shown=shown, low=_filled(lags.low, without, shown))


def _positions(ends: EndHistory, partition: Longs, since: int, earliest: bool) -> Longs:
    start = ends.start[partition]
    return start if earliest else np.maximum(start, ends.at(since)[partition])


def _filled(low: Longs, rows: Flags, shown: Longs) -> Longs:
    return np.where(rows & (shown >= 0), shown, low)


def next_offset(seen: Observation, topic: str, partition: int) -> int | None:
    """The offset of the record that the group reads next, None without a commit: its position is one from above then, and no record can be named. A client that retries a record may commit ahead of it and back for
    ever (aiokafka: 719, 720, 719): then it is the least of these."""
    row = seen.commits.get(topic)
    at = list(row.partition).index(partition) if row is not None and partition in row.partition else None
    if row is None or at is None or row.committed[at] == GONE:
        return None
    recent = row.recent[at] if row.recent else ()
    return min(recent) if len(set(recent)) < len(recent) else row.committed[at]


def begins_at_start(commits: Mapping[str, TopicCommits], ends: Mapping[str, EndHistory]) -> bool:
    """Whether a topic's first commits, seen where its log ends were sampled before, lie nearer to the log start than to the end."""
    return any(
        _began_at_start(row, ends[topic])
        for topic, row in commits.items()
        if topic in ends and ends[topic].samples and row.partition and 0 < ends[topic].first <= row.first
    )


def _began_at_start(row: TopicCommits, ends: EndHistory) -> bool:
    partition, committed = np.asarray(row.partition, np.int64), np.asarray(row.committed, np.int64)
    here = (partition < ends.partitions) & (committed != GONE)
    partition, committed = partition[here], committed[here]
    # `ends.first <= row.first` was checked: without a sample from before the first commit, the log end at it would be a guess.
    ahead = ends.at(row.first)[partition] - committed
    return bool(((ahead >= RECORDS) & (committed - ends.start[partition] < ahead)).any())
