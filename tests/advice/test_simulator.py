"""Scenario files: those that ship are read, a short run of some of them is quiet or right, and mistakes are named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kagent.advice.simulator import load, run
from kagent.advice.simulator.scenario import parse
from kagent.errors import InputError

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks" / "scenarios").rglob("*.yaml"))


def scenario(name: str) -> Path:
    return next(f for f in FILES if f.stem == name)


def test_there_are_enough_of_them() -> None:
    made = [load(f) for f in FILES]

    assert sum(s.healthy for s in made) >= 12
    assert sum(not s.healthy for s in made) >= 8
    assert len({s.name for s in made}) == len(made)


@pytest.mark.parametrize(
    "name", ["auto-commit", "connect", "hourly-batch", "bursts", "transactional", "idle-topic"]
)
def test_healthy_groups_stay_quiet_for_some_hours(name: str) -> None:
    assert run(replace(load(scenario(name)), hours=2.5), seed=11).messages == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["static-skew", "poison-record", "too-few", "hanging-transaction"])
def test_sick_groups_are_called_what_they_are_within_ten_minutes(name: str) -> None:
    report = run(replace(load(scenario(name)), hours=1.2, follow=False), seed=12)

    assert report.right
    assert report.detected is not None
    assert report.detected <= 600
    assert report.flaps == 0


def test_the_same_seed_gives_the_same_ids() -> None:
    made = replace(load(scenario("hot-key")), hours=0.3)

    assert [m.id for m in run(made, 3).messages] == [m.id for m in run(made, 3).messages]


def test_the_scenario_in_the_docs_is_one() -> None:
    block = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "judgement.md").read_text(), re.DOTALL)
    assert block is not None

    assert run(parse(yaml.safe_load(block[1])), 1).right


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({}, "topics"),
        ({"topics": {"t": {"partitons": 3}}}, "partitons"),
        ({"topics": {"t": {}}, "members": 0}, "members"),
        ({"topics": {"t": {}}, "events": [{"at": 3}]}, "do"),
        ({"topics": {"t": {}}, "colour": "red"}, "colour"),
        ([], "names and values"),
    ],
)
def test_mistakes_are_named(raw: object, word: str) -> None:
    with pytest.raises(InputError, match=word):
        parse(raw)


def test_an_event_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match="explode"):
        run(parse({"topics": {"t": {}}, "hours": 0.1, "events": [{"at": 0, "do": "explode"}]}))
