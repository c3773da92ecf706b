"""Whatever stands in a setting's place: the sentence about it shows how to write it right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kagent.commands.settings import json_schema
from kagent.settings.schema_ways import ways_in
from tests.settings.test_forty_mistakes import checked

SCHEMA = json_schema()
WAYS = [way for way in ways_in(SCHEMA) if way[-1]]
SECTIONS = {way[:end] for way in WAYS for end in range(1, len(way))}
SHOWS_HOW = re.compile(
    r"did you mean|; write |the default is|such as|; there are: | or |left out|leave it out|in quotes|begin each|take out"
    r"|needs |set both|is missing; "
)
WRONG: list[Any] = [True, "nonsense!", -1, [1], {"a": 1}, "1 fortnight", "15 %", 1e9, "6066, 6067"]


def nested(ways: list[tuple[str, ...]], value: Any) -> dict[str, Any]:
    """The value in the place of each of these settings."""
    found: dict[str, Any] = {}
    for way in ways:
        at = found
        for step in way[:-1]:
            at = at.setdefault(step or "main", {})
        at[way[-1]] = value
    return found


def unhelpful(text: str, tmp_path: Path) -> list[str]:
    lines = [line for line in checked(text, tmp_path).splitlines() if "kagent.yaml:" in line]
    return [line for line in lines if "note: " not in line and not SHOWS_HOW.search(line)]


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_the_sentence_about_every_setting_shows_how_to_write_it(value: Any, tmp_path: Path) -> None:
    leaves = [way for way in WAYS if way not in SECTIONS]
    text = yaml.safe_dump(nested(leaves, value))

    assert len(leaves) > 80
    assert unhelpful(text, tmp_path) == []


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_the_sentence_about_every_section_shows_how_to_write_it(value: Any, tmp_path: Path) -> None:
    text = yaml.safe_dump(nested([way for way in SECTIONS if len(way) == 1], value))

    assert unhelpful(text, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("worker: {http: {login: basic}}", "did you mean token?"),
        ("worker: {web_port: '6066, 6067'}", "did you mean 6066 or 6067?"),
        ("pipeline: {metrics_port: 'localhost:9100'}", "did you mean 9100?"),
        ("pipeline: {history: true}", "must be a text such as /var/lib/kagent/history, not true"),
        ("pipeline: {options: nonsense}", "write such as {name: '…'}"),
        ("policy: {min_gain: 15}", "did you mean 0.15?"),
        ("policy: {min_gain: 20 percent}", "did you mean 0.2?"),
        ("policy: {severity: {skew: page}}", "did you mean rebalance?"),
        ("policy: {severity: nonsense}", "write such as {no_members: page}"),
        ("topics: {retention_hours: 1 fortnight}", "did you mean 14d?"),
        ("policy: {idle_after: 1 month}", "did you mean 30d?"),
        ("worker: {tick: 1 month}", "it may be at most 1h"),
        ("topics: {retention_hours: half an hour}", "it may be at least 1h"),
        ("clusters: {main: {}}", "is missing; write such as bootstrap: broker:9092"),
        ("alert: {destinations: {a: {type: webhook, url: x/y}}}", "such as https://alerts.example/hook"),
        ("groups: 7", "write such as [{match: 'orders-*'}]"),
        ("ignore: true", "write such as ['orders-*']"),
    ],
)  # fmt: skip
def test_a_value_of_another_form_is_answered_with_the_right_one(text: str, said: str, tmp_path: Path) -> None:
    assert said in checked(text, tmp_path)


def test_two_destinations_with_the_same_mistake_are_both_named_whatever_their_names(tmp_path: Path) -> None:
    both = (
        "alert:\n  destinations:\n    hook: {type: webhook, url: x}\n    am: {type: alertmanager, url: y}\n"
    )

    assert checked(both, tmp_path).count("must be an http:// or https:// address") == 2
