"""Asking the coordinator before publishing: the group as it is now, compared with what the records say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kagent.contract.recommendation import Verdict
from kagent.incident.confirmation import GroupNow, refusal
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import GroupAnswers, GroupDescription, Key
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation


@dataclass(frozen=True, slots=True)
class CoordinatorAnswer:
    """The coordinator's answer: state (lower case), who holds what by member id, and the stable committed offsets."""

    state: str
    holders: Mapping[Key, str]
    committed: Mapping[Key, int]


def ask(admin: Admin, groups: Iterable[str]) -> GroupAnswers[CoordinatorAnswer]:
    """Describe the groups and fetch their offsets, of those that may be seen. Blocking. Raises KafkaError.

    A coordinator that moves is not waited for: the next tick asks again.
    """
    described = admin.described_now(groups)
    # require_stable: the offsets of an open transaction are waited for, not read around (KIP-447).
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics
    committed = admin.committed_now(described.found, require_stable=True)
    found = {
        name: _answer(one.group, committed.found[name])
        for name, one in described.found.items()
        if name in committed.found
    }
    failed = {**described.failed, **committed.failed}
    return GroupAnswers(found, failed, {**described.settled, **committed.settled})


def _answer(group: GroupDescription, committed: Mapping[Key, int]) -> CoordinatorAnswer:
    holders = {key: member.member_id for member in group.members for key in member.assigned}
    return CoordinatorAnswer(group.state, holders, committed)


def contradiction(verdict: Verdict, answer: CoordinatorAnswer, seen: Observation) -> str | None:
    """Why the coordinator's answer refutes a finding that rests on the records, a counted reason; None if it does not."""
    roster = seen.roster
    same = roster is not None and _holders(roster) == dict(answer.holders)
    now = GroupNow(answer.state, bool(answer.holders), same)
    return refusal(verdict, roster is not None and bool(roster.members), now)


def _holders(roster: Roster) -> dict[Key, str]:
    """Who holds what by the records, by member id."""
    return {
        (topic, partition): roster.members[code].member_id
        for topic, held in roster.owners.items()
        for partition, code in zip(held.partitions.tolist(), held.codes.tolist(), strict=True)
    }


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
