"""A look at a cluster with nothing but its address: groups, commits and log ends asked a few times, judged as ever.

Needs DESCRIBE on groups and topics; reads no topic, writes nothing. The coordinator does not return a commit's own time:
one that moved between two rounds was made in between, so the clocks' slack is widened by a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kagent.contract.events import TopicOffsets, TopicTombstones
from kagent.contract.recommendation import SEVERITY_RANK
from kagent.detect.state import JudgeState
from kagent.detect.without_members import unread_records
from kagent.group_key import group_key
from kagent.group_pattern import check, matches
from kagent.groups import GroupView, MemberView
from kagent.groups.client_library import library_of
from kagent.incident.evaluate import Judgement
from kagent.incident.explanation import Looked, look_at
from kagent.incident.session import EvaluationSession
from kagent.kafka.admin import Admin
from kagent.kafka.coordinators import with_lag
from kagent.kafka.descriptions import Described, GroupAnswers, Key, TopicDescription
from kagent.kafka.log_offsets import END, NO_LEADER, START, OffsetQuery
from kagent.lag.commits import TopicCommits, apply
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation, TopicInfo
from kagent.policy import Policies, Policy

T = TypeVar("T")
BEFORE = 86_400_000
ROUNDS = 18
MOST_BETWEEN = 10.0
LEAST_BETWEEN = 1.0
PARTS = 3
"""It settles, then a standstill must last, and there is time left to see it: each wait is cut to a third of the look."""
UNSEEN = (
    "how often a group rebalances, standstills and delays that last longer than this look, records that retention "
    "deletes between two looks, and whether advice was followed"
)
"""What only the service sees."""
STATES = {"stable": "Stable", "empty": "Empty", "dead": "Dead", "preparingrebalance": "PreparingRebalance"}


@dataclass(slots=True)
class Watched:
    """One group over the rounds."""

    group: str
    roster: Roster
    commits: dict[str, TopicCommits] = field(default_factory=dict)
    known: dict[Key, int] = field(default_factory=dict)
    last: Judgement | None = None
    seen: Observation | None = None


@dataclass(slots=True)
class Checkup:
    """The rounds. ``seconds``: how long it will look; ``between``: seconds between two rounds; ``command_options``: how ``kagent``'s
    commands reach the cluster, for advice that names one."""

    admin: Admin
    cluster: str
    policies: Policies
    seconds: float
    wanted: Callable[[str], bool] = lambda group: True
    clock: Callable[[], float] = time.time
    command_options: str = ""
    groups: dict[str, Watched] = field(default_factory=dict)
    ends: dict[str, EndHistory] = field(default_factory=dict)
    infos: dict[str, TopicInfo] = field(default_factory=dict)
    rounds: int = 0
    unanswered: dict[str, str] = field(default_factory=dict)
    """Groups whose coordinator does not answer, and why."""
    unlisting: dict[str, str] = field(default_factory=dict)
    """Brokers that list none of their groups, and why."""
    unread: dict[Key, str] = field(default_factory=dict)
    """Partitions of which the last round got no log end, and why."""
    session: EvaluationSession = field(init=False)
    _source: int = 0
    _asked_last: int = 0

    def __post_init__(self) -> None:
        self.session = EvaluationSession(self.policy)

    @property
    def between(self) -> float:
        """Seconds between two rounds."""
        return min(MOST_BETWEEN, max(LEAST_BETWEEN, self.seconds / ROUNDS))

    def policy(self, group: str) -> Policy:
        """The group's own policy, its waiting times cut to what one look can wait for."""
        own = self.policies(group)
        part = self.seconds / PARTS
        return replace(
            own,
            # Nothing was published before this look, and nothing will be after it.
            cooldown=0.0,
            settle=min(own.settle, part),
            hold=min(own.hold, part),
            cadence=max(own.cadence, self.between),
        )

    def look(self) -> None:
        """One round: commits before log ends, then the judgement. Raises KafkaError."""
        asked = self._ms()
        # Share groups have no committed offsets that OffsetFetch would return (KIP-932).
        found = self._answered(self.admin.described_each(self._names()))
        described = {name: answer for name, answer in found.items() if answer.group.type != "share"}
        # Without require_stable (KIP-447): during a transaction the answer would be UNSTABLE_OFFSET_COMMIT, and a look cannot wait.
        committed = self._answered(self.admin.committed_each(described, require_stable=False))
        for name, answer in described.items():
            if name not in self.unanswered:
                self._take(name, answer, committed.get(name, {}), asked)
        # Commits first, log ends after them: the lag can be too great by what came between, never negative.
        self._sample({t for w in self.groups.values() for t in (*w.commits, *w.roster.owners)})
        self._asked_last = asked
        self.rounds += 1
        now = self._ms()
        for watched in self.groups.values():
            self._judge(watched, now)

    def _answered(self, answers: GroupAnswers[T]) -> Mapping[str, T]:
        self.unanswered |= answers.failed
        return answers.found

    def _ms(self) -> int:
        return int(self.clock() * 1000)

    def _names(self) -> list[str]:
        if self.rounds:
            # A coordinator that did not answer in all that time is not waited for once more.
            return [name for name in self.groups if name not in self.unanswered]
        listing = self.admin.listed()
        self.unlisting = dict(listing.failed)
        return [g for g in with_lag(listing.kinds) if self.wanted(g) and not self.policies(g).ignore]

    def _take(self, name: str, answer: Described, committed: Mapping[Key, int], asked: int) -> None:
        roster = Roster.of(view_of(answer))
        watched = self.groups.setdefault(name, Watched(name, roster))
        # Kept while nothing changed: the coordinator gives a classic group no generation to compare.
        if roster.assignment != watched.roster.assignment or roster.state != watched.roster.state:
            watched.roster = roster
        # The commit was made somewhere between two rounds; the middle halves the error.
        middle = (self._asked_last + asked) // 2 if self._asked_last else asked
        moved: dict[str, list[tuple[int, int]]] = {}
        for key, offset in committed.items():
            if watched.known.get(key) != offset:
                moved.setdefault(key[0], []).append((key[1], offset))
        gone: dict[str, list[int]] = {}
        for topic, partition in set(watched.known) - set(committed):
            gone.setdefault(topic, []).append(partition)
        watched.known = dict(committed)
        for topic, rows in moved.items():
            self._source += 1
            partitions, offsets = [p for p, _ in rows], [o for _, o in rows]
            # The coordinator names no source offset; a counter keeps the order that commits are applied in.
            sources = [self._source] * len(rows)
            update = TopicOffsets(topic, None, partitions, offsets, [middle] * len(rows), sources)
            watched.commits[topic] = apply(watched.commits.get(topic), update)
        for topic, removed in gone.items():
            self._source += 1
            tombs = TopicTombstones(topic, removed, [self._source] * len(removed))
            watched.commits[topic] = apply(watched.commits.get(topic), tombs)

    def _sample(self, wanted: Iterable[str]) -> None:
        topics = self.admin.topics(wanted)
        new = set(topics) - set(self.infos)
        configs = self.admin.topic_configs(new) if new else {}
        for name, topic in topics.items():
            known = self.infos.get(name)
            compacted = (
                known.compacted if known else "compact" in configs.get(name, {}).get("cleanup.policy", "")
            )
            self.infos[name] = TopicInfo(
                topic.partitions, topic.id, compacted, topic.leaders, topic.replica_racks
            )
        every = [(t.name, p) for t in topics.values() for p in range(t.partitions)]
        # A partition without a leader has no broker to ask: it would be waited for, until one must have been elected.
        keys = [(name, p) for name, p in every if topics[name].has_leader(p)]
        self.unread = dict.fromkeys(set(every) - set(keys), NO_LEADER)
        asked = self._ms()
        (ends,) = self.admin.offsets_each(keys, [OffsetQuery(END)])
        seen = self._ms()
        self.unread |= ends.failed
        rest = OffsetQuery(START), OffsetQuery(END, committed_only=True)
        # Of one whose end is unknown the rest is of no use, and its leader was waited for: once is enough.
        starts, stables = self.admin.offsets_each(ends.found, rest)
        for topic in topics.values():
            history = self.ends.setdefault(topic.name, EndHistory(topic.partitions, topic.id))
            start, end, stable = (_column(answers.found, topic) for answers in (starts, ends, stables))
            history.add(asked, seen, start, end, stable, topic.id)

    def _judge(self, watched: Watched, now: int) -> None:
        key, first = group_key(self.cluster, watched.group), watched.last is None
        # As if known for a day, or each group would count as new and need four times the evidence.
        self.session.assume_known(self.cluster, watched.group, now - BEFORE, now)
        watched.seen = Observation(
            cluster=self.cluster,
            group=watched.group,
            now=now,
            roster=watched.roster,
            commits=watched.commits,
            ends={t: self.ends[t] for t in (*watched.commits, *watched.roster.owners) if t in self.ends},
            topics=self.infos,
            as_of=now,
            tool_options=self.admin.cluster.tool_options(),
            command_options=self.command_options,
        )
        watched.last = self.session.judge(watched.seen)
        if watched.last.candidate is not None:
            # Every observation here is an answer of the coordinator: it confirms itself.
            watched.last = self.session.confirm(watched.last.candidate, watched.seen)
        state = watched.last.state
        if first:  # the coordinator does not say when the group last rebalanced: long ago, until a rebalance is observed
            state = replace(state, generation_at=min(state.generation_at, now - BEFORE))
            self.session.states[key] = state

    def state(self, group: str) -> JudgeState | None:
        """What is remembered of a group."""
        return self.session.states.get(group_key(self.cluster, group))

    def explained(self, group: str) -> tuple[Judgement, Looked]:
        """The last judgement of a group, and the model and findings by which it is explained."""
        watched, state = self.groups[group], self.state(group)
        assert watched.last is not None
        assert watched.seen is not None
        assert state is not None
        return watched.last, look_at(watched.last, watched.seen, state, self.policy(group))


