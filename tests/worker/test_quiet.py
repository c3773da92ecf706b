"""Caught-up groups never open, however seldom they commit and however unequal their inflow: on the real pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=2)]

WATCHED_SECONDS = 75
"""Two commits of the group that commits every 30 s, and as many judgements of it in between as a tick a second gives."""


def test_caught_up_groups_with_unequal_inflow_never_open(kagent: Callable[..., Any]) -> None:
    running = kagent()
    running.topic("clicks", 2)
    for every in (1.0, 5.0, 30.0):
        for place in (0, 1):
            start = ((("clicks", 0),), (("clicks", 1),))
            running.member(f"every-{every:.0f}s", place, ("clicks",), start=start, commit=every)
    running.load("clicks", [5.0, 40.0])
    running.start_pipeline()
    running.start_worker()
    running.wait_until_watching()

    until = time.monotonic() + WATCHED_SECONDS
    judged = 0
    while time.monotonic() < until:
        state = running.state()
        judged = max(judged, state.judged if state else 0)
        assert running.history() == []
        time.sleep(2)

    assert judged == 3
    assert {f"every-{n}s" for n in (1, 5, 30)} <= set(running.committed())
