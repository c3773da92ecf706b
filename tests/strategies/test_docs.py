"""The examples of docs/strategies.md are true."""

from __future__ import annotations

import doctest
from pathlib import Path

from kagent.strategies import STRATEGIES

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"


def test_every_example_gives_what_the_page_says() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted > 30
    assert results.failed == 0


def test_every_strategy_has_its_row_and_its_section() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in STRATEGIES:
        assert f"\n## {name}\n" in text
        assert f"| `{name}` |" in text
