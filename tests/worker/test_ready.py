"""No event is applied before the rows of its partition have been read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.errors import KafkaError
from kagent.settings import Cluster, Settings, Topics
from kagent.testing import memory_tables

if TYPE_CHECKING:
    from kagent.worker.process import Worker

NOW = 1_700_000_000_000


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker to which partition 0 was assigned, and whose tables are still being recovered."""
    from kagent.worker import ownership, process

    async def published(*_: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(ownership, "current", published)
    settings = Settings(clusters={"main": Cluster(bootstrap="127.0.0.1:1")}, topics=Topics(partitions=1))
    tables: Any = memory_tables()
    made = process.Worker(settings, "main", tables, clock=lambda: NOW / 1000)
    made.clusters.by_cluster.clear()  # no cluster is here to be asked
    monkeypatch.setattr(made.ownership, "owned", lambda: {0})
    monkeypatch.setattr(made.ownership, "committed", lambda: {0: 7})
    made.app.rebalancing, made.app.in_recovery = False, True
    return made


def message(offset: int, committed: int) -> Any:
    commit = TopicOffsets("orders", None, [0], [committed], [NOW], [committed])
    return event_message(offset, GroupEvent("main", "g", 0, NOW, [commit]))


def progress_message(offset: int, source: int, time_ms: int) -> Any:
    return event_message(offset, Beat("main", time_ms, "run", 1.0, False, [source], [0], [9], [9], [9]))


def event_message(offset: int, event: GroupEvent | Beat) -> Any:
    value = encode(event)
    return SimpleNamespace(
        topic="e",
        partition=0,
        offset=offset,
        value=value,
        key=b"main/g",
        timestamp=NOW / 1000,
        timestamp_type=0,
    )


@pytest.mark.slow
async def test_an_event_waits_for_recovery_and_an_older_one_replaces_no_row(worker: Worker) -> None:
    waiting = asyncio.create_task(worker.event_reader.take(message(7, 5)))
    await asyncio.sleep(0)
    assert worker.desk.group_count == 0

    writer = SimpleNamespace(**vars(worker.desk.tables))  # recovery fills the tables meanwhile
    from kagent.worker.groups import Index

    earlier = Index(writer)
    earlier.take(0, GroupEvent("main", "g", 0, NOW, [TopicOffsets("orders", None, [0], [9], [NOW], [9])]))
    worker.ownership.recovered()
    worker.app.in_recovery = False
    await asyncio.wait_for(waiting, 10)

    assert list(worker.desk.index.entries(0)["main/g"].commits["orders"].committed) == [9]


@pytest.mark.slow
async def test_an_event_behind_a_gap_is_applied_though_the_cluster_cannot_be_asked_about_the_gap(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(partition: int) -> int:
        raise KafkaError("The cluster at 127.0.0.1:1 cannot be reached.")

    monkeypatch.setattr(worker.event_reader, "_log_start", away)
    worker.app.in_recovery = False
    await worker.event_reader.take(message(7, 5))

    await worker.event_reader.take(message(9, 8))

    assert list(worker.desk.index.entries(0)["main/g"].commits["orders"].committed) == [8]


@pytest.mark.slow
async def test_groups_are_built_anew_after_every_recovery(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.app.in_recovery = False
    await worker.event_reader.take(message(7, 5))
    seldom = TopicOffsets("orders", None, [0], [1], [NOW], [1])
    from kagent.worker.groups import Index

    Index(worker.desk.tables).take(0, GroupEvent("main", "seldom", 0, NOW, [seldom]))

    monkeypatch.setattr(worker.ownership, "committed", lambda: {0: 8})  # the rows of event 7 were committed
    worker.ownership.recovered()
    await worker.event_reader.take(message(8, 6))

    assert set(worker.desk.index.entries(0)) == {"main/g", "main/seldom"}


async def test_an_event_of_a_partition_that_went_away_is_left_to_its_owner(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.app.in_recovery = False
    monkeypatch.setattr(worker.ownership, "owned", set)

    await worker.event_reader.take(message(7, 5))

    assert worker.desk.counts["events"] == 0


@pytest.mark.slow
async def test_a_spare_worker_is_ready_once_the_first_rebalance_has_ended(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.app.in_recovery = False
    monkeypatch.setattr(worker.ownership, "owned", set)

    await worker.tick_reader.send()
    before = worker.ready

    worker.ownership.recovered()
    await worker.tick_reader.send()
    assert (before, worker.ready) == (False, True)
    assert worker.health()[0]


@pytest.mark.slow
async def test_a_worker_whose_partitions_went_away_shows_their_groups_no_longer(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.app.in_recovery = False
    worker.ownership.recovered()
    await worker.event_reader.take(message(7, 5))
    assert worker.desk.group_count == 1

    monkeypatch.setattr(worker.ownership, "owned", set)
    worker.ownership.recovered()
    await worker.tick_reader.send()

    assert (worker.loaded, worker.desk.group_count) == (set(), 0)
    assert worker.health()[0]


@pytest.mark.slow
async def test_a_loaded_partition_is_judged_once_all_that_is_heard_of_it_is_fresh(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    async def send(value: bytes, partition: int) -> None:
        sent.append(partition)

    monkeypatch.setattr(worker.ticks, "send", send)
    worker.app.in_recovery = False
    counts = []
    for offset, (source, age_ms) in enumerate([(0, 40_000), (1, 40_000), (0, 0), (1, 0), (0, 0)], start=7):
        await worker.event_reader.take(progress_message(offset, source, NOW - age_ms))
        await worker.tick_reader.send_first(0)
        counts.append(len(sent))

    assert counts == [0, 0, 0, 1, 1]
