"""Silence means healthy only while coverage says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.contract.admission import Refused, checked
from kagent.contract.events import Progress
from kagent.worker.ingest_progress import ENDS_REMEMBERED, Coverage, SourceProgress
from kagent.worker.pipeline_runs import RUNS_REMEMBERED


def beat(
    start: int, offset: int, log_end: int, at: int = 0, run: str = "r1", replay: bool = False
) -> Progress:
    return Progress("main", 7, start, offset, log_end, log_end, at * 1000, run, 1.0, replay)


def test_a_source_that_was_never_heard_is_blind() -> None:
    assert "no progress" in (Coverage().why_blind("main", 7, 0) or "")


def test_a_fresh_source_that_reached_the_end_is_seen() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    coverage.progress(beat(100, 100, 120, at=1))

    assert coverage.why_blind("main", 7, 1500) is None
    assert coverage.status("main", 1500) == ("watching", None)


def test_old_progress_is_blind() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))

    assert "60 s old" in (coverage.why_blind("main", 7, 60_000) or "")
    assert coverage.status("main", 60_000)[0] == "blind"


def test_progress_that_was_old_when_it_came_is_the_fault_of_a_clock() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100), arrived=600_000)
    assert coverage.why_blind("main", 7, 601_000) == (
        "the pipeline's last progress on __consumer_offsets-7 is 601 s old, and was 600 s old when it came: "
        "the clock of the pipeline's machine or that of the brokers is wrong"
    )

    coverage.progress(beat(100, 110, 110, at=700), arrived=701_000)
    assert coverage.why_blind("main", 7, 702_000) is None
    assert "clock" not in (coverage.why_blind("main", 7, 800_000) or "")


def test_a_source_short_of_what_stood_there_a_while_ago_is_catching_up() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 1000))
    assert "900 records behind" in (coverage.why_blind("main", 7, 0) or "")
    coverage.progress(beat(100, 900, 1100, at=11))

    assert "100 records behind" in (coverage.why_blind("main", 7, 11_000) or "")
    assert coverage.status("main", 11_000)[0] == "catching_up"


def test_a_pipeline_that_reports_and_reads_nothing_stands_still_and_is_not_catching_up() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    for second in range(2, 60, 2):
        coverage.progress(beat(100, 100, 100 + second, at=second))

    status, reason = coverage.status("main", 58_000)
    assert status == "blind"
    assert reason == (
        "the pipeline stands still on __consumer_offsets-7: 48 records wait, and none was read for 58 s"
    )
    coverage.progress(beat(100, 110, 170, at=60))
    assert coverage.status("main", 60_000)[0] == "catching_up"


def test_a_pipeline_that_was_idle_does_not_stand_still_from_then_on() -> None:
    coverage = Coverage()
    for second in range(600):
        coverage.progress(beat(100, 100, 100, at=second))
    for second in range(600, 615):
        coverage.progress(beat(100, 100, 200, at=second))

    assert coverage.status("main", 614_000) == (
        "catching_up",
        "the pipeline is 100 records behind on __consumer_offsets-7",
    )


def test_a_batch_under_way_is_not_behind() -> None:
    coverage = Coverage()
    for second in range(30):
        coverage.progress(beat(max(0, 100 * second - 100), 100 * second, 100 * second + 150, at=second))

    assert coverage.why_blind("main", 7, 29_000) is None


def test_a_skipped_stretch_is_a_gap_until_a_run_covers_it() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))

    assert coverage.progress(beat(150, 160, 160, at=1, run="r2"))
    assert "--replay" in (coverage.why_blind("main", 7, 1000) or "")
    coverage.progress(beat(0, 140, 160, at=1, run="x", replay=True))
    assert coverage.why_blind("main", 7, 1000) is not None
    coverage.progress(beat(140, 160, 160, at=1, run="x", replay=True))
    assert coverage.why_blind("main", 7, 1000) is None


def test_a_replay_with_a_hole_of_its_own_fills_nothing() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    coverage.progress(beat(150, 160, 160, run="r2"))

    coverage.progress(beat(0, 90, 160, run="x"))
    coverage.progress(beat(155, 160, 160, run="x"))

    assert ("main", 7) in coverage.gaps


def test_events_that_expired_unread_blind_every_source_until_the_replay() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    coverage.lose()
    coverage = Coverage.from_row(coverage.to_row())

    coverage.progress(beat(500, 500, 500, at=9, run="r1"))
    coverage.progress(beat(500, 510, 510, at=10, run="r1"))
    assert coverage.status("main", 10_000)[0] == "blind"
    coverage.progress(beat(0, 510, 510, at=10, run="x", replay=True))
    assert coverage.status("main", 10_000) == ("watching", None)


def test_only_a_replay_fills_a_gap() -> None:
    coverage = Coverage()
    coverage.lose()
    coverage.progress(beat(0, 500, 500))

    coverage.progress(beat(0, 400, 500, run="r2"))  # what a restarted pipeline says of work done long ago
    coverage.progress(beat(400, 500, 500, run="r2"))
    assert coverage.gaps == {("main", 7): (0, 500)}
    coverage.progress(beat(0, 500, 500, run="x", replay=True))

    assert coverage.gaps == {}


def test_gaps_outlive_the_process() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    coverage.progress(beat(150, 160, 160))

    assert Coverage.from_row(coverage.to_row()).gaps == {("main", 7): (100, 150)}


def test_a_restarted_pipeline_that_repeats_a_trigger_makes_no_gap() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    coverage.progress(beat(80, 120, 120, run="r2"))

    assert coverage.gaps == {}


def test_a_year_of_gaps_takes_no_more_memory_than_one() -> None:
    coverage = Coverage()
    for hour in range(24 * 365):
        end = hour * 100 + 99
        coverage.progress(beat(start=end - 49, offset=end, log_end=end, at=3600 * hour))

    assert coverage.gaps == {("main", 7): (99, 24 * 365 * 100 - 50)}
    assert len(coverage.runs["main", 7, False]) <= RUNS_REMEMBERED
    assert len(coverage.sources["main", 7].ends) <= 2


def test_a_burst_of_forged_records_of_other_runs_leaves_no_gap_behind() -> None:
    coverage = Coverage()
    coverage.progress(beat(0, 100, 100))
    coverage.progress(beat(100, 110, 110, at=1))
    for n in range(500):
        coverage.progress(beat(10**12 + n, 10**12 + n, 10**12 + n, at=1, run=f"forged{n}"))

    coverage.progress(beat(110, 120, 120, at=2))

    assert coverage.gaps == {}


def test_records_that_come_at_once_are_kept_as_few() -> None:
    coverage = Coverage()
    for n in range(1_000):
        coverage.progress(beat(n, n + 1, n + 1, at=n // 500))

    known = coverage.sources["main", 7]
    assert len(known.ends) <= ENDS_REMEMBERED
    assert max(end for _, end in known.ends) == 1_000


def test_a_record_takes_no_longer_for_the_gaps_of_other_sources() -> None:
    class Gaps(dict[tuple[str, int], tuple[int, int]]):
        def __iter__(self) -> Any:
            raise AssertionError("all gaps were looked at")

        keys = __iter__

    coverage = Coverage(gaps=Gaps({("main", n): (0, 9) for n in range(100, 200)}))

    assert not coverage.progress(beat(0, 1, 1))
    assert coverage.progress(Progress("main", 100, 0, 9, 9, 9, 0, "r1", 1.0, replay=True))


def test_a_source_that_was_named_once_is_forgotten_in_a_minute_whatever_trigger_it_named() -> None:
    coverage = Coverage()
    coverage.progress(Progress("main", 9_999, 0, 0, 0, 0, 0, "forged", 86_400.0))
    coverage.progress(beat(0, 1, 1, at=61))

    coverage.forget_strays(set(), 61_000)

    assert set(coverage.sources) == {("main", 7)}


def test_what_was_heard_of_sources_that_the_cluster_does_not_have_is_forgotten() -> None:
    coverage = Coverage(lost=True)
    for source in (7, 50, 9_999):
        coverage.progress(Progress("main", source, 0, 1, 1, 1, 0, "r1", 1.0))
    coverage.cut(("main", 60), 5, 0)
    coverage.progress(Progress("other", 60, 0, 1, 1, 1, 0, "r1", 1.0))

    assert coverage.forget_beyond("main", 50)

    kept = {("main", 7), ("other", 60)}
    assert set(coverage.sources) == set(coverage.gaps) == coverage.whole == kept
    assert not coverage.cuts
    assert {key[:2] for key in coverage.runs} == kept
    assert not coverage.forget_beyond("main", 50)


OFFSETS = st.integers(0, 400) | st.just(10**12)
FORGED = st.builds(
    lambda start, length, end, at: beat(start, start + length, start + length + end, at=at),
    OFFSETS,
    OFFSETS,
    OFFSETS,
    st.integers(95, 105),
)


@pytest.mark.slow
@given(st.lists(FORGED, min_size=1, max_size=5))
def test_records_forged_under_the_live_runs_id_neither_blind_for_long_nor_hide_a_later_loss(
    forged: list[Progress],
) -> None:
    coverage = Coverage()
    for at in range(100):
        coverage.progress(beat(at, at + 1, at + 1, at=at))
    for record in forged:
        coverage.progress(record)
    for at in range(100, 130):
        coverage.progress(beat(at, at + 1, at + 1, at=at))
    assert coverage.why_blind("main", 7, 130_000) is None

    coverage.progress(beat(150, 151, 151, at=130))

    assert "never reached the workers" in (coverage.why_blind("main", 7, 130_000) or "")


@pytest.mark.parametrize(
    "change", [{"lost": "a b"}, {"lost": 1}, {"whole": [[1, 2]]}, {"gaps": [["main", 7, 1]]}]
)
def test_a_row_of_another_shape_is_not_taken_for_a_loss(change: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        checked(lambda: Coverage.from_row({**Coverage().to_row(), **change}))


def test_a_row_that_lacks_a_column_is_read() -> None:
    assert Coverage.from_row({"gaps": [["main", 7, 1, 5]], "newer": 1}).gaps == {("main", 7): (1, 5)}


def test_a_wrong_log_end_is_forgotten_after_the_window_though_a_wrong_time_came_with_it() -> None:
    known = SourceProgress(0, 0, 1.0)
    now, hour = 10_000_000, 3_600_000
    for time, log_end in ((now, 10**6), (now + hour, 10), (now - hour, 10**6)):
        known.heard(Progress("main", 3, 5, 5, log_end, 5, time, "run", 1.0))

    for second in range(1, 14):
        known.heard(Progress("main", 3, 5, 5, 5, 5, now + 1000 * second, "run", 1.0))

    assert (known.behind, known.log_end) == (0, 5)
