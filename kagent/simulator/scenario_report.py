"""What came of a scenario: what kagent published, when, and what was true meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from kagent.contract.recommendation import Recommendation, Resolution, Status
from kagent.simulator.commit_table import EPOCH
from kagent.simulator.kagent_state import KagentState
from kagent.simulator.scenario_file import SimulatorScenario


@dataclass(frozen=True, slots=True)
class Opening:
    """One incident: when it opened (s), with which verdicts, and when it was resolved."""

    at: float
    verdicts: tuple[str, ...]
    resolved: float | None = None
    resolution: str | None = None
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a scenario. ``flaps``: openings within an hour of a resolution; ``detected``: seconds from onset."""

    name: str
    seed: int
    hours: float
    openings: tuple[Opening, ...]
    detected: float | None
    right: bool | None
    flaps: int
    drained: float | None
    """When no member was behind any more, seconds after the onset."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[Recommendation, ...] = field(default=(), repr=False)
    behind: float | None = None
    """When a member was a minute behind for the first time after the onset, in truth: seconds after the onset."""
    changed_wrong: bool = False
    """Whether the first incident had the right verdict first, and then a wrong one."""
    taken_back: int = 0
    """Incidents that ended as drained while a member was a minute behind, in truth."""
    predicted: float | None = None
    """Where the first action was carried out: in how many seconds it should be drained; None if nothing was promised."""
    took: float | None = None
    """And how long it took; None if it never was."""
    acted: bool = False
    sizes: tuple[tuple[float, int], ...] = ()
    """Where an autoscaler follows the useful members: (s, members) of each change."""
    worst: float = 0.0
    """How late the latest member was at the end, in seconds."""

    @property
    def waited(self) -> float | None:
        """Seconds from being a minute behind until it was reported; 0 where it was reported before."""
        if self.detected is None or self.behind is None:
            return self.detected
        return max(0.0, self.detected - self.behind)


def report_of(scenario: SimulatorScenario, seed: int, watcher: KagentState, at: int) -> Report:
    """The report of one seed. ``at``: its place among those that run side by side."""
    recorded, true = watcher.sessions[at], watcher.truth
    messages = [m for m in recorded.messages if m.group == watcher.groups[at]]
    openings = _openings(messages)
    # What was opened and resolved before the trouble began says nothing about how it was detected.
    first = next((o for o in openings if o.resolved is None or o.resolved > scenario.onset), None)
    flaps = sum(
        1
        for before, after in pairwise(openings)
        if before.resolved is not None and after.at - before.resolved < 3600
    )
    right = None if scenario.healthy else bool(first and first.verdicts[0] in scenario.expect)
    return Report(
        name=scenario.name,
        seed=seed,
        hours=scenario.hours,
        openings=openings,
        detected=max(0.0, first.at - scenario.onset) if first else None,
        right=right,
        flaps=flaps,
        drained=true.drained[at],
        dropped=dict(recorded.session.dropped),
        messages=tuple(messages),
        behind=true.behind[at],
        predicted=true.predicted[at],
        took=true.took(at),
        acted=true.acted[at] is not None,
        worst=true.worst[at],
        sizes=tuple(watcher.sizes[at]),
        taken_back=sum(
            o.resolution == Resolution.DRAINED
            and o.resolved is not None
            and true.was_late(at, o.resolved, scenario.tick)
            for o in openings
        ),
        changed_wrong=bool(right and first and not set(first.verdicts) <= set(scenario.expect)),
    )


def _openings(messages: list[Recommendation]) -> tuple[Opening, ...]:
    by_id: dict[str, list[Recommendation]] = {}
    for message in messages:
        by_id.setdefault(message.id, []).append(message)
    return tuple(
        Opening(
            at=(sent[0].opened_at - EPOCH) / 1000,
            verdicts=tuple(str(v) for v in dict.fromkeys(m.verdict for m in sent)),
            resolved=(sent[-1].as_of - EPOCH) / 1000 if sent[-1].status is Status.RESOLVED else None,
            resolution=str(sent[-1].resolution) if sent[-1].resolution else None,
            actions=tuple(str(a.type) for a in sent[0].actions if a.feasible != "no"),
        )
        for sent in by_id.values()
    )
