"""kagent's side of a simulation: what it has been shown, and what it remembers of every seed's group."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.lag.membership import Roster
from kagent.policy import Policy
from kagent.simulator.judging import RecordedSession
from kagent.simulator.observing import ObservedTables
from kagent.simulator.truth import Truth


@dataclass(slots=True)
class KagentState:
    """kagent's side. ``sessions``: one per seed; ``close``: which of them want a close look whatever their lag."""

    policy: Policy
    observed: ObservedTables
    sessions: list[RecordedSession]
    groups: tuple[str, ...]
    """What each seed's group is called."""
    close: npt.NDArray[np.bool_]
    rosters: list[Roster | None]
    judged: npt.NDArray[np.int64]
    """The generations that were judged last."""
    truth: Truth
    acts: dict[int, float] = field(default_factory=dict)
    """When a group carries out a recommendation."""
    sizes: dict[int, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    """Per group, when an autoscaler set how many members."""
    known: dict[tuple[Any, ...], Roster] = field(default_factory=dict)
    looks: int = 0
