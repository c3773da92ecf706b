"""Problems from the lines that ``kagent plan`` reads: those of ``kagent assign`` with ``lags``, and optionally

    "costs": {topic: seconds a record}, "speeds": {member: 1.0 is ordinary},
    "rates": {topic: [[partition, records a second], …]}, "capacities": {member: records a second},
    "pinned": [[topic, partition], …], "units": [[topic, …], …], "kind": a kind of group

Where members claim one partition both, the later generation has it. An error names the field at fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kagent.contract.recommendation import GroupKind
from kagent.errors import InputError
from kagent.planner.problem import Codes, Flags, Numbers, PlanningProblem
from kagent.strategies import Scenario
from kagent.text import shown

HUGE = 1e100
"""The greatest number that is taken; what is worked out from such numbers stays finite."""


def problem_of(line: Mapping[str, Any]) -> tuple[PlanningProblem, Scenario, str | None]:
    """Problem, scenario and kind of group of one line; InputError names the field at fault."""
    scenario = Scenario.from_json(line)
    layout = scenario.layout
    if isinstance(line.get("partitions_per_topic"), Mapping):
        for topic, count in line["partitions_per_topic"].items():
            if count and topic not in scenario.lags:
                raise InputError(f"lags[{_quoted(topic)}]: it is missing")
    topics = layout.topics
    topic = np.repeat(np.arange(len(topics)), layout.count)
    replica_racks = scenario.replica_racks
    problem = PlanningProblem(
        members=scenario.member_ids,
        topics=topics,
        topic=topic,
        partition=np.arange(layout.total) - np.asarray(layout.start)[topic],
        lag=scenario.lag().astype(np.float64),
        owner=_owners(scenario),
        subscribed=layout.subscribed_by_kind,
        member_class=layout.subscription,
        cost=_numbers(line, "costs", topics),
        speed=_numbers(line, "speeds", scenario.member_ids),
        rate=_rates(line, scenario),
        capacity=_numbers(line, "capacities", scenario.member_ids, whole=True),
        unit=_units(line, scenario),
        pinned=_pinned(line, scenario),
        instance=tuple(member.group_instance_id for member in scenario.members),
        rack=tuple(member.rack for member in scenario.members) if replica_racks else (),
        replica_racks=_racks(scenario) if replica_racks else (),
    )
    return problem, scenario, _kind(line)


def _quoted(name: Any) -> str:
    return f'"{shown(str(name))}"'


def _owners(scenario: Scenario) -> Codes:
    """Member per partition; where two claim one, the later generation has it."""
    had = scenario.owned if len(scenario.owned) else scenario.remembered
    layout = scenario.layout
    real = had.partition < layout.count[had.topic]
    rows = layout.numbers(had.topic[real], had.partition[real])
    member = had.member[real].astype(np.int64)
    age = np.array([_generation(one.generation) for one in scenario.members], np.int64)[member]
    # By row, the latest generation last, so that the assignment below keeps it: a member that missed a rebalance still claims
    # what it owned, with the generation of then (KIP-792).
    order = np.lexsort((age, rows))
    rows, member, age = rows[order], member[order], age[order]
    # Two claims of one generation: only an error where they are the latest, as an older pair is overruled anyway.
    again = np.flatnonzero((rows[1:] == rows[:-1]) & (age[1:] == age[:-1]))
    last = np.append(rows[1:] != rows[:-1], True)
    again = again[last[again + 1]]
    if len(again):
        at = int(again[0])
        topics, partitions = layout.split(rows[at : at + 1])
        name = _quoted(layout.topics[int(topics[0])])
        both = sorted((int(member[at]), int(member[at + 1])))
        raise InputError(
            f"members[{both[1]}].owned: partition {int(partitions[0])} of {name} is owned by members[{both[0]}] too, in the same generation"
        )
    owner = np.full(layout.total, -1, np.int64)
    owner[rows] = member  # of several claims the last written, the latest generation, stays
    return owner


def _generation(generation: int | None) -> int:
    return -1 if generation is None else generation


def _object(line: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = line.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{field}: a JSON object is expected")
    return value


def _number(value: Any, where: str, least: str) -> float:
    """A finite number, ``above 0`` or ``from 0 up``."""
    right = isinstance(value, int | float) and not isinstance(value, bool)
    lowest = 1 / HUGE if least == "above 0" else 0
    if not right or not lowest <= value <= HUGE:
        raise InputError(
            f"{where}: {shown(str(value))} cannot be; a number {least}, at most {HUGE:g}, is expected"
        )
    return float(value)


def _numbers(
    line: Mapping[str, Any], field: str, names: tuple[str, ...], whole: bool = False
) -> Numbers | None:
    """One positive number per name, 1 where it is missing; with ``whole`` None unless all are known."""
    given = _object(line, field)
    for name in given:
        if name not in names:
            raise InputError(f"{field}[{_quoted(name)}]: there is no such {_what(field)} on this line")
    values = {name: _number(value, f"{field}[{_quoted(name)}]", "above 0") for name, value in given.items()}
    if not values or (whole and len(values) < len(names)):
        return None
    return np.array([values.get(name, 1.0) for name in names])


def _what(field: str) -> str:
    return "topic" if field == "costs" else "member"


def _rates(line: Mapping[str, Any], scenario: Scenario) -> Numbers | None:
    given = _object(line, "rates")
    if not given:
        return None
    rates = np.zeros(scenario.layout.total)
    for topic, pairs in given.items():
        where = f"rates[{_quoted(topic)}]"
        if not isinstance(pairs, list):
            raise InputError(f"{where}: [[partition, rate], …] is expected")
        for at, pair in enumerate(pairs):
            if not isinstance(pair, list) or len(pair) != 2:
                raise InputError(f"{where}[{at}]: [partition, rate] is expected")
            row = _row(scenario, topic, pair[0], f"{where}[{at}]")
            rates[row] = _number(pair[1], f"{where}[{at}]", "from 0 up")
    return rates


def _row(scenario: Scenario, topic: Any, partition: Any, where: str) -> int:
    layout = scenario.layout
    code = layout.code_of.get(topic) if isinstance(topic, str) else None
    right = isinstance(partition, int) and not isinstance(partition, bool)
    if code is None or not right or not 0 <= partition < int(layout.count[code]):
        raise InputError(
            f"{where}: there is no partition {shown(str(partition))} of {_quoted(topic)} on this line"
        )
    return int(layout.start[code]) + int(partition)


def _pinned(line: Mapping[str, Any], scenario: Scenario) -> Flags | None:
    given = line.get("pinned")
    if given is None:
        return None
    if not isinstance(given, list):
        raise InputError("pinned: a list of [topic, partition] is expected")
    pinned = np.zeros(scenario.layout.total, np.bool_)
    for at, pair in enumerate(given):
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"pinned[{at}]: [topic, partition] is expected")
        pinned[_row(scenario, pair[0], pair[1], f"pinned[{at}]")] = True
    return pinned


def _units(line: Mapping[str, Any], scenario: Scenario) -> Codes | None:
    """Partition p of co-partitioned topics gets one number: that of the longest topic's partition p."""
    given = line.get("units")
    if given is None:
        return None
    if not isinstance(given, list):
        raise InputError("units: a list of lists of topics is expected")
    layout = scenario.layout
    unit = np.arange(layout.total)
    taken: set[str] = set()
    for at, names in enumerate(given):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"units[{at}]: a list of topics is expected")
        for name in names:
            if name not in layout.code_of:
                raise InputError(f"units[{at}]: there is no topic {_quoted(name)} on this line")
            if name in taken:
                raise InputError(f"units[{at}]: topic {_quoted(name)} is in units twice")
            taken.add(name)
        codes = [layout.code_of[name] for name in names]
        held = [code for code in codes if layout.count[code]]
        if held and not layout.subscribed_by_kind[:, held].all(axis=1).any():
            raise InputError(f"units[{at}]: no member subscribes to all of its topics")
        longest = max(codes, key=lambda code: int(layout.count[code]), default=-1)
        for code in codes:
            start, count = int(layout.start[code]), int(layout.count[code])
            unit[start : start + count] = int(layout.start[longest]) + np.arange(count)
    return unit


def _racks(scenario: Scenario) -> tuple[frozenset[str], ...]:
    racks: list[frozenset[str]] = []
    for topic, count in zip(scenario.layout.topics, scenario.layout.count.tolist(), strict=True):
        given = [frozenset(names) for names in scenario.replica_racks.get(topic, ())]
        racks += (given or [frozenset()] * count)[:count]
    return tuple(racks)


def _kind(line: Mapping[str, Any]) -> str | None:
    kind = line.get("kind")
    if kind is not None and kind not in list(GroupKind):
        raise InputError(
            f"kind: {_quoted(kind)} is not known; there are {', '.join(one.value for one in GroupKind)}"
        )
    return kind
