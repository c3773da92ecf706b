"""Runs of the pipeline: which of them a record goes on with, however many there are."""

from __future__ import annotations

from kagent.contract.events import Progress
from kagent.worker.pipeline_runs import RUNS_REMEMBERED, Run, Runs


def record(start: int, offset: int, run_id: str = "true") -> Progress:
    return Progress("main", 7, start, offset, offset, offset, 0, run_id, 1.0)


def test_a_run_that_goes_on_is_looked_for_among_its_own_records_alone() -> None:
    class Forged(Run):
        def goes_on_with(self, p: Progress) -> bool:
            raise AssertionError("a run of another id was asked")

    runs = Runs()
    runs.heard(record(0, 5))
    for n in range(100):
        runs.heard(record(0, 9, f"forged-{n}"))
        runs._by_id[f"forged-{n}"].runs = [Forged("forged", 0, 9)]

    found = runs.heard(record(5, 8))

    assert (found.start, found.offset) == (5, 8)
    assert len(runs) == 101


def test_the_run_heard_longest_ago_is_dropped_first() -> None:
    runs = Runs()
    runs.heard(record(0, 5, "old"))
    runs.heard(record(0, 5))
    for n in range(RUNS_REMEMBERED - 1):
        runs.heard(record(0, 5, f"r{n}"))
        runs.heard(record(5, 5))

    assert len(runs) == RUNS_REMEMBERED
    assert runs.before(record(5, 6, "old")) is None
    assert runs.before(record(5, 6)) is not None


def test_what_runs_claim_beyond_the_end_is_taken_back_and_what_is_short_of_it_stays() -> None:
    runs = Runs()
    runs.heard(record(0, 5))
    runs.heard(record(90, 100, "forged"))

    runs.trim(50)

    assert (runs.reached(50), runs.reached(51)) == (5, 50)
    assert runs.before(record(100, 100, "forged")) is None


def test_the_furthest_is_forgotten_with_its_run() -> None:
    runs = Runs()
    runs.heard(record(0, 10**12, "forged"))
    for n in range(RUNS_REMEMBERED):
        runs.heard(record(0, 5, f"r{n}"))

    assert runs.reached(10**13) == 5


def test_in_a_year_of_holes_no_record_looks_at_the_stretches_before_it() -> None:
    class Read(Run):
        def goes_on_with(self, p: Progress) -> bool:
            raise AssertionError("a stretch that ended before the hole was asked")

    runs = Runs()
    for hour in range(100):
        runs.heard(record(100 * hour + 50, 100 * hour + 100))
        runs._by_id["true"].runs = [
            Read(run.run_id, run.start, run.offset) for run in runs._by_id["true"].runs
        ]

    assert len(runs) == 100
    assert runs.reached(10**6) == 100 * 100
