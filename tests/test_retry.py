"""The one back-off."""

from __future__ import annotations

from kagent.retry import pause_s


def test_the_pause_doubles_up_to_half_a_minute() -> None:
    assert [pause_s(failures) for failures in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
