"""The groups that a worker owns, as live values beside the tables' rows, by partition of the events topic.

Tables hold the rows of all partitions together. Ticks, pages and a partition that goes away ask for the groups of one, so
each has an index of its own, built from the rows that name it whenever partitions are assigned. A row that cannot be read
costs its group alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from kagent.contract.admission import Refused, checked
from kagent.contract.events import GroupEvent
from kagent.contract.redaction import CLEAR, Redaction
from kagent.detect.state import JudgeState
from kagent.group_key import group_key
from kagent.groups import KnownRecords, view, well_typed
from kagent.incident.evaluate import Judgement
from kagent.incident.validity import Validity
from kagent.lag.commits import TopicCommits
from kagent.lag.membership import Roster
from kagent.tables import lag, members, verdicts
from kagent.tables.declaration import PER_GROUP, Tables
from kagent.text import shown
from kagent.worker.ingest_progress import UNKNOWN_SOURCE

log = logging.getLogger("kagent.worker")
GONE_AFTER_MS = 25 * 3_600_000
"""A group without state is forgotten when no replayed event can bring it back: a little after retention."""


@dataclass(frozen=True, slots=True)
class ValidJudgement:
    """The last judgement of a group while ticks need not make it again; ``mutes``: how many changes of mutes there had been."""

    judgement: Judgement
    validity: Validity
    mutes: int


@dataclass(slots=True)
class Entry:
    """One group: its membership, commits and judgement. ``roster`` is made anew when the membership changes."""

    cluster: str
    group: str
    source: int
    state: KnownRecords | None = None
    commits: dict[str, TopicCommits] = field(default_factory=dict)
    judged: JudgeState | None = None
    last_event: int = 0
    newest_source: int = -1
    """The greatest offset in ``__consumer_offsets`` at which one of its records stood."""
    unjudged_since: int | None = None
    """When the oldest event came that no judgement has seen yet, by this worker's clock in ms."""
    redaction: Redaction = CLEAR
    valid: ValidJudgement | None = None
    """Why the next ticks may leave it unjudged; None if they may not, as after every event."""
    busy: bool = False
    """Whether an event came between the last two ticks."""
    shown: object = None
    """What the last page showed of its partitions, see ``kagent/worker/http/shown_partitions.py``."""
    unreadable: set[str] = field(default_factory=set)
    """Tables whose row of this group could not be read and has not been rebuilt yet."""
    _roster: Roster | None = None

    @property
    def key(self) -> str:
        return group_key(self.cluster, self.group)

    def roster(self, topic_names: Mapping[str, str]) -> Roster:
        """Who is in the group; looked at again while a topic id is without a name."""
        # A KIP-848 assignment has topic ids only: the roster is incomplete until each has a name.
        if self._roster is None or self._roster.unresolved:
            self._roster = Roster.of(view(self.state, topic_names, self.group), self.redaction)
        return self._roster

    def topics(self, topic_names: Mapping[str, str]) -> set[str]:
        """The topics whose log ends must be known to judge it."""
        return set(self.commits) | set(self.roster(topic_names).subscribed)

    @property
    def gone(self) -> bool:
        """Whether nothing of the group is left in the source: no membership and no commit."""
        # Offsets outlive the membership (offsets.retention.minutes): a group without members still has lag.
        committed = any(offset >= 0 for row in self.commits.values() for offset in row.committed)
        return not committed and not (self.state is not None and self.state.live)

    @property
    def has_incident(self) -> bool:
        """Whether an incident of it is open."""
        return self.judged is not None and self.judged.incident is not None


