"""A worker that is told to end does, whatever the cluster does; what it had not committed comes again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.fixtures.waiting import until
from tests.worker.test_poison import Pipeline, judged

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_a_worker_ends_though_no_broker_answers_and_its_successor_knows_all(
    kagent: Callable[..., Any],
) -> None:
    running = kagent()
    running.topic("orders", 1)
    running.start_worker()
    pipeline = Pipeline(running)
    try:
        running.eventually("the worker judges", lambda: judged(running))
        broker, worker = running.broker.pid, running.processes.pop("worker")
        os.killpg(broker, signal.SIGSTOP)
        try:
            worker.terminate()
            until(lambda: worker.poll() is not None, "the worker ends while the broker stands still")
        finally:
            os.killpg(broker, signal.SIGCONT)
            worker.kill()
        assert worker.returncode == 0
        running.start_worker()
        running.eventually("its successor judges", lambda: judged(running))
    finally:
        pipeline.stop()
    running.eventually("the table has all that came", lambda: kept(running) == pipeline.offset)


def kept(running: Any) -> int:
    """The committed offset of the sound group in the lag table, as a read_committed reader sees it."""
    found: int = running.lag_table().get("sound", {}).get(("orders", 0), -1)
    return found
