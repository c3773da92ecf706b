"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from kagent.offsets.record_types_page import START, page

DOCUMENT = Path(__file__).parents[2] / "docs" / "offsets.md"


def test_the_page_lists_the_records_as_they_are_declared() -> None:
    _, _, listed = DOCUMENT.read_text(encoding="utf-8").partition(START)

    assert listed == page(), (
        "write the page again: python -m kagent.offsets.record_types_page docs/offsets.md"
    )


def test_the_examples_run() -> None:
    names: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)

    assert examples
    for example in examples:
        exec(example, names)
