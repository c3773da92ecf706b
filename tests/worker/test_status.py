"""One state message speaks for all workers, and silence of one of them is not health."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import msgspec
import orjson

from kagent.contract import admission
from kagent.contract.admission import IncidentRow
from kagent.contract.recommendation import MOST_INCIDENTS, from_bytes, to_bytes
from kagent.worker.status import Summary, state_message

WATCHING = Summary("main", 0, "a", 100_000, "watching", None, 99_000, judged=5, ignored=1, open=1)
OTHER = replace(WATCHING, partition=1, worker="b", oldest_progress=98_000)


def test_the_counts_of_all_partitions_add_up() -> None:
    state = state_message("main", [WATCHING, OTHER], 2, 100_000, 10)

    assert (state.status, state.judged, state.ignored, state.open, state.workers) == ("watching", 10, 2, 2, 2)
    assert state.oldest_progress == 98_000


def test_only_the_latest_summary_of_a_partition_counts() -> None:
    state = state_message(
        "main", [replace(WATCHING, time=99_000, judged=50), WATCHING, OTHER], 2, 100_000, 10
    )

    assert state.judged == 10


def test_a_partition_without_a_worker_is_blind() -> None:
    state = state_message("main", [WATCHING, replace(OTHER, time=60_000)], 2, 100_000, 10)

    assert state.status == "blind"
    assert "partition 1 " in (state.reason or "")
    assert (state.judged, state.blind) == (5, 5)


def test_the_worst_partition_speaks_for_the_cluster() -> None:
    state = state_message(
        "main", [WATCHING, replace(OTHER, status="catching_up", reason="behind")], 2, 100_000, 10
    )

    assert (state.status, state.reason) == ("catching_up", "behind")


def test_without_any_summary_it_is_blind() -> None:
    assert state_message("main", [], 2, 0, 10).status == "blind"


def test_where_workers_have_fallen_silent_it_says_since_when() -> None:
    """A worker that waits for a broker reports late: `not yet` would be false."""
    state = state_message(
        "main", [replace(WATCHING, time=60_000), replace(OTHER, time=50_000)], 2, 200_000, 10
    )

    assert (state.status, state.reason) == ("blind", "no worker has reported since 00:01:00 UTC")
    assert state_message("main", [], 2, 200_000, 10).reason == "no worker has reported yet"


def test_another_clusters_summaries_do_not_count() -> None:
    assert state_message("other", [WATCHING], 1, 100_000, 10).status == "blind"


def test_a_summary_comes_back_as_it_was() -> None:
    assert Summary.from_json({**WATCHING.to_json(), "newer": 1}) == WATCHING


def test_a_summary_comes_whole_over_the_ticks_topic() -> None:
    # A value of its own in each field that is left out by default: one that the reader does not know comes back empty.
    counts: dict[str, Any] = {
        f.name: n for n, f in enumerate(fields(Summary), 1) if f.type in ("int", "int | None")
    }
    reasons: dict[str, Any] = {f.name: f.name for f in fields(Summary) if f.type == "str | None"}
    sent = replace(WATCHING, **counts | reasons)

    read = admission.tick(orjson.dumps({"type": "summary", "summary": sent.to_json()}))

    assert isinstance(read, admission.SummaryTick)
    assert Summary.from_json(msgspec.structs.asdict(read.summary)) == sent


def test_it_carries_the_numbers_of_the_most_urgent_incidents() -> None:
    late = [IncidentRow(f"{n:03}", "ticket", 99_000, float(n), n) for n in range(150)]
    paged = IncidentRow("paged", "page", 99_000, None, None)
    first, second = replace(WATCHING, incidents=late), replace(OTHER, incidents=[paged])
    state = state_message("main", [first, second], 2, 100_000, 10)

    assert [each.id for each in state.incidents[:3]] == ["paged", "149", "148"]
    assert (state.incidents[1].seconds_behind, state.incidents[1].lag) == (149.0, 149)
    assert len(state.incidents) == MOST_INCIDENTS
    assert from_bytes(to_bytes(state)) == state


def test_of_a_partition_that_does_not_report_no_present_numbers_are_told() -> None:
    row = IncidentRow("old", "page", 60_000, 9.0, 9)
    state = state_message("main", [WATCHING, replace(OTHER, time=60_000, incidents=[row])], 2, 100_000, 10)

    assert state.incidents == []


def test_numbers_come_over_the_ticks_topic() -> None:
    sent = replace(WATCHING, incidents=(IncidentRow("a", "page", 99_000, 9.5, 9),))
    read = admission.tick(orjson.dumps({"type": "summary", "summary": sent.to_json()}))

    assert isinstance(read, admission.SummaryTick)
    assert Summary.from_json(msgspec.structs.asdict(read.summary)) == sent
