"""A group and its members, as values."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

Partitions = Mapping[str, tuple[int, ...]]


def topic_id(canonical: str) -> str:
    """Kafka's printed form (22 characters of base64) of a topic id in canonical UUID text."""
    return urlsafe_b64encode(uuid.UUID(canonical).bytes).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member. ``assigned``: what it holds now, topic → partitions; ``target``: what it is to hold (KIP-848)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    subscriptions: tuple[str, ...]
    regex: str | None = None
    assigned: Partitions = field(default_factory=dict)
    target: Partitions | None = None
    pending_revocation: Partitions = field(default_factory=dict)
    """What it has been asked to give up and has not yet: no longer in ``assigned``, still its own."""
    epoch: int | None = None
    stable: bool = True
    classic: bool = False
    """Speaks the classic protocol within a KIP-848 group (an upgrade under way)."""
    away: bool = False
    """A static member that left for now; what it held is kept for it."""
    rebalance_timeout_ms: int | None = None
    library: str | None = None
    """``java``, ``librdkafka``, ``python`` or ``faust`` where its blobs tell."""
    protocols: tuple[str, ...] = ()
    """The assignors it offers, where the records name them all: classic members of a KIP-848 group."""
    user_data: str | None = None
    """Which assignor's user data it sent: ``sticky-v0``, ``sticky-v1`` or ``cooperative``."""

    @property
    def name(self) -> str:
        """The name that outlives a restart: instance id, else client id and host."""
        # Brokers write Java's InetAddress, "/10.0.0.1"; other sources have the address alone.
        host = self.host if self.host.startswith("/") else f"/{self.host}"
        return self.instance_id or f"{self.client_id}{host}"


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group. ``type``: classic, consumer, share, streams or simple; ``state`` in Kafka's words. ``generation``: of a
    classic group, else the group epoch. Times in ms. ``unresolved``: topic ids without a name; what is held of them is
    missing from the members' ``assigned``. ``stale``: a newer record could not be read."""

    group: str
    type: str
    state: str
    protocol_type: str | None
    protocol: str | None
    generation: int | None
    target_epoch: int | None
    members: tuple[MemberView, ...]
    last_change: int
    unresolved: tuple[str, ...] = ()
    stale: bool = False
    topology: Mapping[str, Any] | None = None

    def holder(self) -> dict[tuple[str, int], MemberView]:
        """Who holds each partition now; one that is being given up is still its old holder's until another has it."""
        # KIP-848 hands a partition to its new member only after the old one has given it up, so the old one still reads it.
        given_up = {key: m for m in self.members for key in _keys(m.pending_revocation)}
        return given_up | {key: m for m in self.members for key in _keys(m.assigned)}


def well_typed(view: GroupView) -> GroupView:
    """The view, if each of its values is what it is declared to be. Raises msgspec's ValidationError or TypeError.

    The decoder of ``__consumer_offsets`` makes no other; a record that was written or changed by something else may.
    """
    # By JSON and back, as msgspec takes an object that is there already for checked: 13 µs for ten members.
    return _VIEWS.decode(_ENCODER.encode(view))


def _keys(partitions: Partitions) -> list[tuple[str, int]]:
    return [(topic, partition) for topic, listed in partitions.items() for partition in listed]


# After the classes: a decoder is compiled from its types.
_ENCODER, _VIEWS = msgspec.json.Encoder(), msgspec.json.Decoder(GroupView)
