"""Numbers in words become figures, and the other words stay."""

from __future__ import annotations

import pytest

from kagent.number_words import in_digits


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("half an hour", "0.5 hour"),
        ("a half hour", "0.5 hour"),
        ("a dozen", "12"),
        ("two hundred", "200"),
        ("twenty five", "25"),
        ("Twenty-Five", "25"),
        ("one and a half", "1.5"),
        ("3/4", "0.75"),
        ("1/2/2024", "1/2/2024"),
        ("often", "often"),
        ("tone", "tone"),
        ("9100/tcp", "9100/tcp"),
    ],
)
def test_number_words_become_figures(text: str, figures: str) -> None:
    assert in_digits(text) == figures
