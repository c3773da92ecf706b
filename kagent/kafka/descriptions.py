"""Topics, groups and members as the admin client describes them."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Key = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic: its id as Kafka prints it (22 characters), and its number of partitions."""

    name: str
    id: str
    partitions: int
    leaders: tuple[int, ...] = ()
    replica_racks: tuple[frozenset[str], ...] = ()
    """Racks of each partition's replicas; empty where the brokers name none."""

    def has_leader(self, partition: int) -> bool:
        """Whether the partition had a leader when the topic was described, or may have had one."""
        return not self.leaders or self.leaders[partition] >= 0


def uuid_text(high: int, low: int) -> str:
    """An id of the protocol, which is one value of 16 bytes, as Kafka prints it: base64 in the URL's alphabet, without padding."""
    raw = (high % 2**64).to_bytes(8, "big") + (low % 2**64).to_bytes(8, "big")
    return urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member as its coordinator describes it. ``assigned``: (topic, partition) pairs."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assigned: frozenset[Key]
    target: frozenset[Key] | None = None


WITH_LAG = frozenset({"consumer", "", "share", "streams"})
"""Protocol types of groups that read topics; workers of Kafka Connect, for one, are none."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as its coordinator describes it; ``state`` and ``type`` in Kafka's words, lower case (``stable``…)."""

    group: str
    state: str
    type: str
    protocol: str
    simple: bool
    members: tuple[MemberDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offsets:
    """Answers of ListOffsets: offset by (topic, partition), and the sentence for each that could not be had.

    ``epochs``: of the leaders that answered, where they say so.
    """

    found: dict[Key, int]
    failed: dict[Key, str] = field(default_factory=dict)
    epochs: dict[Key, int] = field(default_factory=dict)

    def take(self, key: Key, answer: Any) -> None:
        """Note the admin client's answer for a partition."""
        self.failed.pop(key, None)
        if answer.offset >= 0:
            self.found[key] = answer.offset
        if answer.leader_epoch is not None:
            self.epochs[key] = answer.leader_epoch


@dataclass(frozen=True, slots=True)
class GroupAnswers(Generic[T]):
    """What coordinators say of groups, and why nothing is known of the others. A group that may not be seen is in neither."""

    found: Mapping[str, T]
    failed: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    """As ``failed``, where asking again at once is of no use: the coordinator was waited for in vain, or is too old."""


@dataclass(frozen=True, slots=True)
class MemberReport:
    """What a member reported when it joined. ``topics`` is None where it cannot be known (a regular expression, a foreign blob).

    ``generation``: of a classic member, the one it was in when it joined last; of a KIP-848 member, its epoch.
    """

    topics: tuple[str, ...] | None
    rack: str | None = None
    generation: int | None = None
    regex: str | None = None
    subscription: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """Of a classic member, all that its subscription holds, as :mod:`kagent.offsets.blobs` decodes it."""
    assignment_version: int | None = field(default=None, compare=False)
    """Of a classic member: the version of the assignment that its leader wrote."""


@dataclass(frozen=True, slots=True)
class Described:
    """A group with what its members reported, by member id, and its epoch (KIP-848) or None."""

    group: GroupDescription
    reported: Mapping[str, MemberReport] = field(default_factory=dict)
    epoch: int | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic name → id, as Kafka prints it (KIP-848)."""
    streams: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """The coordinator's whole answer about a group of Kafka Streams' own protocol: its tasks are not topics and partitions alone."""
