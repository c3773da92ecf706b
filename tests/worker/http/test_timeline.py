"""The past of a group: told once, in order, and bounded."""

from __future__ import annotations

from itertools import pairwise

from kagent.contract.recommendation import Outcome, Resolution, Status
from kagent.worker.http.timeline import EVENTS, Event, Milestones, events_between, merged, outline
from tests.worker.http.test_api import message
from tests.worker.http.test_server import NOW


def test_a_case_is_told_from_first_seen_to_followed() -> None:
    steps = [
        Milestones(generation=4),
        Milestones(generation=4, first_seen_ms=10),
        Milestones(generation=4, incident="01J", opened_ms=10),
        Milestones(generation=5, incident="01J", opened_ms=10, followed_ms=40, rebalanced_ms=39),
    ]

    told = [e for before, after in pairwise(steps) for e in events_between(before, after)]

    assert [(e.time_ms, e.what) for e in told] == [
        (10, "first_seen"),
        (40, "followed"),
        (39, "rebalanced"),
    ]
    assert [e.what for e in merged(told)] == ["first_seen", "rebalanced", "followed"]


def test_what_is_told_twice_is_one_event_and_only_the_newest_are_kept() -> None:
    events = [Event(n, "updated", "again", "01J") for n in range(EVENTS + 5)]

    kept = merged(events, events)

    assert [e.time_ms for e in kept] == list(range(5, EVENTS + 5))


def test_after_a_restart_the_message_gives_the_outline() -> None:
    resolved = message("plain", Status.RESOLVED, resolution=Resolution.DRAINED)

    assert [(e.time_ms, e.what) for e in outline(resolved)] == [(NOW - 60_000, "opened"), (NOW, "resolved")]
    assert outline(None) == []


def test_a_resolved_incident_tells_the_predicted_drain_and_the_measured_one() -> None:
    outcome = Outcome(predicted_drain_s=90.4, measured_drain_s=75.0)

    *_, resolved = outline(message("plain", Status.RESOLVED, resolution=Resolution.FOLLOWED, outcome=outcome))

    assert resolved.text.startswith("followed: ")
    assert resolved.text.endswith("Predicted to drain in 90 s, drained in 75 s.")
