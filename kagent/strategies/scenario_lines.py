"""Reads the lines of ``kagent assign``: the fields of a scenario.

    {"id", "strategy", "partitions_per_topic": {topic: n} and/or "lags": {topic: [[partition, lag], …]},
     "members": [{"id", "topics", "group_instance_id", "rack", "owned": [[topic, partition], …], "generation",
                  "user_data": {"generation", "partitions": [[topic, partition], …]}}, …],
     "replica_racks": {topic: [[rack, …], …]}, "topic_ids": {topic: id}}

Only ``members`` and one of ``partitions_per_topic`` and ``lags`` must be there. ``topic_ids`` and
``user_data`` are Kafka's own: see ``docs/strategies.md``. Where no member has ``user_data``, not even null, ``sticky``
reads what is owned. An error names the field at fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kagent.errors import InputError
from kagent.strategies.subscribed_member import Member
from kagent.text import shown

# Partitions and generations are int32 in Kafka's protocol.
MOST = 2**31 - 1
TOPIC_ID = re.compile("[A-Za-z0-9_-]{22}")
NO_ID = "A" * 22
"""What a cluster without topic ids (before 2.8) says of every topic."""
Pairs = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ScenarioFields:
    """What a line gives to ``Scenario.of``. ``remembered`` is None where no member has user data."""

    members: list[Member]
    partitions_per_topic: dict[str, int]
    owned: dict[str, Pairs]
    remembered: dict[str, Pairs] | None
    lags: dict[str, list[int]]
    replica_racks: dict[str, list[list[str]]]
    topic_ids: dict[str, str]


def fields_of(line: Mapping[str, Any]) -> ScenarioFields:
    """What one line says; InputError names the field at fault."""
    if not isinstance(line, Mapping):
        raise InputError("a scenario is a JSON object")
    lags = _lags(line)
    counts = _counts(line, lags)
    listed = _list(line, "members")
    has_user_data = any(isinstance(raw, Mapping) and "user_data" in raw for raw in listed)
    members: list[Member] = []
    owned: dict[str, Pairs] = {}
    remembered: dict[str, Pairs] = {}
    for at, raw in enumerate(listed):
        member, has, knew = _member(raw, f"members[{at}]")
        members.append(
            member
            if has_user_data
            else msgspec.structs.replace(member, remembered_generation=member.generation)
        )
        owned.setdefault(member.id, has)
        remembered.setdefault(member.id, knew)
    return ScenarioFields(
        members,
        counts,
        owned=owned,
        remembered=remembered if has_user_data else None,
        lags=lags,
        replica_racks=_racks(line, counts),
        topic_ids=_topic_ids(line),
    )


def _member(raw: Any, where: str) -> tuple[Member, Pairs, Pairs]:
    if not isinstance(raw, Mapping):
        raise InputError(f"{where}: a member is a JSON object")
    topics = _topics(raw, where)
    data = raw.get("user_data")
    if data is not None and not isinstance(data, Mapping):
        raise InputError(f"{where}.user_data: a JSON object or null is expected")
    member = Member(
        _text(raw, "id", where),
        topics,
        _optional_text(raw, "group_instance_id", where),
        _optional_text(raw, "rack", where) or None,
        _generation(raw, where),
        _generation(data or {}, f"{where}.user_data"),
    )
    return member, _pairs(raw, "owned", where), _pairs(data or {}, "partitions", f"{where}.user_data")


def _topics(raw: Mapping[str, Any], where: str) -> tuple[str, ...]:
    topics = raw.get("topics")
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise InputError(f"{where}.topics: a list of names is expected")
    if len(set(topics)) < len(topics):
        twice = next(topic for topic in topics if topics.count(topic) > 1)
        raise InputError(f'{where}.topics: "{shown(twice)}" is there twice')
    return tuple(topics)


def _pairs(raw: Mapping[str, Any], name: str, where: str) -> Pairs:
    pairs = raw.get(name)
    if pairs is None:
        return []
    if not isinstance(pairs, list):
        raise InputError(f"{where}.{name}: a list of [topic, partition] is expected")
    for at, pair in enumerate(pairs):
        if not (_is_pair(pair) and isinstance(pair[0], str) and _is_number(pair[1])):
            raise InputError(f"{where}.{name}[{at}]: [topic, partition] is expected")
        if not 0 <= pair[1] <= MOST:
            raise InputError(f"{where}.{name}[{at}]: partition {pair[1]} cannot be")
    return [(topic, partition) for topic, partition in pairs]


def _counts(line: Mapping[str, Any], lags: Mapping[str, Sequence[int]]) -> dict[str, int]:
    counts = line.get("partitions_per_topic")
    if counts is None:
        if line.get("lags") is None:
            raise InputError("partitions_per_topic: it is missing, and so are lags")
        return {topic: len(values) for topic, values in lags.items()}
    if not isinstance(counts, Mapping):
        raise InputError("partitions_per_topic: a JSON object of topic and number is expected")
    for topic, count in counts.items():
        if not _is_number(count) or not 0 <= count <= MOST:
            raise InputError(f'partitions_per_topic["{shown(topic)}"]: a number of partitions is expected')
    return dict(counts)


def _lags(line: Mapping[str, Any]) -> dict[str, list[int]]:
    lags = _object(line, "lags", "a JSON object of topic and [[partition, lag], …]")
    return {topic: _topic_lags(topic, pairs) for topic, pairs in lags.items()}


def _topic_lags(topic: str, pairs: Any) -> list[int]:
    where = f'lags["{shown(topic)}"]'
    if not isinstance(pairs, list):
        raise InputError(f"{where}: [[partition, lag], …] is expected")
    values: dict[int, int] = {}
    for at, pair in enumerate(pairs):
        if not (_is_pair(pair) and _is_number(pair[0]) and _is_number(pair[1])):
            raise InputError(f"{where}[{at}]: [partition, lag] is expected")
        partition, lag = pair
        if partition in values:
            raise InputError(f"{where}[{at}]: partition {partition} is there twice")
        # Kafka's offsets, and so lags, are int64.
        if not 0 <= lag < 2**63:
            raise InputError(f"{where}[{at}]: partition {partition} has the lag {lag}, which cannot be")
        values[partition] = lag
    missing = next((p for p in range(len(values)) if p not in values), None)
    if missing is not None:
        raise InputError(f"{where}: the lag of partition {missing} is missing")
    return [values[partition] for partition in range(len(values))]


def _racks(line: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, list[list[str]]]:
    racks = _object(line, "replica_racks", "a JSON object of topic and lists of racks")
    for topic, partitions in racks.items():
        where = f'replica_racks["{shown(topic)}"]'
        if not isinstance(partitions, list) or len(partitions) != counts.get(topic, 0):
            raise InputError(
                f"{where}: a list of racks for each of {counts.get(topic, 0)} partitions is expected"
            )
        for at, names in enumerate(partitions):
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise InputError(f"{where}[{at}]: a list of racks is expected")
    return dict(racks)


def _topic_ids(line: Mapping[str, Any]) -> dict[str, str]:
    ids = _object(line, "topic_ids", "a JSON object of topic and id")
    topics: dict[str, str] = {}
    for topic, value in ids.items():
        where = f'topic_ids["{shown(topic)}"]'
        if not isinstance(value, str) or not TOPIC_ID.fullmatch(value):
            raise InputError(f"{where}: an id of 22 base64 characters is expected")
        first = topics.setdefault(value, topic)
        if first != topic and value != NO_ID:
            raise InputError(f'{where}: it is the id of "{shown(first)}" too')
    return {topic: value for topic, value in ids.items() if value != NO_ID}


def _object(line: Mapping[str, Any], name: str, what: str) -> Mapping[str, Any]:
    """The object in this field; an empty one where the field is missing or null."""
    value = line.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name}: {what} is expected")
    return value


def _list(line: Mapping[str, Any], name: str) -> list[Any]:
    value = line.get(name)
    if not isinstance(value, list):
        raise InputError(f"{name}: a list is expected")
    return value


def _text(raw: Mapping[str, Any], name: str, where: str) -> str:
    value = raw.get(name)
    if not isinstance(value, str):
        raise InputError(f"{where}.{name}: a text is expected")
    return value


def _optional_text(raw: Mapping[str, Any], name: str, where: str) -> str | None:
    return None if raw.get(name) is None else _text(raw, name, where)


def _generation(raw: Mapping[str, Any], where: str) -> int | None:
    value = raw.get("generation")
    if value is None:
        return None
    if not _is_number(value) or not -MOST <= value <= MOST:
        raise InputError(f"{where}.generation: a number or null is expected")
    # Negative in the subscription means absent; in user data −1 is the generation of a member that never had an assignment.
    return None if value < 0 and not where.endswith("user_data") else int(value)


def _is_number(value: Any) -> bool:
    # JSON's true and false are ints in Python.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2
