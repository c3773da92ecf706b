"""How far a lateness may be off that rests on samples of log ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.lateness import Curve, off_between_samples_s

S = 1000


def arrivals(before: float, after: float, at_s: float) -> Curve:
    """The log end each 30 s, where so many records/s came until a time, and then so many."""
    seconds = np.arange(0.0, 151.0, 30.0)
    return seconds * S, before * np.minimum(seconds, at_s) + after * np.maximum(0.0, seconds - at_s)


@given(st.floats(10, 2000), st.floats(10, 2000), st.floats(61, 89))
def test_a_time_that_is_read_between_two_samples_is_off_by_no_more_than_is_told(
    before: float, after: float, changed_s: float
) -> None:
    times, work = curve = arrivals(before, after, changed_s)
    read_ms = float(np.interp(before * changed_s, work, times))

    assert abs(read_ms / S - changed_s) <= off_between_samples_s(curve, read_ms) + 1e-6


def test_where_logs_grow_evenly_nothing_is_off() -> None:
    assert off_between_samples_s(arrivals(50.0, 50.0, 75.0), 75.0 * S) == pytest.approx(0, abs=1e-6)


def test_eight_times_the_inflow_from_one_moment_on_is_off_by_half_of_the_time_between_samples() -> None:
    assert off_between_samples_s(arrivals(50.0, 400.0, 82.0), 75.0 * S) == pytest.approx(30 * 0.478, abs=0.1)


@pytest.mark.parametrize("second", [-10.0, 200.0])
def test_beyond_the_samples_it_is_not_said_here(second: float) -> None:
    assert off_between_samples_s(arrivals(50.0, 400.0, 75.0), second * S) == 0.0
