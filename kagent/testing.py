"""What tests need of kagent, its own and those of programs around it: groups by named arguments, a clock, and a publisher that records.

>>> from kagent.testing import group_view, member_view
>>> group_view("orders", members=[member_view("a", assigned={"t": (0, 1)})]).members[0].assigned
{'t': (0, 1)}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kagent.contract.recommendation import Recommendation, State, from_bytes
from kagent.groups import GroupView, MemberView
from kagent.tables.declaration import ROWS, Tables

DAY_MS = 86_400_000


@dataclass
class FakeClock:
    """A clock that stands until it is advanced: seconds since the epoch, as ``time.time`` returns them."""

    # Not 0: a time of 0 stands for never in many places.
    now_s: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let this much time pass."""
        self.now_s += seconds


def memory_tables() -> Tables:
    """The worker's tables as plain dicts, each empty."""
    made: Any = SimpleNamespace(**{name: {} for name in ROWS})
    return made  # type: ignore[no-any-return]


@dataclass
class RecordingPublisher:
    """A :data:`kagent.worker.publisher.Publish` that keeps every message. A value of None is a tombstone."""

    messages: list[tuple[str, bytes | None]] = field(default_factory=list)

    def __call__(
        self, partition: int, key: str, value: bytes | None, on_delivery: Callable[[], None] | None
    ) -> None:
        self.messages.append((key, value))

    @property
    def recommendations(self) -> list[Recommendation]:
        """The messages about groups, in order; without state messages and tombstones."""
        parsed: list[Recommendation | State] = [from_bytes(value) for _, value in self.messages if value]
        return [message for message in parsed if isinstance(message, Recommendation)]


def member_view(
    name: str,
    *,
    member_id: str | None = None,
    client_id: str | None = None,
    instance_id: str | None = None,
    host: str = "/10.0.0.1",
    rack: str | None = None,
    subscriptions: Sequence[str] | None = None,
    assigned: Mapping[str, Sequence[int]] | None = None,
    **more: Any,
) -> MemberView:
    """A member called ``name``, subscribed to the topics that it holds unless ``subscriptions`` are given.

    :param assigned: topic → partitions.
    :param more: further fields of :class:`kagent.groups.MemberView`.
    """
    held = {topic: tuple(partitions) for topic, partitions in (assigned or {}).items()}
    return MemberView(
        member_id=member_id or f"id-{name}",
        instance_id=instance_id,
        client_id=client_id or name,
        host=host,
        rack=rack,
        subscriptions=tuple(held if subscriptions is None else subscriptions),
        assigned=held,
        **more,
    )


def group_view(
    name: str = "orders",
    *,
    members: Sequence[MemberView] = (),
    kind: str = "classic",
    state: str | None = None,
    protocol_type: str | None = "consumer",
    protocol: str | None = "range",
    generation: int | None = 1,
    last_change_ms: int = 0,
    **more: Any,
) -> GroupView:
    """A group with these members, ``Stable`` if there are any, else ``Empty``.

    :param kind: the group's ``type``: classic, consumer, share, streams or simple.
    :param last_change_ms: time of the latest change of its membership, ms since the epoch.
    :param more: further fields of :class:`kagent.groups.GroupView`.
    """
    return GroupView(
        group=name,
        type=kind,
        state=state or ("Stable" if members else "Empty"),
        protocol_type=protocol_type,
        protocol=protocol,
        generation=generation,
        target_epoch=more.pop("target_epoch", None),
        members=tuple(members),
        last_change=last_change_ms,
        **more,
    )
