"""A scenario line answered as ``kagent plan --json`` answers it. The what-if of the page calls the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kagent.errors import InputError
from kagent.planner.comparison import Alternative, alternatives
from kagent.planner.plan import Move, Plan, plan
from kagent.planner.problem_lines import problem_of


def planned(
    line: Mapping[str, Any], tolerance: float, max_moves: int | None
) -> tuple[Plan, tuple[Alternative, ...]]:
    """The plan for a line, and what every strategy would give. Raises InputError naming the field at fault."""
    problem, scenario, kind = problem_of(line)
    assumed = line.get("assumed") or []  # what a live group's coordinator does not tell
    if not isinstance(assumed, list):
        raise InputError("assumed: a list of sentences is expected")
    result = plan(problem, tolerance, max_moves)
    if assumed:
        result = replace(result, notes=(*result.notes, *map(str, assumed)))
    return result, alternatives(result, scenario, kind)


def plain(ident: Any, result: Plan, others: tuple[Alternative, ...]) -> dict[str, Any]:
    """What ``--json`` prints for a plan; a time that never ends is null."""
    return {
        "id": ident,
        "verdict": result.verdict,
        "assignment": result.assignment(),
        "moves": [_move(move) for move in result.moves],
        "skew": {"now": result.skew_now, "after": result.skew_after},
        "greatest": {
            "now": _number(result.now),
            "after": _number(result.after),
            "best": _number(result.best),
            "lower_bound": _number(result.lower_bound),
        },
        "frontier": [[moves, _number(greatest)] for moves, greatest in result.frontier],
        "alternatives": [_alternative(other) for other in others],
        "objective": result.objective,
        "gap": _number(result.gap),
        "move_bound": result.move_bound,
        "r_score": result.r_score,
        "drain": _drains(result),
        "notes": list(result.notes),
        "error": None,
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "topic": move.topic,
        "partition": move.partition,
        "from": move.source,
        "to": move.to,
        "lag": _number(move.lag),
    }


def _alternative(other: Alternative) -> dict[str, Any]:
    return {
        "strategy": other.strategy,
        "skew": other.skew,
        "greatest": _number(other.greatest),
        "moves": other.moves,
        "feasible": other.feasible,
        "unsafe": other.unsafe,
    }


def _drains(result: Plan) -> dict[str, Any] | None:
    """Member → seconds until it is drained, now and after the plan; None where they are unknown."""
    if result.drain_now is None or result.drain_after is None:
        return None
    columns = result.problem.members, result.drain_now.tolist(), result.drain_after.tolist()
    return {
        name: {"now": _number(now), "after": _number(after)}
        for name, now, after in zip(*columns, strict=True)
    }


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    # Whole numbers as such: lags are counts, and 120.0 records reads like an estimate.
    return int(value) if value == int(value) else value
