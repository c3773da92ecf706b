"""What if: a live group's scenario line with other members, another bound on moves, another strategy. Pure.

The answers are those of ``kagent plan --json`` and ``kagent assign --json`` for the line that is given back with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kagent.contract.redaction import Redaction
from kagent.errors import InputError
from kagent.planner.plan_answer import plain, planned
from kagent.strategies import STRATEGIES
from kagent.strategies import assign_answer as strategy_answer
from kagent.worker.http.models import WhatIf, WhatIfQuestion

MOST_PARTITIONS = 100_000
MOST_CHANGE = 1000
"""A question over more partitions, or about more new members, is refused: it would hold the worker up."""


def question_of(raw: Any) -> WhatIfQuestion:
    """The question in a request's JSON. Raises InputError naming the field at fault."""
    if not isinstance(raw, dict) or not isinstance(raw.get("line"), dict):
        raise InputError("line: the scenario line is expected, as /api/v1/group/scenario gives it")
    strategy = raw.get("strategy")
    if strategy is not None and strategy not in STRATEGIES:
        raise InputError(f"strategy: there are {', '.join(STRATEGIES)}")
    tolerance = raw.get("tolerance", 0.05)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 10:
        raise InputError("tolerance: a number from 0 to 10 is expected")
    moves = raw.get("max_moves")
    most = None if moves is None else _whole(moves, "max_moves", 0, 10_000_000)
    change = _whole(raw.get("members", 0), "members", -MOST_CHANGE, MOST_CHANGE)
    return WhatIfQuestion(raw["line"], change, most, float(tolerance), strategy)


def _whole(value: Any, field: str, least: int, most: int) -> int:
    # bool is a subclass of int: JSON's true would count as 1.
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{field}: a whole number from {least} to {most} is expected")
    return value


def answer(question: WhatIfQuestion) -> WhatIf:
    """The plan, and what the strategy gives. Raises InputError; blocking, up to seconds for a big group."""
    _refuse_size(question.line)
    line = with_members(question.line, question.members)
    result, others = planned(line, question.tolerance, question.max_moves)
    assigned = None
    if question.strategy is not None:
        found = strategy_answer.answered("what-if", line, line.get("id"), question.strategy)
        assigned = strategy_answer.plain(found)
    return WhatIf(line, plain(line.get("id"), result, others), assigned)


def _refuse_size(line: Mapping[str, Any]) -> None:
    counts = line.get("partitions_per_topic")
    if isinstance(counts, dict) and sum(n for n in counts.values() if isinstance(n, int)) > MOST_PARTITIONS:
        raise InputError(f"partitions_per_topic: more than {MOST_PARTITIONS}; use `kagent plan --group`")


def with_members(line: Mapping[str, Any], change: int) -> dict[str, Any]:
    """The line with more members, who subscribe like the first one and hold nothing, or without its last ones.

    What the members that leave held has no owner, and so is free to be placed. Raises InputError if no member would be left.
    """
    members = line.get("members")
    if not change:
        return dict(line)
    if not isinstance(members, list) or not all(isinstance(m, dict) for m in members) or not members:
        raise InputError("members: a list of members is expected")
    if change < 0:
        return _without(line, members, -change)
    taken = {member.get("id") for member in members}
    # As many candidates as could be taken, so that enough are left.
    names = (name for n in range(1, change + len(taken) + 1) if (name := f"new-{n}") not in taken)
    more = [{**members[0], "id": next(names), "group_instance_id": None, "owned": []} for _ in range(change)]
    return {**line, "members": [*members, *more]}


def _without(line: Mapping[str, Any], members: list[dict[str, Any]], fewer: int) -> dict[str, Any]:
    """A deployment ends its last replica first, so the last members by name go."""
    if fewer >= len(members):
        raise InputError("members: no member would be left")
    gone = sorted(members, key=lambda m: str(m.get("group_instance_id") or m.get("id")))[-fewer:]
    kept = [member for member in members if member not in gone]
    ids = {member.get("id") for member in gone}
    given = {f: line[f] for f in ("speeds", "capacities") if isinstance(line.get(f), dict)}
    left = {field: {n: v for n, v in values.items() if n not in ids} for field, values in given.items()}
    held = {tuple(key) for member in gone for key in member.get("owned") or () if isinstance(key, list)}
    pinned = line.get("pinned")
    if isinstance(pinned, list):  # what has no owner cannot stay where it is
        left["pinned"] = [key for key in pinned if not isinstance(key, list) or tuple(key) not in held]  # type: ignore[assignment]
    return {**line, "members": kept, **left}


def redacted(line: Mapping[str, Any], redaction: Redaction) -> dict[str, Any]:
    """The line with the members' ids as they may be shown: a broker makes them of the client id."""
    members = [{**m, "id": redaction.member_id(m["id"])} for m in line["members"]]
    # The assumptions are sentences that may name members in clear.
    return {**line, "members": members, "assumed": [] if redaction else line["assumed"]}
