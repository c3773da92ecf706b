"""A scenario line answered as ``kagent plan --json`` answers it. The what-if of the page calls the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kagent.errors import InputError
from kagent.planner.comparison import Alternative, alternatives
from kagent.planner.plan import Plan, plan
from kagent.planner.problem_lines import problem_of


def planned(
    line: Mapping[str, Any], tolerance: float, max_moves: int | None
) -> tuple[Plan, tuple[Alternative, ...]]:
    """The plan for a line, and what every strategy would give. Raises InputError naming the field at fault."""
    problem, scenario, kind = problem_of(line)
    assumed = line.get("assumed") or []  # what a live group's coordinator does not tell
    if not isinstance(assumed, list):
        raise InputError("assumed: a list of sentences is expected")
    told = plan(problem, tolerance, max_moves)
    if assumed:
        told = replace(told, notes=(*told.notes, *map(str, assumed)))
    return told, alternatives(told, scenario, kind)


def plain(ident: Any, told: Plan, others: tuple[Alternative, ...]) -> dict[str, Any]:
    """What ``--json`` prints for a plan; a time that never ends is null."""
    return {
        "id": ident,
        "verdict": told.verdict,
        "assignment": told.assignment(),
        "moves": [
            {
                "topic": move.topic,
                "partition": move.partition,
                "from": move.source,
                "to": move.to,
                "lag": _number(move.lag),
            }
            for move in told.moves
        ],
        "skew": {"now": told.skew_now, "after": told.skew_after},
        "greatest": {
            "now": _number(told.now),
            "after": _number(told.after),
            "best": _number(told.best),
            "lower_bound": _number(told.lower_bound),
        },
        "frontier": [[moves, _number(greatest)] for moves, greatest in told.frontier],
        "alternatives": [
            {
                "strategy": other.strategy,
                "skew": other.skew,
                "greatest": _number(other.greatest),
                "moves": other.moves,
                "feasible": other.feasible,
                "unsafe": other.unsafe,
            }
            for other in others
        ],
        "objective": told.objective,
        "gap": _number(told.gap),
        "move_bound": told.move_bound,
        "r_score": told.r_score,
        "drain": None
        if told.drain_now is None or told.drain_after is None
        else {
            name: {"now": _number(now), "after": _number(after)}
            for name, now, after in zip(
                told.problem.members, told.drain_now.tolist(), told.drain_after.tolist(), strict=True
            )
        },
        "notes": list(told.notes),
        "error": None,
    }


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value
