"""The example of ``docs/planner.md`` is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kagent.planner import plan
from kagent.planner.plan_answer import plain
from kagent.planner.problem_lines import problem_of

PAGE = Path(__file__).parents[2] / "docs" / "planner.md"


def test_the_page_shows_what_its_example_gives() -> None:
    asked, answered = (
        json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.S)
    )

    told = plain(asked["id"], plan(problem_of(asked)[0]), ())

    assert {name: told[name] for name in answered} == {
        **answered,
        "skew": {when: pytest.approx(skew) for when, skew in answered["skew"].items()},
    }
    described = set(re.findall(r"^\| `(\w+)", PAGE.read_text().split("## The answer")[1], re.M))
    assert set(told) - described <= {"id", "error", "notes", "greatest"}
