"""The last hour in memory: bounded, never out of order, and what the page draws of it."""

from __future__ import annotations

import math
import sys

from hypothesis import given
from hypothesis import strategies as st

from kagent.worker.http.series import COARSE_S, FINE_S, HOUR_S, SPARK_POINTS, Series, SeriesStore

NOW_S = 1_700_000_000


@given(st.lists(st.tuples(st.integers(0, 900), st.booleans()), min_size=1, max_size=200))
def test_points_are_in_order_within_the_hour_and_the_last_one_is_the_present(
    steps: list[tuple[int, bool]],
) -> None:
    series, time_s = Series(1), NOW_S
    for n, (step, fine) in enumerate(steps):
        time_s += step
        series.add(time_s, (float(n),), FINE_S if fine else COARSE_S)

    times = list(series.times)
    assert times == sorted(set(times))
    assert times[0] >= time_s - HOUR_S
    assert (times[-1], series.values[-1]) == (time_s, float(len(steps) - 1))
    assert len(series.values) == len(times) <= HOUR_S // FINE_S + 1


def test_a_value_that_is_not_known_is_no_number() -> None:
    series = Series(2)
    series.add(NOW_S, (math.nan, 2.0), FINE_S)

    assert series.to_json(("a", "b")) == {"time_s": [NOW_S], "a": [None], "b": [2.0]}


def test_a_spark_has_the_greatest_value_of_each_stretch() -> None:
    series = Series(1)
    for second, value in ((0, 1.0), (30, 5.0), (HOUR_S - 1, 2.0)):
        series.add(NOW_S + second, (value,), FINE_S)

    spark = series.spark(NOW_S + HOUR_S - 1)

    assert (spark[0], spark[-1], len(spark)) == (5.0, 2.0, SPARK_POINTS)
    assert set(spark[1:-1]) == {None}


def test_drain_is_inflow_less_what_the_lag_grew_by() -> None:
    store = SeriesStore()
    for n, lag in enumerate((1000.0, 900.0, 1400.0)):
        store.note_members("g", NOW_S + 10 * n, {"m": (lag, 0.0, 100.0)})

    assert store.to_json("g")["members"]["m"]["drain_per_s"] == [None, 110.0, 50.0]


def test_members_are_kept_up_to_a_number_of_values_and_no_longer_than_an_hour() -> None:
    store = SeriesStore(most_values=10)
    store.note_members("a", NOW_S, {f"m{n}": (1.0, 1.0, 1.0) for n in range(5)})
    store.note_members("b", NOW_S, {"m": (1.0, 1.0, 1.0)})
    assert set(store.members) == {"a"}

    store.note_members("a", NOW_S + HOUR_S + 1, {"m0": (1.0, 1.0, 1.0)})
    assert set(store.members["a"]) == {"m0"}
    store.quiet("a", NOW_S + 3 * HOUR_S)
    assert store.members == {}


def test_an_hour_of_a_quiet_group_takes_less_than_two_kilobytes() -> None:
    series = Series(3)
    for minute in range(120):
        series.add(NOW_S + 60 * minute, (1.0, 2.0, 3.0), COARSE_S)

    parts = (series, series.times, series.values)
    assert sum(sys.getsizeof(part) for part in parts) < 2_000
