"""What people write for a duration is understood where it can mean one or two lengths, and no other text is."""

from __future__ import annotations

import pytest

from kagent.duration_words import meant_s
from kagent.durations import to_hours, to_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("half an hour", [1800]),
        ("an hour and a half", [5400]),
        ("two and a half hours", [9000]),
        ("three quarters of an hour", [2700]),
        ("1/2 h", [1800]),
        ("twenty-five seconds", [25]),
        ("5 minutes or so", [300]),
        ("30 mns", [1800]),
        ("1h 30", [5400]),
        ("1 day, 12 hours", [129_600]),
        ("8-16", [8, 16]),
        ("5 to 10 minutes", [300, 600]),
        ("between 5s and 10s", [5, 10]),
        ("10:00", [600, 36_000]),
        ("00:30:00", [1800]),
        ("*/5 * * * *", [300]),
        ("0 */2 * * *", [7200]),
        ("30 8 * * *", [86_400]),
        ("@hourly", [3600]),
        ("@every 5m", [300]),
    ],
)
def test_a_duration_in_other_words_is_understood(text: str, seconds: list[float]) -> None:
    assert meant_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "5x", "5 apples", "1 jiffy", "2024-01-01", "3.11.2", "08:00-16:00", "0 8 1 1 *", "1e3s", "5s,10s"],
)  # fmt: skip
def test_what_may_be_no_length_of_time_is_not_taken_for_one(text: str) -> None:
    assert meant_s(text) == []


def test_the_suggestion_is_in_the_unit_of_the_field_and_is_itself_accepted() -> None:
    for of, text, near in (
        (to_seconds, "8-16", ["8s", "16s"]),
        (to_hours, "8-16", ["8h", "16h"]),
        (to_hours, "half an hour", ["30m"]),
    ):
        with pytest.raises(ValueError, match=f"did you mean {' or '.join(near)}\\?"):
            of(text)
        assert all(of(each) > 0 for each in near)
