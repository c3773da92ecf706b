"""The history of log ends brackets what it did not see and forgets slowly."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.lag.log_ends import UNKNOWN, EndHistory


def watched(seconds: int, rate: float = 10.0, every: int = 5) -> EndHistory:
    history = EndHistory(2)
    for at in range(0, seconds, every):
        history.add(at * 1000, at * 1000 + 20, [0, 0], [int(at * rate), int(at * rate * 8)])
    return history


def test_the_end_at_a_commit_lies_between_the_samples_around_it() -> None:
    low, high = watched(60).bracket(np.array([0, 1]), np.array([22_000, 22_000]))

    assert (low.tolist(), high.tolist()) == ([200, 1600], [250, 2000])


def test_before_the_first_and_after_the_last_sample_nothing_is_known() -> None:
    low, high = watched(60).bracket(np.array([0, 0]), np.array([-1, 60_000]))

    assert (low.tolist(), high.tolist()) == ([UNKNOWN, 550], [0, UNKNOWN])


@given(st.lists(st.integers(0, 500), min_size=3, max_size=60), st.data())
@settings(max_examples=60, deadline=None)
def test_the_true_end_always_lies_within(grown: list[int], data: st.DataObject) -> None:
    ends = np.cumsum(grown)
    history = EndHistory(1)
    for at in range(0, len(ends), data.draw(st.integers(1, 5))):
        history.add(at * 1000, at * 1000, [0], [int(ends[at])])
    moment = data.draw(st.integers(0, len(ends) - 1))

    low, high = history.bracket(np.array([0]), np.array([moment * 1000]))

    assert low[0] <= ends[moment]
    assert high[0] == UNKNOWN or high[0] >= ends[moment]


@pytest.mark.slow
def test_old_samples_thin_out_and_a_day_costs_a_few_hundred() -> None:
    history = watched(86_400)

    assert history.samples < 300
    assert history.first < 60_000
    assert history.rates().tolist() == [10.0, 80.0]


def test_samples_of_a_clock_that_was_ahead_are_forgotten_once_it_is_set_back() -> None:
    history = EndHistory(1)
    for second in (10, 20, 86_400, 86_410):
        history.add(second * 1000 - 1, second * 1000, [0], [second])

    history.add(29_999, 30_000, [0], [30])

    assert (history.samples, history.last, history.end.tolist()) == (3, 30_000, [30])
    low, high = history.bracket(np.array([0]), np.array([25_000]))
    assert (low.tolist(), high.tolist()) == ([20], [30])


def test_a_sample_that_arrives_late_changes_nothing() -> None:
    history = EndHistory(1)
    history.add(9_999, 10_000, [0], [10])
    history.add(4_999, 5_000, [0], [5])

    assert (history.samples, history.last, history.end.tolist()) == (1, 10_000, [10])


def test_time_lag_counts_from_the_sample_that_first_lay_beyond() -> None:
    age, beyond = watched(60).age(np.array([0, 0, 1]), np.array([550, 200, -5]), 60_000)

    assert np.round(age, 2).tolist() == [0.0, 34.98, 59.98]
    assert beyond.tolist() == [False, False, True]


def test_a_topic_created_anew_starts_a_history_of_its_own() -> None:
    history = watched(60)
    history.add(60_000, 60_020, [0, 0], [3, 5], topic_id="another")

    assert (history.born, history.samples, history.end.tolist()) == (60_000, 1, [3, 5])


def test_a_partition_that_could_not_be_asked_keeps_what_was_known() -> None:
    history = watched(60)
    history.add(60_000, 60_020, [UNKNOWN, 7], [UNKNOWN, 5000])

    assert (history.end.tolist(), history.start.tolist()) == ([550, 5000], [0, 7])


def sampled(history: EndHistory, at_s: int, ends: list[int]) -> list[int]:
    """The ends that are known after this sample."""
    history.add(at_s * 1000, at_s * 1000 + 20, [0, 0], ends)
    return [int(end) for end in history.end]


def test_an_end_that_stays_less_than_it_was_is_believed_after_a_while() -> None:
    history = watched(60)

    assert sampled(history, 60, [500, 5000]) == [550, 5000]
    assert sampled(history, 65, [500, 5000]) == [550, 5000]
    assert sampled(history, 70, [500, 5000]) == [500, 5000]
    low, high = history.bracket(np.array([0]), np.array([57_000]))
    assert (low.tolist(), high.tolist()) == ([500], [500]), "no sample may lie beyond the end of now"
    assert sampled(history, 75, [510, 5000]) == [510, 5000]


def test_an_older_end_of_a_leader_of_before_takes_nothing_back() -> None:
    history = watched(60)
    sampled(history, 60, [500, 5000])
    sampled(history, 65, [560, 5000])

    assert sampled(history, 71, [500, 5000]) == [560, 5000]


def test_a_partition_that_cannot_be_asked_for_a_while_has_not_lost_its_end() -> None:
    history = watched(60)
    for at in range(60, 90, 5):
        assert sampled(history, at, [UNKNOWN, 5000])[0] == 550


def test_added_partitions_begin_at_zero() -> None:
    history = watched(60)
    history.add(60_000, 60_020, [0, 0, 0], [600, 4800, 40])

    assert history.bracket(np.array([2]), np.array([57_000]))[0].tolist() == [0]


def test_the_row_keeps_what_matters_and_stays_small() -> None:
    history = watched(7200)
    row = orjson.loads(orjson.dumps(history.to_row()))
    again = EndHistory.from_row(row)

    assert again.bracket(np.array([1]), np.array([7_192_000])) == history.bracket(
        np.array([1]), np.array([7_192_000])
    )
    wide = EndHistory(10_000)
    for at in range(200):
        wide.add(at * 60_000, at * 60_000, np.zeros(10_000), np.full(10_000, 10**9 + at))
    assert len(orjson.dumps(wide.to_row())) < 900_000


def test_how_late_a_record_was_lies_between_the_samples_and_before_the_first_one_is_guessed() -> None:
    history = EndHistory(2)
    for at in range(4):
        history.add(at * 30_000, at * 30_000, [0, 0], [1000 + 300 * at, 50 * at])

    late, guessed = history.late(
        np.array([0, 0, 1]), np.array([1150, 800, 150]), np.array([90_000, 90_000, 90_000])
    )

    assert late.tolist() == [75.0, 110.0, 0.0]
    assert guessed.tolist() == [False, True, False]


@given(st.integers(0, 400), st.integers(0, 500), st.integers(0, 500))
@settings(max_examples=60, deadline=None)
def test_as_if_records_came_later_every_log_end_is_that_of_so_long_before(
    by_s: int, now_s: int, ago_s: int
) -> None:
    history, both = watched(500), np.array([0, 1])
    delayed = history.delayed(by_s * 1000, now_s * 1000)
    then = max(0, now_s - ago_s) * 1000

    assert delayed.last <= max(now_s * 1000, by_s * 1000 + 20)
    if then <= delayed.last and then - by_s * 1000 >= history.first:
        low, _ = delayed.bracket(both, np.array([then, then]))
        assert low.tolist() == history.bracket(both, np.array([then - by_s * 1000] * 2))[0].tolist()
    assert (history.end >= delayed.end).all()


@pytest.mark.parametrize("horizon", [5_000, 60_000, 120_000])
@given(
    grown=st.lists(st.integers(0, 50), min_size=2, max_size=80) | st.just([50] * 80),
    more=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 12)), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_no_rate_of_the_next_samples_falls_below_the_least_rate(
    horizon: int, grown: list[int], more: list[tuple[int, int]]
) -> None:
    history, end, now = EndHistory(1), 0, 1_700_000_000_000
    for records in grown:
        end, now = end + records, now + 5_000
        history.add(now, now, [0], [end])
    least, until = history.least_rates(horizon), now + horizon

    for records, seconds in more:
        end, now = end + records, now + seconds * 1000
        if now > until:
            break
        history.add(now, now, [0], [end])
        assert (history.rates() >= least - 1e-9).all()


def test_growth_is_counted_apart_from_what_else_a_sample_changes() -> None:
    history = EndHistory(1, "id")
    history.add(0, 20, [0], [10])
    known = (history.growths, history.revisions)

    history.add(5_000, 5_020, [0], [10])
    assert (history.growths, history.revisions) == known
    history.add(10_000, 10_020, [UNKNOWN], [UNKNOWN])
    assert (history.growths, history.revisions) == known
    history.add(15_000, 15_020, [0], [11])
    assert (history.growths, history.revisions) == (known[0] + 1, known[1])
    history.add(20_000, 20_020, [4], [11])
    assert (history.growths, history.revisions) == (known[0] + 1, known[1] + 1)
    before = history.revisions
    history.add(25_000, 25_020, [0, 0], [11, 0])
    assert history.revisions > before
    before = history.revisions
    history.add(30_000, 30_020, [0, 0], [11, 0], topic_id="another")
    assert history.revisions > before
    before = history.revisions
    history.add(90_000, 90_020, [0, 0], [11, 0])
    history.add(29_000, 29_020, [0, 0], [11, 0])
    assert history.revisions > before
