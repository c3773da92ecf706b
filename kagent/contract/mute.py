"""A record of the mutes topic: which groups are silenced, until when, by whom and why.

Its key is ``<cluster>/<group>``, and for a pattern also ``<cluster>/<pattern>``; a tombstone takes the mute back. A
pattern is written for each group that it matches when it is set, so that every reader understands it, and once under its
own name for groups that come later.
"""

from __future__ import annotations

from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

LONGEST_WHY = 500
LONGEST_BY = 100


class MuteRecord(BaseModel):
    """The value of the record."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    until: int = Field(description="ms since the epoch.")
    why: str = ""
    by: str = ""
    pattern: str | None = Field(None, description="The pattern that this group was muted by.")

    def to_bytes(self) -> bytes:
        """The JSON on the topic."""
        values: dict[str, Any] = self.model_dump(exclude_none=True)
        return orjson.dumps({**values, "why": self.why[:LONGEST_WHY], "by": self.by[:LONGEST_BY]})


def from_bytes(value: bytes) -> MuteRecord:
    """The record. Raises ValueError for what is none."""
    return MuteRecord.model_validate_json(value)


def is_pattern(name: str) -> bool:
    """Whether this is a glob or a regular expression between slashes, not a group's name."""
    return any(char in name for char in "*?[") or (len(name) > 1 and name[0] == name[-1] == "/")