@dataclass(slots=True)
class Index:
    """The entries of every owned partition."""

    tables: Tables
    redaction: Redaction = CLEAR
    partitions: dict[int, dict[str, Entry]] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(table, reason) → rows that could not be read."""

    @property
    def group_count(self) -> int:
        """How many groups all owned partitions have."""
        return sum(len(entries) for entries in self.partitions.values())

    def load(self, owned: Iterable[int]) -> None:
        """Build the entries of these partitions from the tables' rows, and drop all others.

        A row that another release wrote in a shape that cannot be read is left out and counted in ``refused``.
        """
        self.partitions = {partition: {} for partition in owned}
        for name, take in READERS.items():
            for row in getattr(self.tables, name).values():
                entry = self._entry(row)
                if entry is not None:
                    self._restore(name, entry, take, row)

    def _restore(self, table: str, entry: Entry, take: Callable[[Entry, Any], None], row: Any) -> None:
        try:
            checked(lambda: take(entry, row))
        except Refused as error:
            self.refused[table, error.reason] += 1
            entry.unreadable.add(table)
            log.warning(
                "the row of %s in table %s cannot be read and is left out: %s", shown(entry.key), table, error
            )

    def _entry(self, row: Any) -> Entry | None:
        entries = self.partitions.get(row.partition)
        if entries is None:
            return None
        # Rows of lag and verdicts do not name the source partition; the row of members sets it.
        return self._of(entries, row.cluster, row.group, UNKNOWN_SOURCE)

    def _of(self, entries: dict[str, Entry], cluster: str, group: str, source: int) -> Entry:
        key = group_key(cluster, group)
        if key not in entries:
            entries[key] = Entry(cluster, group, source, redaction=self.redaction)
        return entries[key]

    def entries(self, partition: int) -> dict[str, Entry]:
        """The groups of one partition, by key."""
        return self.partitions.setdefault(partition, {})

    def take(self, partition: int, event: GroupEvent) -> Entry:
        """Apply an event and write the rows that it changes.

        Raises Refused where its membership records cannot be applied; its commits are, all the same.
        """
        key = group_key(event.cluster, event.group)
        entry = self._of(self.entries(partition), event.cluster, event.group, event.source)
        # Before anything of it is applied: an event may be refused in part, or change the source alone.
        entry.valid = None
        entry.source, entry.last_event = event.source, max(entry.last_event, event.time)
        entry.newest_source = max(entry.newest_source, event.newest_source)
        try:
            state, roster = checked(lambda: _applied(entry, event))
        except Refused as error:
            self._commit(partition, entry, event)
            raise Refused("membership", f"a membership record cannot be applied: {error}") from error
        # The row also names the partition: a group without membership records needs it to be found at the next start.
        # A fold that changes nothing returns the same object: events that repeat what is known write no row.
        # Where its members are not known, no row may say that there are none.
        if state is not entry.state or not (key in self.tables.members or "members" in entry.unreadable):
            entry.state, entry._roster = state, roster
            if state is not None:
                entry.unreadable.discard("members")
            self._keep_members(partition, entry)
        self._commit(partition, entry, event)
        return entry

    def bring_back(self, partition: int, event: GroupEvent) -> None:
        """Take in a group whose rows are lost, by what its coordinator says. Raises Refused as :meth:`take`: it is set aside then."""
        entry = self._of(self.entries(partition), event.cluster, event.group, event.source)
        entry.unreadable.add("members")
        self.take(partition, event)
        if "members" in entry.unreadable:  # it has none
            entry.unreadable.discard("members")
            self._keep_members(partition, entry)

    def _commit(self, partition: int, entry: Entry, event: GroupEvent) -> None:
        # A row per topic, not per group: only the topics that the event changed are written again.
        for topic, commits in lag.apply(entry.commits, event).items():
            self._keep_commits(partition, entry, topic, commits)

    def _keep_members(self, partition: int, entry: Entry) -> None:
        self.tables.members[entry.key] = members.MembersRow(
            cluster=entry.cluster,
            group=entry.group,
            partition=partition,
            source=entry.source,
            state=entry.state.to_json() if entry.state else None,
        )

    def _keep_commits(self, partition: int, entry: Entry, topic: str, commits: TopicCommits) -> None:
        entry.commits[topic] = commits
        self.tables.lag[lag.key(entry.key, topic)] = lag.LagRow(
            cluster=entry.cluster, group=entry.group, topic=topic, partition=partition, commits=commits
        )

    def judged(self, partition: int, entry: Entry, state: JudgeState) -> None:
        """Keep what the judgement remembers, and write its row if it must outlive the process."""
        row = verdicts.apply(entry.judged, state)
        entry.judged = state
        if row is not None:
            self.tables.verdicts[entry.key] = verdicts.VerdictRow(
                cluster=entry.cluster, group=entry.group, partition=partition, state=row
            )

    def forget_beyond(self, partition: int, entry: Entry, end: int) -> None:
        """Forget what is known of the group by records that stood beyond ``end`` of the source's log, where nothing stands.

        Else every true record would count as older for ever. Its commits are to be asked of its coordinator; members come with the next
        rebalance, or a replay.
        """
        entry.valid = None
        for topic, commits in list(entry.commits.items()):
            kept = commits.up_to(end)
            if kept is commits:
                continue
            entry.unreadable.add("lag")
            if kept.partition:
                self._keep_commits(partition, entry, topic, kept)
            else:  # a row without a partition tells nothing
                del entry.commits[topic]
                self.tables.lag.pop(lag.key(entry.key, topic), None)
        state = entry.state.up_to(end) if entry.state else None
        if state is not entry.state:
            entry.unreadable.add("members")
            entry.state, entry._roster = state, None
            self._keep_members(partition, entry)
        entry.newest_source = min(entry.newest_source, end)

    def delete(self, partition: int, entry: Entry) -> None:
        """As if its tombstones had come, long ago: the next tick ends its incident, and forgets it."""
        entry.valid, entry.last_event = None, 1
        for topic in list(entry.commits):
            del entry.commits[topic]
            self.tables.lag.pop(lag.key(entry.key, topic), None)
        entry.state, entry._roster = None, None
        entry.unreadable.clear()
        self._keep_members(partition, entry)

    def forget(
        self, partition: int, now: int, watched: Container[str], published: Container[str] = ()
    ) -> list[str]:
        """Remove groups without an event for GONE_AFTER_MS of which nothing is left, or whose cluster is not ``watched`` any more,
        and that have no ``published`` message; return their keys."""
        gone = [
            e
            for e in self.entries(partition).values()
            # Without any event time (0) its age is unknown: it stays. What is cheap to ask comes first, as all groups are asked.
            if 0 < e.last_event < now - GONE_AFTER_MS
            and (e.gone or e.cluster not in watched)
            and not e.has_incident
            and e.key not in published
        ]
        for entry in gone:
            for topic in entry.commits:
                self.tables.lag.pop(lag.key(entry.key, topic), None)
            for table in PER_GROUP:
                getattr(self.tables, table).pop(entry.key, None)
            del self.entries(partition)[entry.key]
        return [entry.key for entry in gone]


def _applied(entry: Entry, event: GroupEvent) -> tuple[KnownRecords | None, Roster | None]:
    """The membership after the event, and its roster: what makes no roster is not let in."""
    state = members.apply(entry.state, event)
    if state is entry.state:
        return state, entry._roster
    # Built before the state is kept: a record that makes no roster must not get into the row.
    return state, _checked_roster(entry, state)


def _checked_roster(entry: Entry, state: KnownRecords | None) -> Roster:
    """The roster, with values of the declared types alone: what reads it, for all groups of a partition, checks none."""
    return Roster.of(well_typed(view(state, {}, entry.group)), entry.redaction)


def _membership(entry: Entry, row: members.MembersRow) -> None:
    # First: where the state cannot be read, the group's progress is still looked up under its own source partition.
    entry.source = row.source
    state = KnownRecords.from_json(row.state) if row.state else None
    entry._roster = _checked_roster(entry, state)
    entry.state = state
    times = (slot.time for slot in state.slots.values()) if state else ()
    # Else a group that is only restored, and never commits again, would have no age and stay for ever.
    entry.last_event = max(entry.last_event, max(times, default=0))
    offsets = (slot.offset for slot in state.slots.values()) if state else ()
    entry.newest_source = max(entry.newest_source, max(offsets, default=-1))


def _commits(entry: Entry, row: lag.LagRow) -> None:
    commits = entry.commits[row.topic] = lag.commits_of(row)
    entry.last_event = max(entry.last_event, commits.last)
    entry.newest_source = max(entry.newest_source, max(commits.source_offset, default=-1))


def _memory(entry: Entry, row: verdicts.VerdictRow) -> None:
    entry.judged = JudgeState.from_row(row.state)


READERS: Mapping[str, Callable[[Entry, Any], None]] = {
    members.NAME: _membership,
    lag.NAME: _commits,
    verdicts.NAME: _memory,
}
"""Table → what a row of a group tells of it; members come first, as they name the source partition."""


class IndexStates(MutableMapping[str, JudgeState]):
    """The states of an index's groups for an evaluation session, by group key.

    A new state is held until :meth:`write`: a row must not say that an incident is open before its message is published.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._held: dict[str, JudgeState] = {}

    def _found(self, key: str) -> tuple[int, Entry] | None:
        for partition, entries in self._index.partitions.items():
            if key in entries:
                return partition, entries[key]
        return None

    def __getitem__(self, key: str) -> JudgeState:
        found = self._found(key)
        state = self._held.get(key) or (found[1].judged if found else None)
        if state is None:
            raise KeyError(key)
        return state

    def __setitem__(self, key: str, state: JudgeState) -> None:
        self._held[key] = state

    def __delitem__(self, key: str) -> None:
        del self._held[key]

    def write(self, key: str) -> None:
        """Keep the group's new state, and its row if it must outlive the process."""
        state, found = self._held.pop(key, None), self._found(key)
        if state is not None and found is not None:
            self._index.judged(*found, state)

    def drop(self, key: str) -> None:
        """Forget a new state of which nothing could be published: the next tick finds the same again."""
        self._held.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        entries = (entry for group in self._index.partitions.values() for entry in group.values())
        return (entry.key for entry in entries if entry.judged is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
