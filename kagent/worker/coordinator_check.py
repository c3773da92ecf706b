"""Asking the coordinator before publishing: the group as it is now, compared with what the records say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Key
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.observation import Observation


@dataclass(frozen=True, slots=True)
class CoordinatorAnswer:
    """The coordinator's answer: state (lower case), who holds what by member id, and the stable committed offsets."""

    state: str
    holders: Mapping[Key, str]
    committed: Mapping[Key, int]


def ask(admin: Admin, group: str) -> CoordinatorAnswer | None:
    """Describe the group and fetch its offsets; None if it may not be seen. Blocking. Raises KafkaError."""
    found = admin.describe([group]).get(group)
    if found is None:
        return None
    holders = {key: member.member_id for member in found.members for key in member.assigned}
    # require_stable: the offsets of an open transaction are waited for, not read around (KIP-447).
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics
    return CoordinatorAnswer(
        found.state, holders, admin.committed([group], require_stable=True).get(group, {})
    )


def contradiction(answer: CoordinatorAnswer, seen: Observation) -> str | None:
    """Why the coordinator's answer contradicts the records, or None if it agrees."""
    roster = seen.roster
    # A finding about a group without members: only partitions that are held now contradict it.
    if roster is None or not roster.members:
        return "group_changed" if answer.holders else None
    # While it rebalances, the assignment that the finding rests on is about to change.
    if answer.state != "stable":
        return "not_stable"
    known = {
        (topic, partition): roster.members[code].member_id
        for topic, held in roster.owners.items()
        for partition, code in zip(held.partitions.tolist(), held.codes.tolist(), strict=True)
    }
    return None if known == dict(answer.holders) else "assignment_changed"


def refreshed(seen: Observation, answer: CoordinatorAnswer) -> Observation:
    """The observation with the offsets of now: a commit that moved since counts as made at ``seen.now``."""
    commits = {topic: _moved(row, answer.committed, seen.now) for topic, row in seen.commits.items()}
    return replace(seen, commits=commits)


def _moved(row: TopicCommits, committed: Mapping[Key, int], now: int) -> TopicCommits:
    offsets, times, moved = list(row.committed), list(row.time), list(row.moved)
    for at, partition in enumerate(row.partition):
        fresh = committed.get((row.topic, partition), GONE)
        # Only forward: a commit that went back since is judged when its record comes.
        if fresh != GONE and fresh > offsets[at]:
            offsets[at], times[at], moved[at] = fresh, now, now
    return replace(row, committed=offsets, time=times, moved=moved)
