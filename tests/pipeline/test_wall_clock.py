"""A clock that is set back has the stream started again, as Spark would stand still; any other step is none of its business."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import pytest

from kagent.pipeline import restarts
from kagent.pipeline.wall_clock import MOST_S, ClockSetBack, WallClock


@dataclass
class Clocks:
    """Both clocks of a machine."""

    wall_s: float = 1_700_000_000.0
    monotonic_s: float = 50.0

    def pass_s(self, seconds: float, step_s: float = 0.0) -> None:
        """Let this time pass; the wall clock makes a step meanwhile."""
        self.monotonic_s += seconds
        self.wall_s += seconds + step_s

    def watched(self) -> WallClock:
        return WallClock(lambda: self.wall_s, lambda: self.monotonic_s)


@pytest.mark.parametrize("step_s", [0.0, 600.0, 86_400.0, -MOST_S + 1])
def test_time_that_passes_and_a_clock_that_is_set_ahead_are_nothing(step_s: float) -> None:
    clocks = Clocks()
    clock = clocks.watched()

    clocks.pass_s(10.0, step_s)

    clock.check()


@pytest.mark.parametrize("ahead_s", [0.0, 86_400.0])
def test_a_clock_that_is_set_back_is_reported_once_also_one_that_was_ahead(ahead_s: float) -> None:
    clocks = Clocks()
    clock = clocks.watched()
    clocks.pass_s(1.0, ahead_s)
    clock.check()

    clocks.pass_s(1.0, -86_400.0)

    with pytest.raises(ClockSetBack, match=r"set back by 86,400 s, and Spark would wait for as long\."):
        clock.check()
    clocks.pass_s(1.0)
    clock.check()


def test_the_stream_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restarts, "pause_s", lambda failures: 0.0)
    stop, runs = threading.Event(), []

    def run() -> None:
        runs.append(1)
        if len(runs) == 2:
            stop.set()
            return
        raise ClockSetBack("This machine's clock was set back by 600 s.")

    with caplog.at_level(logging.WARNING, logger="kagent.pipeline"):
        restarts.kept(run, stop, once=False)

    assert len(runs) == 2
    assert "The stream stopped: This machine's clock was set back by 600 s. Starting again" in caplog.text
