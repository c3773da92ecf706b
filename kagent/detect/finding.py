"""A finding: what a detector says of a group, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kagent.contract.recommendation import Verdict
from kagent.lag.bound import Bound

NO_PROGRESS = frozenset({Verdict.STALLED, Verdict.STUCK_MEMBER})
"""Verdicts of partitions whose records wait while nothing is known to keep their members from them."""

ROWS: Bound = 200
"""The most places, moves or groups that a finding, a message, or what is remembered of a group may list: messages and rows must stay far
below the broker's ``message.max.bytes``."""


class Urgency(Enum):
    """What a verdict's severity depends on, the most urgent first."""

    LOSS = "records are lost: always a page"
    STANDSTILL = "nothing goes on: a page once it is `page_behind` behind, a ticket before"
    HELP = "a ticket where something feasible helps, info where nothing does"
    CAN_WAIT = "nothing gets worse by waiting: info"

    @property
    def rank(self) -> int:
        """0 is the most urgent."""
        return list(Urgency).index(self)


class Asks(Enum):
    """What the coordinator must confirm of a group with members before a verdict is published."""

    NOTHING = "nothing: that the group is not stable is the finding"
    STABLE = "that the group is stable; its assignment may have changed since"
    ASSIGNMENT = "that it is stable, and its members hold what they held when the finding was made"


@dataclass(frozen=True)
class Finding:
    """``verdict``: None of a member that is late while its measurements do not tell why, or that catches up; then it is not ripe.
    ``members``: codes of those concerned, the worst first; ``rows``: places of the partitions concerned, the worst first;
    ``behind``: seconds, at least; ``since``: since when it holds, ms; ``ripe``: whether its evidence is enough to be published;
    ``evidence_s``, ``needed_s``: how much there is and how much it takes, where that is a length of time."""

    verdict: Verdict | None
    members: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    behind: float = 0.0
    evidence: dict[str, Any] = field(default_factory=dict)
    since: int = 0
    ripe: bool = True
    evidence_s: float = 0.0
    needed_s: float = 0.0
    missing: str | None = None
    """What would add to the evidence, in words; None where it is enough."""

    @property
    def decided(self) -> Verdict:
        """The verdict of a finding that has one, as every ripe one does."""
        if self.verdict is None:
            raise ValueError("the measurements do not tell yet what is wrong")
        return self.verdict
