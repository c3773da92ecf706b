"""A scenario line answered as ``kagent assign`` answers it. The what-if of the page calls the same."""

from __future__ import annotations

from typing import Any

from kagent.errors import InputError
from kagent.strategies import STRATEGIES, Assignment, Scenario, assign
from kagent.strategies.quality import measured
from kagent.strategies.scenario import refuse_contradiction
from kagent.text import shown

ALL = "all"
MOST_PARTITIONS = 20_000_000
"""More than this on one line is taken for a mistake."""


def answered(
    where: str, read: Any, ident: Any, strategy: str | None, balance: float | None = None
) -> dict[str, Any]:
    """id, scenario and per strategy an Assignment or an error; ``error`` is the first error."""
    if isinstance(read, InputError):
        return {"id": None, "strategies": {}, "error": _error(where, read)}
    answer: dict[str, Any] = {
        "id": ident,
        "strategies": {},
        "error": None,
        "all": strategy == ALL,
    }
    try:
        scenario = _scenario(read)
        names = _names(read, strategy)
    except InputError as error:
        return {**answer, "error": _error(where, error)}
    answer["scenario"] = scenario
    for name in names:
        try:
            # Only the sticky assignors have a rule for two claims of one partition; the others would be given a group that cannot be.
            if not STRATEGIES[name].settles_claims:
                refuse_contradiction(scenario)
            knob = {} if balance is None or name != "lag-global" else {"balance": balance}
            answer["strategies"][name] = assign(name, scenario, **knob)
        except InputError as error:
            answer["strategies"][name] = _error(where, error)
            if strategy != ALL:
                answer["error"] = _error(where, error)
    return answer


def _scenario(line: dict[str, Any]) -> Scenario:
    counts = line.get("partitions_per_topic")
    if isinstance(counts, dict):
        total = sum(count for count in counts.values() if isinstance(count, int))
        if total > MOST_PARTITIONS:
            raise InputError(f"partitions_per_topic: {total} partitions are more than {MOST_PARTITIONS}")
    return Scenario.from_json(line)


def _names(line: dict[str, Any], strategy: str | None) -> list[str]:
    if strategy == ALL:
        return list(STRATEGIES)
    name = strategy or line.get("strategy")
    if name is None:
        raise InputError("strategy: it is missing; name one with --strategy")
    if not isinstance(name, str) or name not in STRATEGIES:
        raise InputError(f'strategy: "{shown(str(name))}" is not known; there are {", ".join(STRATEGIES)}')
    return [name]


def _error(where: str, error: InputError) -> dict[str, str]:
    return {"class": type(error).__name__, "message": f"{where}: {error}"}


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What ``--json`` prints."""
    head = {"id": answer["id"]}
    if not answer.get("all"):
        given = next(iter(answer["strategies"].values()), None)
        return {**head, **_result(given), "error": answer["error"]}
    results = {}
    for name, given in answer["strategies"].items():
        failed = not isinstance(given, Assignment)
        results[name] = {**_result(given), "error": given if failed else None}
        if not failed:
            numbers = measured(answer["scenario"], given)
            results[name]["measure"] = {field: getattr(numbers, field) for field in numbers.__slots__}
    return {**head, "strategies": results, "error": answer["error"]}


def _result(given: Any) -> dict[str, Any]:
    if not isinstance(given, Assignment):
        return {"assignment": None}
    result: dict[str, Any] = {"assignment": given.to_dict()}
    if given.notes:
        result["notes"] = list(given.notes)
    if given.withheld is not None:
        result["withheld"] = {member: rows for member, rows in given.withheld.to_dict().items() if rows}
    return result
