"""Since when a worker has been awake."""

from __future__ import annotations

import pytest

from kagent.worker.presence import Presence

MINUTE_MS, DAY_MS = 60_000, 86_400_000


def test_ticks_one_after_another_are_one_presence() -> None:
    presence = Presence(longest_ms=MINUTE_MS)
    for now_ms in range(DAY_MS, DAY_MS + 10 * MINUTE_MS, MINUTE_MS):
        presence.tick(now_ms)

    assert presence.since_ms == DAY_MS


@pytest.mark.parametrize("later_ms", [DAY_MS + MINUTE_MS + 1, 3 * DAY_MS, DAY_MS - 1, 0])
def test_a_sleep_and_a_leap_of_the_clock_in_either_direction_begin_another(later_ms: int) -> None:
    presence = Presence(longest_ms=MINUTE_MS)
    presence.tick(DAY_MS)
    presence.tick(later_ms)

    assert presence.since_ms == later_ms
