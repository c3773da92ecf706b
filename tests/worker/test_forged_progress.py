"""Forged progress before the worker has asked its clusters anything, and after: each record is counted, and the true groups are judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kagent.contract.events import Beat, encode
from tests.worker.test_poison import Pipeline, counted, judged, page

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
SOURCES = 10_000
FORGED = 20
A_DAY_MS = 86_400_000
REFUSED = ('reason="no_such_partition",what="event"', 'reason="time_ahead",what="event"')


def forged(at: int, ahead_ms: int = 0) -> bytes:
    """Progress of a run that is none, on partitions that are not there, far beyond all that was read."""
    start = 10**9 * (at + 1)
    columns = [[start] * SOURCES, *([[start + 1] * SOURCES] * 3)]
    time_ms = int(time.time() * 1000) + ahead_ms
    return encode(Beat("main", time_ms, f"forged-{at}", 1.0, False, list(range(SOURCES)), *columns))


def refused(running: Any) -> int:
    found = counted(running)
    return sum(n for name, n in found.items() if any(reason in name for reason in REFUSED))


def test_forged_progress_costs_itself_from_the_first_record_on(kagent: Callable[..., Any]) -> None:
    running = kagent()
    running.topic("orders", 1)
    # The coordinator's topic, as on every cluster that has a group.
    running.commit("elsewhere", {("orders", 0): 0})
    running.start_worker()
    pipeline = Pipeline(running)
    try:
        running.eventually("the sound group is judged", lambda: judged(running))
        running.stop("worker")
        # They wait for it: all are read before its first sample.
        for at in range(FORGED):
            pipeline.send("kagent-group-events", forged(at), b"main")
        pipeline.producer.flush(30)
        running.start_worker()
        running.eventually("each is counted", lambda: refused(running) >= FORGED)
        running.eventually("the sound group is judged all the same", lambda: judged(running))

        for at in range(FORGED):
            pipeline.send("kagent-group-events", forged(FORGED + at, A_DAY_MS), b"main")
        pipeline.producer.flush(30)
        running.eventually("each of a time to come is counted too", lambda: refused(running) >= 2 * FORGED)
        running.eventually("the sound group is judged again", lambda: judged(running))
    finally:
        pipeline.stop()

    assert page(running, "/api/groups")[0] == 200
    assert running.processes["worker"].poll() is None
    assert "Traceback" not in running.log("worker")
