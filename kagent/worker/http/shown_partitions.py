"""A group's partitions as metrics and API show them, kept while they cannot have changed: a scrape then costs what happens in groups.

Kept are only groups of which nothing is unread, as the age of unread records changes by itself. What is kept holds while every object that it
was made of is the same one, and no log of the group has another end, start or topic id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kagent.lag.commits import TopicCommits
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.measure import ShownLag, shown_lags
from kagent.lag.membership import NOBODY, Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.worker.groups import Entry
from kagent.worker.http.metrics import PartitionSample

Log = tuple[EndHistory, int, int, str | None]
"""A topic's history, its revisions and growths, and the topic's id."""


@dataclass(frozen=True, slots=True)
class KeptPartitions:
    """``samples`` as they were made of this roster, policy and commits, when the logs stood so."""

    roster: Roster | None
    policy: Policy
    commits: tuple[TopicCommits | None, ...]
    logs: tuple[Log, ...]
    topics: tuple[str, ...]
    samples: Sequence[PartitionSample]

    def holds(self, seen: Observation, policy: Policy) -> bool:
        """Whether the samples would come out the same."""
        if self.roster is not seen.roster or self.policy is not policy or len(self.topics) != len(seen.ends):
            return False
        commits, ends = seen.commits, seen.ends
        return all(
            commits.get(topic) is made_of and ends.get(topic) is log[0] and log == _log(log[0])
            for topic, made_of, log in zip(self.topics, self.commits, self.logs, strict=True)
        )


def shown_partitions(entry: Entry, seen: Observation, policy: Policy) -> Sequence[PartitionSample]:
    """All partitions of the group, in the order of topic and partition."""
    kept = entry.shown
    if isinstance(kept, KeptPartitions) and kept.holds(seen, policy):
        return kept.samples
    lags = list(shown_lags(seen, policy))
    samples = [sample for lag in lags for sample in _samples(lag)]
    entry.shown = _kept(seen, policy, samples) if all(lag.timeless for lag in lags) else None
    return samples


def _kept(seen: Observation, policy: Policy, samples: Sequence[PartitionSample]) -> KeptPartitions:
    topics, logs = tuple(seen.ends), tuple(map(_log, seen.ends.values()))
    return KeptPartitions(seen.roster, policy, tuple(map(seen.commits.get, topics)), logs, topics, samples)


def _log(history: EndHistory) -> Log:
    return history, history.revisions, history.growths, history.topic_id


def _samples(lag: ShownLag) -> Iterator[PartitionSample]:
    # Python's own numbers, a column at a time: taking them out of an array one by one costs several times as much.
    columns = (lag.partition, lag.committed, lag.shown, lag.age_s, lag.owner)
    for partition, committed, lag_records, age_s, owner in zip(*(c.tolist() for c in columns), strict=True):
        waits, member = (
            None if lag_records == UNKNOWN else lag_records,
            None if owner == NOBODY else owner,
        )
        yield PartitionSample(lag.topic, partition, committed, waits, age_s, member)
