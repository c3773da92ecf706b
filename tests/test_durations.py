"""Durations are read with and without a unit, and refused by a sentence."""

from __future__ import annotations

import pytest

from kagent.durations import to_hours, to_seconds, to_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60),
        ("5m", 300),
        ("5 min", 300),
        ("15 minutes", 900),
        ("1second", 1),
        ("90 sec", 90),
        ("2 hours", 7200),
        ("7 days", 604800),
        ("2h", 7200),
        ("1d", 86400),
        ("250ms", 0.25),
        ("90", 90),
        (1.5, 1.5),
    ],
)
def test_a_duration_has_a_unit_or_is_seconds(text: object, seconds: float) -> None:
    assert to_seconds(text) == seconds


@pytest.mark.parametrize("text", ["soon", "5x", "", True, None, [], float("inf"), "1 fortnight", "5m5"])
def test_what_is_no_duration_is_refused_with_examples(text: object) -> None:
    with pytest.raises(ValueError, match="90s, 5m, 2h or 1d"):
        to_seconds(text)


def test_hours_are_converted_only_where_a_unit_says_so() -> None:
    assert [to_hours(24), to_hours("24"), to_hours("7d"), to_hours("30m")] == [24, 24, 168, 0.5]


@pytest.mark.parametrize("seconds", [0.25, 1.0, 90.0, 300.0, 7200.0, 86400.0])
def test_a_written_duration_is_read_as_itself(seconds: float) -> None:
    assert to_seconds(to_text(seconds)) == seconds
