"""Whether a scenario makes sense, checked before anything is run; an error is one sentence that names the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from kagent.contract.recommendation import GroupKind, Verdict
from kagent.errors import InputError
from kagent.simulator.conditions import COMMITS, CONTENTS, FAMILIES, PROTOCOLS, SERVICES, Clients
from kagent.strategies import STRATEGIES
from kagent.text import partition_name

EVENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "join": (("member",), ()),
    "leave": (("member",), ()),
    "deploy": ((), ("every", "down", "keep", "mark")),
    "hang": (("member",), ("for", "hung")),
    "speed": (("member", "value"), ()),
    "hold": (("topic",), ("partition", "for", "held")),
    "inflow": (("topic", "factor"), ("partition", "for")),
    "rest": ((), ("for", "resting")),
    "batch": (("every", "run"), ("leave",)),
    "empty": ((), ()),
    "rewind": (("seconds",), ()),
    "recreate": (("topic",), ()),
    "transaction": (("topic",), ("partition", "for", "open")),
    "retention": (("topic", "keep"), ("partition",)),
    "storm": (("member", "every"), ("times",)),
    "repeat": (("every", "event"), ()),
    "backlog": (("topic", "records"), ("partition",)),
    "cost": (("topic", "factor"), ("partition", "for")),
    "leak": (("member", "per_hour"), ()),
    "poison": (("topic",), ("partition", "for", "held")),
    "restart_brokers": ((), ("every", "down")),
    "outage": (("for",), ()),
}
"""What each event must say, and what it may."""
NUMBERS = frozenset(
    {
        "at",
        "every",
        "down",
        "for",
        "value",
        "factor",
        "run",
        "seconds",
        "keep",
        "times",
        "records",
        "per_hour",
    }
)
POSITIVE = frozenset({"hours", "members", "commit", "trigger", "tick", "sample", "step", "partitions"})
WHOLE = frozenset({"members", "partitions"})
# A share group commits no offsets: there is no lag in __consumer_offsets to judge (KIP-932).
KINDS = tuple(str(kind) for kind in GroupKind if kind not in (GroupKind.SHARE,))
ASSIGNORS = (
    "range",
    "roundrobin",
    *(n for n, s in STRATEGIES.items() if not s.needs_lag and n not in ("range", "roundrobin")),
)
"""Those that need lags are for `follow`: what a group switches to when it is advised so."""


def known(values: Mapping[str, Any], kind: type[Any], where: str, *given: str) -> None:
    """Raises InputError for a field that the class does not have, or a value that is not of its type."""
    types = {f.name: str(f.type) for f in fields(kind) if f.name not in given}
    unknown = sorted(str(name) for name in set(values) - set(types))
    if unknown:
        raise InputError(f"{where}: unknown {', '.join(unknown)}; there are: {', '.join(sorted(types))}")
    for name, value in values.items():
        if types[name] in ("float", "int"):
            number(value, f"{where}.{name}", name)
        elif types[name] == "bool" and not isinstance(value, bool):
            raise InputError(f"{where}.{name}: true or false is expected, not {value!r}")


def number(value: Any, where: str, name: str = "") -> None:
    """Raises InputError for what is no number, or not one that can stand there."""
    # bool is an int in Python: `members: true` would be one member.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: a number is expected, not {value!r}")
    # Not `value < 0`: that lets NaN through, which YAML can write.
    if not value >= 0 or (name in POSITIVE and value == 0):
        least = "above 0" if name in POSITIVE else "at least 0"
        raise InputError(f"{where}: a number {least} is expected, not {value!r}")
    if name in WHOLE and value != int(value):
        raise InputError(f"{where}: a whole number is expected, not {value!r}")


def several(value: Any, kind: str, where: str) -> Any:
    """The value as a tuple where the field is one. Raises InputError for a range or list that is none."""
    if kind == "Range":
        if not (isinstance(value, list) and len(value) == 2 and all(_weight(v) for v in value)):
            raise InputError(f"{where}: [least, greatest] is expected, not {value!r}")
        return (float(value[0]), max(map(float, value)))
    if kind.startswith("tuple[str"):
        return tuple(str(v) for v in value) if isinstance(value, (list, tuple)) else (str(value),)
    if kind == "float | None":
        number(value, where)
    return value


def clients(given: Clients, topics: Mapping[str, int], where: str) -> None:
    """Raises InputError for a client that does not exist, or topics that do not."""
    for name in given.family:
        one_of(name, FAMILIES, f"{where}: clients.family")
    for field, allowed in (
        ("service", SERVICES),
        ("commits", COMMITS),
        ("contents", CONTENTS),
        ("protocol", PROTOCOLS),
    ):
        if getattr(given, field):
            one_of(getattr(given, field), allowed, f"{where}: clients.{field}")
    if not isinstance(given.subscriptions, Mapping):
        raise InputError(f"{where}: clients.subscriptions: member → topics is expected")
    for topic in (*given.priority, *(t for listed in given.subscriptions.values() for t in listed)):
        one_of(topic, topics, f"{where}: clients")


def one_of(value: Any, allowed: Iterable[str], where: str) -> None:
    """Raises InputError for a word that is none of these."""
    if value not in tuple(allowed):
        raise InputError(f"{where}: {value!r} is none of {', '.join(allowed)}")


def spread(value: Any, where: str) -> None:
    """Raises InputError for a spread that is none."""
    if isinstance(value, list) and value and all(_weight(w) for w in value) and sum(value) > 0:
        return
    if value in ("even", "zipf"):
        return
    ends = str(value).split(":") if isinstance(value, str) else []
    try:
        if len(ends) == 2 and min(map(float, ends)) >= 0 and max(map(float, ends)) > 0:
            return
    except ValueError:
        pass
    raise InputError(f'{where}: even, zipf, "low:high" or a list of weights is expected, not {value!r}')


def _weight(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def expected(verdicts: Iterable[Any], where: str) -> None:
    """Raises InputError for a verdict that does not exist."""
    for verdict in verdicts:
        one_of(verdict, [str(v) for v in Verdict], f"{where}: expect")


def assignment(given: Any, members: int, topics: Mapping[str, int], where: str) -> None:
    """Raises InputError where a member or partition of the assignment does not exist, or is held twice."""
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: assignment: member → topic → partitions is expected")
    names, held = [f"m{n}" for n in range(members)], set()
    if sorted(map(str, given)) != sorted(names):
        raise InputError(f"{where}: assignment: all of {', '.join(names)} are expected, and no others")
    for member, parts in given.items():
        for topic, partitions in (parts or {}).items():
            one_of(topic, topics, f"{where}: assignment.{member}")
            for partition in partitions if isinstance(partitions, list) else [partitions]:
                _place(partition, topics[topic], f"{where}: assignment.{member}.{topic}")
                if (topic, partition) in held:
                    raise InputError(f"{where}: assignment: {partition_name(topic, partition)} is held twice")
                held.add((topic, partition))


def _place(partition: Any, partitions: int, where: str) -> None:
    if not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < partitions:
        raise InputError(f"{where}: {partition!r} is no partition; they are 0 to {partitions - 1}")


def events(given: Any, members: int, topics: Mapping[str, int], where: str) -> None:
    """Raises InputError for an event that cannot happen."""
    if not isinstance(given, (list, tuple)):
        raise InputError(f"{where}: events: a list is expected, each {{at, do, …}}")
    names = {f"m{n}" for n in range(members)} | {m for e in given for m in _joins(e)}
    for at, event in enumerate(given):
        _event(event, names, topics, f"{where}: events[{at}]")


def _joins(event: Any) -> list[str]:
    if not isinstance(event, Mapping):
        return []
    if event.get("do") == "repeat":
        return _joins(event.get("event"))
    names = event.get("member", []) if event.get("do") in ("join", "storm") else []
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _event(event: Any, names: set[str], topics: Mapping[str, int], where: str) -> None:
    if not isinstance(event, Mapping):
        raise InputError(f"{where}: {{at, do, …}} is expected, not {event!r}")
    do = event.get("do")
    if do not in EVENTS:
        problem = "`do` is missing" if do is None else f"nothing is called {do!r}"
        raise InputError(f"{where}: {problem}; there are: {', '.join(sorted(EVENTS))}")
    must, may = EVENTS[do]
    missing = [name for name in must if name not in event]
    unknown = sorted(set(event) - {"at", "do", *must, *may})
    if missing or unknown:
        wrong = f"`{missing[0]}` is missing" if missing else f"unknown {', '.join(map(str, unknown))}"
        raise InputError(f"{where}: {do}: {wrong}; it takes {', '.join(('at', *must, *may))}")
    for name in (NUMBERS & event.keys()) - ({"keep"} if do == "deploy" else set()):
        number(event[name], f"{where}: {do}.{name}", "hours" if name == "every" else "")
    if "topic" in event:
        one_of(event["topic"], topics, f"{where}: {do}.topic")
    if "partition" in event:
        listed = event["partition"] if isinstance(event["partition"], list) else [event["partition"]]
        for partition in listed:
            _place(partition, topics[event["topic"]], f"{where}: {do}.partition")
    if "member" in event:
        listed = event["member"] if isinstance(event["member"], list) else [event["member"]]
        for member in listed:
            if str(member).split(".")[0] not in names:
                raise InputError(
                    f"{where}: {do}: there is never a member {member!r}; they are {', '.join(sorted(names))}"
                )
    if do == "repeat":
        _event(event["event"], names, topics, f"{where}: repeat")
