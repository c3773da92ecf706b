"""What a decision is made of and what comes out: values only, so that it can be computed without asking anybody.

A member's name is that of the recommendation: its instance id, else client id and host; members that share one are distinguished
apart by number, in the order of their member ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from kagent.contract.recommendation import Recommendation

Held = tuple[tuple[str, int], ...]
"""Partitions as (topic, number)."""


class Reason(StrEnum):
    """Why a rebalance went as it did; what is counted."""

    FOLLOWED = "followed"
    KEPT = "kept"
    OFF = "off"
    LATCHED = "latched"
    UNREACHABLE = "unreachable"
    STALE = "stale"
    NOTHING_OPEN = "nothing_open"
    UNREADABLE = "unreadable"
    OTHER_CLUSTER = "other_cluster"
    OTHER_GROUP = "other_group"
    SUPERSEDED = "superseded"
    BLIND = "blind"
    EXPIRED = "expired"
    MUTED = "muted"
    INFEASIBLE = "infeasible"
    NO_PLAN = "no_plan"
    FOREIGN_MEMBER = "foreign_member"
    OTHER_MEMBERS = "other_members"
    OTHER_COUNTS = "other_counts"
    OTHER_GENERATION = "other_generation"
    OTHER_HOLDINGS = "other_holdings"
    UNKNOWN_PARTITION = "unknown_partition"
    DOUBLED_PARTITION = "doubled_partition"
    MISSING_PARTITION = "missing_partition"
    NOT_SUBSCRIBED = "not_subscribed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What stood on kagent's topics under the key of one group, and when both were last read to their ends."""

    read_at: float
    """Seconds since the epoch."""
    recommendation: Recommendation | None = None
    unreadable: bool = False
    """Whether the last message under the key was none that this kagent knows."""
    muted_until: float = 0.0
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A plan that stands: which one, and the digest of the members and partition counts that it was made for."""

    plan: str
    roster: str


@dataclass(frozen=True, slots=True)
class Peer:
    """One member as the leader sees it join."""

    member_id: str
    topics: tuple[str, ...]
    name: str | None = None
    """Instance id, else client id and host; None where the member does not say."""
    held: Held | None = None
    """What it was given last; None where it does not say."""
    generation: int | None = None
    """The generation of that."""
    followed: Followed | None = None
    target: Held | None = None
    """What the followed plan gives it, where it may not hold all of that yet (cooperative); None: what it holds."""


@dataclass(frozen=True)
class View:
    """The group as its leader sees it. ``counts``: partitions per topic, of the topics whose metadata is there."""

    peers: tuple[Peer, ...]
    counts: Mapping[str, int]

    @cached_property
    def names(self) -> dict[str, Peer] | None:
        """Name → member; None where some member does not say its name."""
        seen: dict[str, int] = {}
        names: dict[str, Peer] = {}
        for peer in sorted(self.peers, key=lambda peer: peer.member_id):
            if peer.name is None:
                return None
            seen[peer.name] = seen.get(peer.name, 0) + 1
            times = seen[peer.name]
            names[peer.name if times == 1 else f"{peer.name}#{times}"] = peer
        return names if len(names) == len(self.peers) else None

    @cached_property
    def topics(self) -> dict[str, int]:
        """Partitions of each topic that some member subscribes to and that there is."""
        wanted = dict.fromkeys(topic for peer in self.peers for topic in peer.topics)
        return {topic: count for topic in wanted if (count := self.counts.get(topic, 0)) > 0}

    @cached_property
    def partitions(self) -> frozenset[tuple[str, int]]:
        """All that has to be given to somebody."""
        return frozenset((topic, number) for topic, count in self.topics.items() for number in range(count))

    @cached_property
    def generation(self) -> int | None:
        """The newest that any member was in."""
        return max((p.generation for p in self.peers if p.generation is not None), default=None)

    @cached_property
    def roster(self) -> str | None:
        """Digest of the members' names and the partition counts."""
        return None if self.names is None else digest(*sorted(self.names), *sorted(self.topics.items()))


@dataclass(frozen=True, slots=True)
class Rules:
    """What this follower goes by. ``max_age``: seconds after which what was read is as good as nothing."""

    cluster: str
    group: str
    off: bool = False
    latched: bool = False
    max_age: float = 60.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done at a rebalance. ``placed``: member id → partitions; None: the built-in assignor decides."""

    reason: Reason
    sentence: str
    placed: Mapping[str, Held] | None = None
    followed: Followed | None = None


def member_name(instance_id: str | None, client_id: str, host: str) -> str:
    """The name that outlives a restart, as in a recommendation."""
    return instance_id or f"{client_id}{host if host.startswith('/') else f'/{host}'}"


def digest(*parts: object) -> str:
    """A short hash of values, in the order given."""
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:16]


def once(pairs: Iterable[tuple[str, int]]) -> Held:
    """Each pair once, in order."""
    return tuple(dict.fromkeys(pairs))
