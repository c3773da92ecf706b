"""Where the history is, and the range of time that a command reads of it.

It does not import Spark, so that a wrong place or range is refused before Spark is loaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kagent.errors import SettingsError

if TYPE_CHECKING:
    from kagent.settings import Settings


@dataclass(frozen=True, slots=True)
class History:
    """The folder or URL of a history; each table is a folder in it."""

    place: str

    def table(self, name: str) -> str:
        """Where the table is."""
        return f"{self.place.rstrip('/')}/{name}"


@dataclass(frozen=True, slots=True)
class Range:
    """From when to when, ms since 1970, and how often it is judged, in ms."""

    start: int
    end: int
    tick: int = 10_000


def place_of(settings: Settings, path: str | None) -> History:
    """Where the history is. Raises SettingsError if it is not set."""
    found = path or settings.pipeline.history
    if not found:
        raise SettingsError("No history is kept: set pipeline.history to a folder or URL, or pass --path.")
    # Spark takes the name of a table's folder for a name in its catalog unless it is absolute.
    return History(found if ":" in found.partition("/")[0] else os.path.abspath(found))
