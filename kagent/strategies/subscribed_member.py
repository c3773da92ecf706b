"""A member of a group as it joins: what strategies know of it."""

from __future__ import annotations

import msgspec


class Member(msgspec.Struct, frozen=True, gc=False):
    """One member of the group, as it joins: what is in its subscription but the partitions it owns.

    A msgspec Struct, because a frozen dataclass takes fifteen times as long to make, which for a large group is longer
    than the assignment. ``msgspec.structs.replace`` makes a changed copy.
    """

    id: str
    topics: tuple[str, ...]
    """The topics it subscribes to, in its own order, those that do not exist too."""
    group_instance_id: str | None = None
    """Set for a static member (KIP-345)."""
    rack: str | None = None
    """``client.rack``; empty counts as none."""
    generation: int | None = None
    """The generation field of its subscription (version 2 and up); None where it is absent."""
    remembered_generation: int | None = None
    """The generation in the user data of the sticky assignors; None without user data or in its first version."""