def _column(found: Mapping[Key, int], topic: TopicDescription) -> list[int]:
    return [found.get((topic.name, p), UNKNOWN) for p in range(topic.partitions)]


def view_of(answer: Described) -> GroupView:
    """The coordinator's description in the form of the records' fold.

    Subscriptions are left out, as those of all members are not known; a classic group has no generation and no time of its last
    rebalance here.
    """
    group = answer.group
    return GroupView(
        group=group.group,
        type="simple" if group.simple and not group.members else group.type,
        state=STATES.get(group.state, group.state.title()),
        protocol_type=None if group.simple else "consumer",
        protocol=group.protocol or None,
        generation=None,
        target_epoch=None,
        members=tuple(
            MemberView(
                m.member_id,
                m.instance_id,
                m.client_id,
                m.host,
                rack=None,
                subscriptions=(),
                assigned=_assigned(m.assigned),
                library=_library(answer, m.member_id),
            )
            for m in group.members
        ),
        last_change=0,
    )


def _library(answer: Described, member_id: str) -> str | None:
    """The client library by what the member sent when it joined, as the records tell it."""
    report = answer.reported.get(member_id)
    if answer.group.type != "classic" or report is None:
        return None
    given = {"version": report.assignment_version}
    return library_of(answer.group.protocol or None, report.subscription or {}, given)


