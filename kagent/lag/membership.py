"""Who is in a group and who holds what, as columns; made once per change of the group's membership."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.contract.redaction import CLEAR, Redaction
from kagent.groups import GroupView, MemberView
from kagent.strategies.assignment import Assignment
from kagent.strategies.group_members import GroupMembers, distinct

NOBODY = -1
"""In place of the code of a member: no member holds the partition."""
_IDENTITY = attrgetter("member_id", "instance_id", "rack")
CONSUMING_TYPES = frozenset({None, "consumer", "streams", "share"})
"""Protocol types of groups that consume; others (Connect's and Schema Registry's workers) only share a coordinator."""
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Holders:
    """The partitions of a topic that some member holds, ascending, and the code of each one's holder."""

    # Not a column up to the highest partition: a client may write any number into its assignment, and 2**31 - 1 took 8 GB.
    partitions: npt.NDArray[np.int64]
    codes: Codes

    @classmethod
    def of(cls, held: Sequence[tuple[Sequence[int], int]]) -> Holders:
        """What each code holds; of a partition that is held twice, as in a share group, the last one named."""
        partitions = np.concatenate([np.asarray(numbers, np.int64) for numbers, _ in held])
        codes = np.repeat(np.array([code for _, code in held], np.int32), [len(n) for n, _ in held])
        # Reversed, as unique finds the first of equal ones.
        found, places = np.unique(partitions[::-1], return_index=True)
        return cls(found, codes[::-1][places])

    @property
    def numbers(self) -> list[list[int]]:
        """The partitions in a list, or nothing if they are 0, 1, 2, … without a hole."""
        # Nothing, so that the hashes of whole assignments stay what other releases published.
        whole = self.partitions[0] == 0 and self.partitions[-1] == len(self.partitions) - 1
        return [] if whole else [self.partitions.tolist()]

    def of_partitions(self, partitions: npt.NDArray[np.int64]) -> Codes:
        """The codes of those who hold these partitions, or NOBODY."""
        places = np.minimum(np.searchsorted(self.partitions, partitions), len(self.partitions) - 1)
        found = self.partitions[places] == partitions
        return np.where(found, self.codes[places], NOBODY).astype(np.int32)


@dataclass(frozen=True)
class Roster:
    """A group's membership. ``names``: of the members, as they outlive a restart; a member's code is its place there."""

    group: str
    type: str
    state: str
    protocol_type: str | None
    protocol: str | None
    generation: int | None
    last_change: int
    members: tuple[MemberView, ...]
    names: tuple[str, ...]
    owners: Mapping[str, Holders] = field(default_factory=dict)
    """Topic → who holds its partitions."""
    stale: bool = False
    unresolved: bool = False
    redaction: Redaction = CLEAR
    """Member ids as they may be published; ``names`` already are in that form."""

    @property
    def consumes(self) -> bool:
        """Whether it is a group of consumers, and not one whose members only share a coordinator."""
        return self.protocol_type in CONSUMING_TYPES

    @classmethod
    def of(cls, view: GroupView, redaction: Redaction = CLEAR) -> Roster:
        """The roster of a group's view. Members that are away hold nothing."""
        # A static member that is away keeps its assignment for its session timeout, but reads nothing.
        # https://cwiki.apache.org/confluence/display/KAFKA/KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances
        members = tuple(m for m in view.members if not m.away)
        held: dict[str, list[tuple[Sequence[int], int]]] = {}
        for code, member in enumerate(members):
            for topic, partitions in member.assigned.items():
                if len(partitions):
                    held.setdefault(topic, []).append((partitions, code))
        return cls(
            group=view.group,
            type=view.type,
            state=view.state,
            protocol_type=view.protocol_type,
            protocol=view.protocol,
            generation=view.generation,
            last_change=view.last_change,
            members=members,
            names=_names(members, redaction),
            owners={topic: Holders.of(parts) for topic, parts in held.items()},
            stale=view.stale,
            unresolved=bool(view.unresolved),
            redaction=redaction,
        )

    @cached_property
    def digest(self) -> str:
        """Hash of generation and assignment: another digest is another basis."""
        return hashlib.sha256(f"{self.generation} {self.assignment}".encode()).hexdigest()[:16]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The members' ids, sorted."""
        return tuple(sorted(m.member_id for m in self.members))

    @cached_property
    def assignment(self) -> str:
        """Hash of who holds what, whatever the generation (the coordinator tells no generation of a classic group)."""
        text = hashlib.sha256()
        for topic in sorted(self.owners):
            ids = [self.members[c].member_id for c in self.owners[topic].codes.tolist()]
            text.update(repr((topic, *self.owners[topic].numbers, ids)).encode())
        return text.hexdigest()[:16]

    @cached_property
    def holdings(self) -> str:
        """Hash of who holds what, by the names that outlive a restart: a member that comes back to the same partitions changes
        nothing."""
        # Apart from `assignment`, or each restart of a member would look like another distribution and end all spells.
        text = hashlib.sha256()
        for topic in sorted(self.owners):
            held = [self.names[c] for c in self.owners[topic].codes.tolist()]
            text.update(repr((topic, *self.owners[topic].numbers, held)).encode())
        return text.hexdigest()[:16]

    @cached_property
    def library(self) -> GroupKind:
        """The kind of a classic group by the library that its members run."""
        return _library(self)

    @cached_property
    def held(self) -> Assignment:
        """Who holds what, in each member's own order, and what two members claim at once too."""
        topics = dict.fromkeys(t for m in self.members for t in m.assigned)
        return Assignment.from_holdings(self.columns.ids, [m.assigned for m in self.members], tuple(topics))

    @cached_property
    def columns(self) -> GroupMembers:
        """The members as strategies see them. Raises InputError where there is none, or one twice."""
        same = (self.generation,) * len(self.members)
        ids, instances, racks = zip(*map(_IDENTITY, self.members), strict=True) if self.members else ((),) * 3
        return GroupMembers(ids, *self.may_hold, instances, racks, same, same)

    @cached_property
    def may_hold(self) -> tuple[tuple[tuple[str, ...], ...], npt.NDArray[np.int64]]:
        """The different sets of topics that members may hold, an empty one where it is any; and which of them each member has."""
        kinds, kind = distinct([_may_hold(m) for m in self.members])
        return tuple(kinds), kind

    @cached_property
    def subscribed(self) -> frozenset[str]:
        """All topics that some member subscribes to or holds."""
        return frozenset(t for m in self.members for t in m.subscriptions) | frozenset(self.owners)

    @cached_property
    def open_subscription(self) -> bool:
        """Whether some member's subscription is a pattern, or unknown: no topic can be called orphaned."""
        return self.unresolved or any(m.regex or not m.subscriptions for m in self.members)

    def holder(self, topic: str, partitions: npt.NDArray[np.int64]) -> Codes:
        """The codes of those who hold these partitions."""
        held = self.owners.get(topic)
        # A topic that some member subscribes to and none holds yet.
        if held is None:
            return np.full(len(partitions), NOBODY, np.int32)
        return held.of_partitions(partitions)

    def eligible(self, member: int, topic: str) -> bool:
        """Whether a member may hold partitions of a topic."""
        kinds, kind = self.may_hold
        names = kinds[int(kind[member])]
        return not names or topic in names


