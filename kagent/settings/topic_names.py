"""The names and shape of kagent's own topics."""

from __future__ import annotations

import re

from pydantic import (
    Field,
    field_validator,
)

from kagent.duration_fields import WholeHours
from kagent.settings.strict import Strict

PREFIX = r"^[A-Za-z0-9._-]*$"


class Topics(Strict):
    """kagent's own topics on the home cluster."""

    # A topic's name has at most 249 characters, changelogs' names included.
    prefix: str = Field(
        "kagent-",
        max_length=200,
        json_schema_extra={"pattern": PREFIX},
        description="What their names begin with.",
    )
    # __consumer_offsets has 50 partitions by default: more would not spread its groups further.
    partitions: int = Field(
        8, ge=1, le=50, description="Of the events topic: at most this many workers can share the groups."
    )
    replication: int = Field(1, ge=1, description="3 in production.")
    retention_hours: WholeHours = Field(24, ge=1, description="How long events are kept.")

    @field_validator("prefix")
    @classmethod
    def _prefix(cls, prefix: str) -> str:
        if not re.fullmatch(PREFIX, prefix):
            raise ValueError(
                f"must hold letters, digits, dot, dash and underscore only, as topics do, not {prefix!r}"
            )
        return prefix

    @property
    def app(self) -> str:
        """The worker's group, and what its changelogs, transactional ids and the other groups of kagent begin with."""
        return self.prefix.rstrip("-") or "kagent"

    @property
    def events(self) -> str:
        return f"{self.prefix}group-events"

    @property
    def recommendations(self) -> str:
        return f"{self.prefix}recommendations"

    @property
    def mutes(self) -> str:
        return f"{self.prefix}mutes"

    @property
    def alerts(self) -> str:
        return f"{self.prefix}alerts"

    @property
    def applied(self) -> str:
        return f"{self.prefix}applied"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}dead-letters"

    @property
    def ticks(self) -> str:
        return f"{self.prefix}ticks"
