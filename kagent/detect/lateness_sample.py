"""How late a member is at a newer commit: what its spell and its backlog advance by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kagent.detect.state import Older


@dataclass(frozen=True, slots=True)
class LatenessSample:
    """A member at a newer commit: its time (ms), lateness (s), whether it counts as late, T at the optimist's
    ends (s), median commit gap (s), records done since the last sample, and how long they took at the member's speed (s; 0: unknown).
    ``trend``: the lateness that is compared with earlier and later ones, s; ``topics``: the same of each topic for itself, where the
    member holds several; ``extrapolated_s``: how much of ``trend`` is older than the known log ends, by the inflow ``continued`` (work/s; 0: none
    is), and ``unsure_s``: how far its difference from the spell's beginning may be off, for that or for the samples of the log ends; ``older``,
    ``unsure``: the same of each topic."""

    time: int
    lateness: float
    late: bool
    drain: float
    gap: float
    records: int
    trend: float
    worked_s: float = 0.0
    topics: Mapping[str, float] = field(default_factory=dict)
    extrapolated_s: float = 0.0
    continued: float = 0.0
    unsure_s: float = 0.0
    older: Mapping[str, Older] = field(default_factory=dict)
    unsure: Mapping[str, float] = field(default_factory=dict)
