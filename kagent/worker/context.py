"""What all pieces of one worker process share: settings, rows, clock and counters."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kagent.contract.admission import Refused, checked
from kagent.contract.redaction import Redaction
from kagent.policy import Policies
from kagent.settings import Settings
from kagent.tables.declaration import Tables
from kagent.worker.groups import Index
from kagent.worker.http.live_view import LiveView
from kagent.worker.latency import Delays
from kagent.worker.presence import Presence
from kagent.worker.status import SILENT_TICKS

log = logging.getLogger("kagent.worker")
Built = TypeVar("Built")


@dataclass(slots=True)
class WorkerContext:
    """``clock`` returns seconds since the epoch; ``worker`` is this process's name in summaries."""

    settings: Settings
    tables: Tables
    worker: str
    clock: Callable[[], float] = time.time
    policies: Policies = field(init=False)
    redaction: Redaction = field(init=False)
    index: Index = field(init=False)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(what, reason) → records that were not let in."""
    counts: Counter[str] = field(default_factory=Counter)
    delays: Delays = field(default_factory=Delays)
    live: LiveView = field(default_factory=LiveView)
    presence: Presence = field(init=False)

    def __post_init__(self) -> None:
        s = self.settings
        self.policies = s.policies()
        self.redaction = Redaction.of(s.redact, s.salt())
        self.index = Index(self.tables, self.redaction)
        self.presence = Presence(longest_ms=round(1000 * SILENT_TICKS * s.worker.tick))

    @property
    def now(self) -> int:
        """Now, in ms since the epoch."""
        return int(self.clock() * 1000)

    def read_row(self, table: str, build: Callable[[], Built]) -> Built | None:
        """The value that ``build`` makes of a row; None, counted and logged, if the row cannot be read."""
        try:
            return checked(build)
        except Refused as error:
            self.index.refused[table, error.reason] += 1
            log.warning("a row of table %s cannot be read and is left out: %s", table, error)
            return None
