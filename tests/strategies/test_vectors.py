"""Every case that Kafka's own Java classes answered gets the same answer here, lists in the same order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kagent.strategies import STRATEGIES, Scenario, assign

DATA = Path(__file__).parent / "data"


def cases(name: str) -> list[Any]:
    lines = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    return [pytest.param(line, id=f"{line['id']}-{line['strategy']}") for line in lines]


def lists(line: dict[str, Any]) -> dict[str, list[list[Any]]]:
    given = assign(line["strategy"], Scenario.from_json(line)).to_dict()
    return {member: [list(row) for row in rows] for member, rows in given.items()}


GOLDEN = [*cases("golden_public.jsonl"), *cases("golden_more.jsonl")]


@pytest.mark.parametrize("line", [case for case in GOLDEN if case.values[0]["strategy"] in STRATEGIES])
def test_gives_what_kafka_gives(line: dict[str, Any]) -> None:
    if line["anomalies"]:
        return  # tests/strategies/test_bugs.py says what happens instead
    if line["strategy"].startswith("kip848"):
        given, expected = (
            {member: sorted(rows) for member, rows in side.items()}
            for side in (lists(line), line["expected"])
        )
        assert given == expected
    else:
        assert lists(line) == line["expected"]


@pytest.mark.parametrize("line", cases("lag_public.jsonl"))
def test_gives_what_the_lag_based_assignor_gives(line: dict[str, Any]) -> None:
    assert lists(line) == line["expected"]


@pytest.mark.parametrize("line", cases("fair_public.jsonl"))
def test_gives_what_the_fair_assignor_gives(line: dict[str, Any]) -> None:
    assert lists(line) == line["expected"]
