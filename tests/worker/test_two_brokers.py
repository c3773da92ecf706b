"""One of two brokers is killed: coordinators and leaders move to the other, and nothing that was committed is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Key
from kagent.settings import Cluster
from tests.fixtures.two_brokers import Pair, start_pair
from tests.worker.test_poison import Pipeline, judged

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = start_pair(tmp_path)
    yield made
    made.stop()


def test_a_killed_broker_of_two_costs_no_commit_and_the_worker_goes_on(
    kagent: Callable[..., Any], pair: Pair
) -> None:
    running = kagent(broker=pair, topic_settings={"replication": 2})
    running.topic("orders", 1)
    pipeline = Pipeline(running)
    try:
        running.start_worker()
        running.eventually("the worker judges", lambda: judged(running))
        of_second = [topic for topic in ("kagent-group-events", "__transaction_state") if leads(pair, topic)]
        assert of_second, "nothing would move"

        pair.second.kill()
        before = pipeline.offset
        running.eventually("the table has what came since", lambda: kept(running) > before)
        running.eventually("the worker judges again", lambda: judged(running))
    finally:
        pipeline.stop()
    running.eventually("the table has all that came", lambda: kept(running) == pipeline.offset)
    assert running.processes["worker"].poll() is None


def leads(pair: Pair, topic: str) -> bool:
    """Whether the second broker leads a partition of this topic."""
    found = Admin(Cluster(bootstrap=pair.first.bootstrap)).topics([topic])
    return 2 in found[topic].leaders


def kept(running: Any) -> int:
    """The committed offset of the sound group in the lag table, as a read_committed reader sees it."""
    place: Key = ("orders", 0)
    found: int = running.lag_table().get("sound", {}).get(place, -1)
    return found