def _assigned(held: Iterable[Key]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(held):
        found.setdefault(topic, []).append(partition)
    return {topic: tuple(partitions) for topic, partitions in found.items()}


def chooser(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Which groups are wanted: those that match one of these globs or /regular expressions/; all without any."""
    wanted = tuple(patterns)
    for pattern in wanted:
        check(pattern)
    return lambda group: not wanted or any(matches(p, group) for p in wanted)


def findings_of(checkup: Checkup) -> list[tuple[str, Any]]:
    """What was found, worst severity first: group → its open recommendation as the judgement keeps it."""
    found = [
        (group, state.incident.message)
        for group in checkup.groups
        if (state := checkup.state(group)) is not None and state.incident is not None
    ]
    return sorted(found, key=lambda f: (SEVERITY_RANK[str(f[1]["severity"])], f[0]))


def judged_groups(checkup: Checkup) -> list[str]:
    """Groups that were judged, not passed over."""
    return sorted(
        w.group
        for w in checkup.groups.values()
        if w.seen and w.seen.consumes and not checkup.policies(w.group).ignore
    )


def unread_groups(checkup: Checkup) -> dict[str, int]:
    """Each judged group without members in which records wait, and how many: the service reports it after ``absent_after``."""
    found = {}
    for group in judged_groups(checkup):
        seen, state = checkup.groups[group].seen, checkup.state(group)
        if seen is None or state is None or state.incident is not None:
            continue
        if (unread := unread_records(seen, state, checkup.policies(group))) is not None:
            found[group] = unread.records
    return found
