"""Skew is never overstated, and costs and speeds turn records into work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagent.advice.rates import Busy
from kagent.advice.verdicts import findings

Make = Callable[..., Any]
TWO = {"m0": {"t": [0]}, "m1": {"t": [1]}}


@given(
    rates=st.lists(st.integers(1, 2000), min_size=2, max_size=2),
    age=st.floats(0, 14),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_caught_up_members_have_no_skew_whatever_their_inflow_and_the_age_of_their_commits(
    group: Make, rates: list[int], age: float
) -> None:
    parts = [{"end": 10_000_000, "rate": rate, "lag": 0, "age": age} for rate in rates]
    look = group({"t": parts}, TWO).look()

    assert look.load.skew == 1.0
    assert findings(look) == []


@given(lags=st.lists(st.integers(1000, 10**6), min_size=2, max_size=2))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_skew_is_at_most_the_true_one(group: Make, lags: list[int]) -> None:
    parts = [{"end": 10_000_000, "rate": 50, "lag": lag} for lag in lags]

    assert group({"t": parts}, TWO).look().load.skew <= max(lags) * 2 / sum(lags) + 1e-9


def test_dear_records_weigh_more_than_many_cheap_ones(group: Make) -> None:
    topics = {
        "cheap": [{"end": 10_000_000, "rate": 1000, "lag": 100_000}],
        "dear": [{"end": 10_000_000, "rate": 10, "lag": 10_000}],
    }
    members = {"m0": {"cheap": [0]}, "m1": {"dear": [0]}}
    busy = {
        "app-m0/10.0.0.1": Busy(100, 10, {"cheap": 100_000.0}),
        "app-m1/10.0.0.1": Busy(100, 10, {"dear": 1000.0}),
    }
    known, unknown = group(topics, members).look(busy=busy), group(topics, members).look()

    assert known.names[known.load.greatest] == "app-m1/10.0.0.1"
    assert known.load.low[1] == pytest.approx(1000, rel=0.02)
    assert (known.load.unit, known.load.exact) == ("seconds", True)
    assert unknown.names[unknown.load.greatest] == "app-m0/10.0.0.1"
    assert (unknown.load.unit, unknown.load.exact) == ("records", False)


def test_time_behind_is_never_more_than_the_age_of_the_oldest_unread_record(group: Make) -> None:
    burst = [{"end": 10_000_000, "rate": 100, "lag": 60_000}, {"end": 10_000_000, "rate": 100, "lag": 0}]
    look = group({"t": burst}, TWO).look()

    assert look.load.behind[0] <= look.age[0] + 1e-9
    assert look.load.behind[1] == 0
