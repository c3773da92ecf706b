"""What the judgement remembers of a group between ticks: the row of the verdicts table. Frozen and JSON-able.

Nothing in it is read from a clock. A tick that is delivered twice changes nothing: the row remembers the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kagent.advice.rates import Busy


@dataclass(frozen=True, slots=True)
class Streak:
    """Evaluations in a row that found the same. ``since``: time of the first; ``commits``: how many different commits of
    the member they rest on, the newest at ``commit``; ``lag``: of the member, at the first of them; ``confirmed``: how
    often the coordinator has borne it out since, the last time at ``asked``."""

    kind: str
    member: str
    since: int
    count: int
    commit: int
    commits: int
    lag: float
    confirmed: int = 0
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Incident:
    """What is open. ``message``: the last one sent, without the parts that are long. Times in ms.

    ``digest``: assignment it rests on; ``plan``: [topic, partition, member]; ``calm``: evaluations in a row in which
    nothing was the matter; ``other``: evaluations in a row in which another verdict led.
    """

    id: str
    opened_at: int
    verdict: str
    member: str
    message: Mapping[str, Any]
    digest: str
    sent_at: int
    skew: float
    predicted_drain: float | None = None
    predicted_skew: float | None = None
    plan: tuple[tuple[str, int, str], ...] = ()
    assignor: str | None = None
    members: int | None = None
    started_with: tuple[str, ...] = ()
    calm: int = 0
    calm_commit: int = 0
    other: int = 0
    superseded: bool = False
    stale: bool = False
    changed_at: int | None = None
    followed_at: int | None = None
    drained_at: int | None = None
    """Since when no member is behind any more."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a topic is late whose partitions are all equally late. ``age``: in s, when they were committed; ``began``: time of
    the commit since which it is that (ms); ``rises``: how often it rose since it last fell or settled; ``settled``: it has
    been that for so long that it is meant to be."""

    began: int
    age: float
    rises: int = 0
    settled: bool = False


@dataclass(frozen=True, slots=True)
class JudgeState:
    """One group's memory. ``generations``: (time, generation) of the changes within the storm window; ``seen``: member
    name → times it came back after leaving; ``marks``: member → (time, lag, records committed by topic) where an interval
    of busy work began; ``busy``: what members did while busy; ``track``: how many were opened, followed, right."""

    first_seen: int
    last_tick: int = 0
    generation: int | None = None
    digest: str = ""
    generation_at: int = 0
    generations: tuple[tuple[int, int], ...] = ()
    restless_since: int = 0
    """Since when generations have followed each other within the storm window."""
    names: tuple[str, ...] = ()
    comings: Mapping[str, int] = field(default_factory=dict)
    streak: Streak | None = None
    incident: Incident | None = None
    cooldown_until: int = 0
    marks: Mapping[str, tuple[int, float, Mapping[str, int]]] = field(default_factory=dict)
    busy: Mapping[str, Busy] = field(default_factory=dict)
    empty_since: int = 0
    members_at: int = 0
    longest_absence: int = 0
    stops: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, int] = field(default_factory=dict)
    resumed: Mapping[str, int] = field(default_factory=dict)
    """Topic → time when it last went on after a standstill."""
    paces: Mapping[str, Pace] = field(default_factory=dict)
    """Topic → how late it is, where all its partitions are equally late."""
    trail: Mapping[str, int] = field(default_factory=dict)
    """<topic>/<partition> → committed at the last look, where there is a backlog and log starts move."""
    lost: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """<topic>/<partition> → (time, records) that retention took before they were read."""
    track: Mapping[str, int] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        """As it is kept in a table: what JSON knows, defaults left out."""
        row = {name: value for name, value in asdict(self).items() if value != _DEFAULTS.get(name)}
        if self.busy:
            row["busy"] = {name: busy.to_row() for name, busy in self.busy.items()}
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> JudgeState:
        """The state that :meth:`to_row` wrote; names a newer kagent added are passed over."""
        values = {name: row[name] for name in cls.__slots__ if name in row}
        if values.get("streak"):
            values["streak"] = _made(Streak, values["streak"])
        if values.get("incident"):
            values["incident"] = _made(Incident, values["incident"])
        if "busy" in values:
            values["busy"] = {
                name: Busy(seconds, intervals, records)
                for name, (seconds, intervals, records) in values["busy"].items()
            }
        if "lost" in values:
            values["lost"] = {place: (at, records) for place, (at, records) in values["lost"].items()}
        if "paces" in values:  # an older kagent wrote lists of two numbers; they are soon learned again
            values["paces"] = {
                topic: _made(Pace, row) for topic, row in values["paces"].items() if isinstance(row, Mapping)
            }
        if "marks" in values:
            values["marks"] = {name: (t, lag, recs) for name, (t, lag, recs) in values["marks"].items()}
        for name in ("generations", "names"):
            if name in values:
                values[name] = tuple(tuple(v) if isinstance(v, list) else v for v in values[name])
        return cls(**values)


def _made(kind: type[Any], raw: Mapping[str, Any]) -> Any:
    values = {name: raw[name] for name in kind.__slots__ if name in raw}
    if "plan" in values:
        values["plan"] = tuple((t, p, m) for t, p, m in values["plan"])
        values["started_with"] = tuple(values.get("started_with", ()))
    return kind(**values)


_DEFAULTS: dict[str, Any] = {
    name: value for name, value in asdict(JudgeState(first_seen=0)).items() if name not in ("first_seen",)
}
