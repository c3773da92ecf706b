"""A scenario: a small file that says what a group lives through, and what kagent should make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from kagent.errors import InputError
from kagent.policy import make_policy
from kagent.simulator import scenario_checks
from kagent.simulator.conditions import GENTLE, HARSH, PLAIN_CLIENTS, Clients, Conditions
from kagent.strategies import STRATEGIES

Section = TypeVar("Section", Conditions, Clients)


@dataclass(frozen=True)
class ScenarioTopic:
    """``inflow``: records/s of the whole topic; ``spread``: weights of its partitions, as a list, as ``even``, as ``1:8``
    (rising evenly from 1 to 8) or as ``zipf``; ``backlog``: records unread at the start, by the same spread;
    ``daily``: amplitude of a daily wave (0–1); ``noise``: how much the inflow of each minute varies; ``cost``: seconds of
    work a record."""

    name: str
    partitions: int = 12
    inflow: float = 1000.0
    spread: str | list[float] = "even"
    backlog: float = 0.0
    daily: float = 0.0
    noise: float = 0.2
    cost: float = 0.0002
    compacted: bool = False
    markers: float = 0.0
    """Seconds between transaction markers; 0: no transactions."""
    delay: float = 0.0
    """Seconds for which a record is left alone after it came."""


@dataclass(frozen=True)
class Autoscaler:
    """Adds and removes members by the group's lag, as KEDA does. Times in seconds, lag in records."""

    lag_per_member: float
    least: int = 1
    greatest: int = 10
    every: float = 30.0
    cooldown: float = 300.0
    """No member is removed so soon after the last change."""


@dataclass(frozen=True)
class SimulatorScenario:
    """``expect``: verdicts of which one should lead, empty for a healthy group; ``onset``: when the trouble begins, s.

    ``events``: what happens, each {at, do, …}; ``do`` is one of ``docs/judgement.md``'s list. All times in seconds.
    """

    name: str
    topics: tuple[ScenarioTopic, ...]
    about: str = ""
    wanted: str = ""
    """What an engineer would want to hear."""
    expect: tuple[str, ...] = ()
    onset: float = 0.0
    hours: float = 24.0
    members: int = 4
    kind: str = "classic_java"
    assignor: str = "range"
    assignment: Mapping[str, Any] | None = None
    commit: float = 5.0
    trigger: float = 1.0
    tick: float = 10.0
    sample: float = 5.0
    step: float = 5.0
    pause: float = 3.0
    """Seconds that a rebalance stops everybody."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    events: tuple[Mapping[str, Any], ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    known_before: bool = True
    """Whether kagent has known the group long enough at the start; else it learns first."""
    follow: bool | str = False
    """Whether the group follows the plan of the first recommendation; or the strategy that it switches to then; or `first`: it
    carries out the first feasible action, a minute later; or `useful`: its members are always as many as would help."""
    world: Conditions = GENTLE
    clients: Clients = PLAIN_CLIENTS
    autoscaler: Autoscaler | None = None
    together: bool = False
    """Whether the seeds are groups of one cluster, which one session judges; else each has kagent for itself."""

    @property
    def healthy(self) -> bool:
        """Whether nothing may open."""
        return not self.expect


def load(path: str | Path, harsh: bool = False) -> SimulatorScenario:
    """The scenario in a YAML or JSON file. Raises InputError naming file and field.

    ``harsh``: whether a file that has neither `world:` nor `clients:` happens in the harsh world, or in the gentle one.
    """
    try:
        # safe_load: a scenario may come from a stranger, and YAML tags can make any Python object.
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The scenario {path} cannot be read ({error.strerror}).") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError(
            f"The scenario {path} is not YAML{f' at line {mark.line + 1}' if mark else ''}."
        ) from error
    return parse(raw, str(path), harsh)


def parse(raw: Any, where: str = "scenario", harsh: bool = False) -> SimulatorScenario:
    """A scenario from plain values. Raises InputError naming the field."""
    if not isinstance(raw, Mapping):
        raise InputError(f"{where}: names and values are expected, such as `topics:`")
    values = dict(raw)
    topics = values.pop("topics", None)
    scenario_checks.known(values, SimulatorScenario, where, "topics")
    # A file that says anything of world or clients is written for the realistic world: what it leaves out is that one's.
    harsh = harsh or bool(values.get("world") or values.get("clients"))
    values["world"] = _section(values.get("world"), HARSH if harsh else GENTLE, f"{where}: world")
    values["clients"] = _section(
        values.get("clients"), Clients() if harsh else PLAIN_CLIENTS, f"{where}: clients"
    )
    if values.get("autoscaler") is not None:
        scenario_checks.known(values["autoscaler"], Autoscaler, f"{where}: autoscaler")
        values["autoscaler"] = Autoscaler(**{"lag_per_member": 1000.0, **values["autoscaler"]})
    if not isinstance(topics, Mapping) or not topics:
        raise InputError(f"{where}: topics: at least one topic is needed, as name → fields")
    made = tuple(_topic(name, section, f"{where}: topics.{name}") for name, section in topics.items())
    values.setdefault("name", Path(where).stem)
    values["expect"] = tuple(_listed(values.get("expect")))
    values["events"] = values.get("events") or ()
    scenario = SimulatorScenario(topics=made, **{name: v for name, v in values.items() if v is not None})
    _checked(scenario, where)
    # sorted is stable: events at one time keep the order of the file.
    ordered = sorted(scenario.events, key=lambda e: float(e.get("at", 0)))
    return replace(scenario, events=tuple(ordered), members=int(scenario.members))


def _section(section: Any, base: Section, where: str) -> Section:
    """The defaults with what the file says; values are checked by their types."""
    if not isinstance(section or {}, Mapping):
        raise InputError(f"{where}: fields are expected")
    scenario_checks.known(section or {}, type(base), where)
    types = {f.name: str(f.type) for f in fields(base)}
    given = {
        name: scenario_checks.several(value, types[name], f"{where}.{name}")
        for name, value in (section or {}).items()
    }
    return replace(base, **given)


def _topic(name: Any, section: Any, where: str) -> ScenarioTopic:
    if not isinstance(section or {}, Mapping):
        raise InputError(f"{where}: fields are expected, such as `partitions: 12`")
    scenario_checks.known(section or {}, ScenarioTopic, where, "name")
    made = ScenarioTopic(name=str(name), **(section or {}))
    scenario_checks.spread(made.spread, f"{where}.spread")
    return replace(made, partitions=int(made.partitions))


def _checked(scenario: SimulatorScenario, where: str) -> None:
    sizes = {t.name: t.partitions for t in scenario.topics}
    scenario_checks.expected(scenario.expect, where)
    scenario_checks.one_of(scenario.kind, scenario_checks.KINDS, f"{where}: kind")
    scenario_checks.one_of(scenario.assignor, scenario_checks.ASSIGNORS, f"{where}: assignor")
    scenario_checks.clients(scenario.clients, sizes, where)
    if not isinstance(scenario.follow, bool):
        scenario_checks.one_of(scenario.follow, (*STRATEGIES, "first", "useful"), f"{where}: follow")
    if scenario.assignment is not None:
        scenario_checks.assignment(scenario.assignment, scenario.members, sizes, where)
    scenario_checks.events(scenario.events, scenario.members, sizes, where)
    if not isinstance(scenario.speeds, Mapping) or not isinstance(scenario.policy, Mapping):
        raise InputError(f"{where}: speeds and policy: names and values are expected")
    for member, speed in scenario.speeds.items():
        scenario_checks.number(speed, f"{where}: speeds.{member}")
    make_policy(scenario.policy)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
