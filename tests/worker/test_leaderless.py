"""A broker that alone holds a part of ``__consumer_offsets`` is gone: what the others hold is read all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from kagent.group_key import source_partition
from kagent.offsets import OFFSETS_TOPIC
from tests.fixtures.two_brokers import Pair, lay_out_offsets, start_pair

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
PARTITIONS = 2


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Each broker leads one partition of the source, and nobody else holds it."""
    made = start_pair(tmp_path, {"offsets.topic.num.partitions": str(PARTITIONS)})
    lay_out_offsets(made.bootstrap, [[1], [2]])
    yield made
    made.stop()


def name_in(partition: int) -> str:
    return next(n for n in (f"group-{i}" for i in count()) if source_partition(n, PARTITIONS) == partition)


def commits_in_events(running: Any) -> set[tuple[str, int]]:
    """Group and offset of every commit that an event tells of."""
    found = set()
    for _, value in running.read("kagent-group-events"):
        messages = orjson.loads(value or b"[]")
        for message in messages if isinstance(messages, list) else [messages]:
            for topic in message.get("offsets", []):
                found |= {(message["group"], offset) for offset in topic["committed"] if "group" in message}
    return found


def test_groups_of_the_other_partitions_are_watched_while_one_has_no_leader(
    kagent: Callable[..., Any], pair: Pair
) -> None:
    running = kagent(broker=pair, topic_settings={"replication": 2})
    running.topic("orders", 1)
    here, there = name_in(0), name_in(1)
    running.start_pipeline()
    for group in (here, there):
        running.commit(group, {("orders", 0): 1})
    running.eventually("both are read", lambda: commits_in_events(running) >= {(here, 1), (there, 1)})

    pair.second.kill()
    running.commit(here, {("orders", 0): 2})
    running.eventually("the one that is led is read", lambda: (here, 2) in commits_in_events(running), 90)
    running.eventually(
        "the other is named", lambda: f"No broker leads {OFFSETS_TOPIC}-1" in running.log("pipeline")
    )

    pair.second.start()
    running.commit(there, {("orders", 0): 3})
    running.eventually("both are read again", lambda: (there, 3) in commits_in_events(running))
    assert running.log("pipeline").count("Starting again") == 0
