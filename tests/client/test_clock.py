"""Until when something holds is a time of day, with the date only where the time alone could mean another day."""

from __future__ import annotations

import re
import time

import pytest

from kagent.client.incident_text import clock

HOUR_MS = 3_600_000


@pytest.mark.parametrize("hours", [0.5, 2, 11.9])
def test_the_next_hours_need_no_date_before_midnight_or_after(hours: float) -> None:
    assert re.fullmatch(r"\d\d:\d\d", clock(round(time.time() * 1000 + hours * HOUR_MS)))


@pytest.mark.parametrize("hours", [25, 200])
def test_what_is_further_away_has_its_date(hours: float) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", clock(round(time.time() * 1000 + hours * HOUR_MS)))