def _may_hold(member: MemberView) -> tuple[str, ...]:
    # Unknown subscriptions (a description from outside has none) and patterns bar nothing.
    if member.regex or not member.subscriptions:
        return ()
    # What it holds beyond its subscription is being taken from it, and is its own until then.
    beyond = member.assigned.keys() - set(member.subscriptions)
    return (*member.subscriptions, *sorted(beyond)) if beyond else tuple(member.subscriptions)


def client_of(name: str) -> str:
    """A member's name without the number that tells processes of one client and host apart: the next process of a client that was killed
    joins while the last one is still in the group.

    >>> client_of("app-1/10.0.0.7#2"), client_of("app-1/10.0.0.7"), client_of("app#1/10.0.0.7")
    ('app-1/10.0.0.7', 'app-1/10.0.0.7', 'app#1/10.0.0.7')
    """
    client, _, number = name.rpartition("#")
    return client if client and number.isdigit() else name


def _names(members: Sequence[MemberView], redaction: Redaction) -> tuple[str, ...]:
    """Names that survive a restart; members that share client id and host are numbered."""
    seen: dict[str, int] = {}
    names = [""] * len(members)
    # By member id, so that the numbers of members with one name stay the same between two looks.
    for at in sorted(range(len(members)), key=lambda i: members[i].member_id):
        name = redaction.name(members[at])
        seen[name] = seen.get(name, 0) + 1
        names[at] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    return tuple(names)


def kind_of(roster: Roster | None, group: str, configured: GroupKind | None = None) -> GroupKind:
    """What a group is, which decides what can be done about it. What the settings say wins."""
    if configured is not None:
        return configured
    if roster is None or roster.type == "simple":
        return GroupKind.SIMPLE
    if roster.type in ("share", "streams"):
        return GroupKind(roster.type)
    if _connect_sink(roster, group):
        return GroupKind.CONNECT
    if roster.type == "consumer":
        return GroupKind.CONSUMER
    # Streams' assignor calls itself so: StreamsPartitionAssignor.name().
    if roster.protocol == "stream":
        return GroupKind.STREAMS
    if roster.protocol == "faust":
        return GroupKind.FAUST
    return roster.library


def _connect_sink(roster: Roster, group: str) -> bool:
    # Connect names the group of a sink after the connector, its consumers likewise:
    # https://kafka.apache.org/documentation/#connect_user
    return group.startswith("connect-") and any(
        m.client_id.startswith("connector-consumer-") for m in roster.members
    )


def _library(roster: Roster) -> GroupKind:
    # No record names the client's library (KIP-511's software name stays on the broker): members are known by what they send.
    if roster.protocol in FOREIGN_PROTOCOLS or any(_foreign(m.client_id) for m in roster.members):
        return GroupKind.CLASSIC  # their metadata looks like that of Java or Python
    known = {m.library or _by_client_id(m.client_id) for m in roster.members}
    kinds = {
        "java": GroupKind.CLASSIC_JAVA,
        "librdkafka": GroupKind.CLASSIC_LIBRDKAFKA,
        "python": GroupKind.CLASSIC_PYTHON,
        "faust": GroupKind.FAUST,
    }
    return kinds.get(known.pop() or "", GroupKind.CLASSIC) if len(known) == 1 else GroupKind.CLASSIC


FOREIGN_PROTOCOLS = frozenset({"RoundRobinAssigner"})
"""kafkajs's own name for its assigner."""
FOREIGN_CLIENT_IDS = ("sarama", "kgo", "kafkajs")
"""The default client ids of sarama, franz-go and kafkajs."""


def _foreign(client_id: str) -> bool:
    return any(client_id == name or client_id.startswith(f"{name}-") for name in FOREIGN_CLIENT_IDS)


def _by_client_id(client_id: str) -> str | None:
    # The default client ids; an application that sets its own is known by its metadata only (kagent.groups.client_library).
    for start, library in (("aiokafka", "python"), ("kafka-python", "python"), ("rdkafka", "librdkafka")):
        if client_id.startswith(start):
            return library
    return None
