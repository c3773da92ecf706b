"""A record of the mutes topic: which groups are muted, until when, by whom and why.

Its key is ``<cluster>/<group>``, and for a pattern also ``<cluster>/<pattern>``; a tombstone ends the mute. A
pattern is written for each group that it matches when it is set, so that a reader needs no patterns, and once under its
own name for groups that appear later.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta, Struct
from msgspec.structs import force_setattr

LONGEST_WHY = 500
LONGEST_BY = 100
MAX_TIME_MS = 253_370_764_800_000
"""The year 9999, the last that a calendar has: a later time cannot be shown. Its beginning, as a time zone may add to it."""


class MuteRecord(Struct, frozen=True):
    """The value of the record. ``until`` is in ms since the epoch, ``pattern`` the pattern by which this group was muted.

    The bounds are wider than what ``to_bytes`` writes: they limit what a record of another program may hold.
    """

    until: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    why: Annotated[str, Meta(max_length=4_096)] = ""
    by: Annotated[str, Meta(max_length=255)] = ""
    pattern: Annotated[str, Meta(max_length=32_767)] | None = None

    def __post_init__(self) -> None:
        # Not refused: a person who writes such a time means for ever, and would get the muted alert at night.
        if self.until > MAX_TIME_MS:
            force_setattr(self, "until", MAX_TIME_MS)

    def to_bytes(self) -> bytes:
        """The JSON on the topic."""
        values: dict[str, Any] = {
            "until": self.until,
            "why": self.why[:LONGEST_WHY],
            "by": self.by[:LONGEST_BY],
        }
        # Without a pattern no field: most mutes name their group.
        return orjson.dumps(values if self.pattern is None else {**values, "pattern": self.pattern})


def from_bytes(value: bytes) -> MuteRecord:
    """The record. Raises ValueError for bytes that are not such a record."""
    try:
        return msgspec.json.decode(value, type=MuteRecord)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a mute: {error}") from error


def is_pattern(name: str) -> bool:
    """Whether this is a glob or a regular expression between slashes rather than the name of a group."""
    return any(char in name for char in "*?[") or (len(name) > 1 and name[0] == name[-1] == "/")
