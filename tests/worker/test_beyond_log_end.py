"""Records that stand where ``__consumer_offsets`` has nothing cost no group more than the freshness window and a question to its coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from kagent.contract.admission import INT64
from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, TopicTombstones, encode
from kagent.worker.engine import GroupEngine
from kagent.worker.status import Summary
from tests.worker.http.test_server import membership
from tests.worker.test_engine import desk, log_end, tables

SOURCE = 3
FORGED: dict[str, dict[str, Any]] = {
    "a commit": {"offsets": [TopicOffsets("orders", None, [0], [5], [1], [INT64])]},
    "a tombstone": {"tombstones": [TopicTombstones("orders", [0], [INT64])]},
}


class World:
    """A worker, and a group that commits every second; ``base``: where the log of its source begins."""

    def __init__(self, rows: Any = None, base: int = 0) -> None:
        self.worker: GroupEngine = desk(rows)
        self.base, self.place, self.second = base, 0, 0

    def take(self, value: bytes) -> None:
        self.worker.take(0, self.place, value)
        self.place += 1

    def run(self, seconds: int) -> Summary:
        clock: Any = self.worker.context.clock
        for _ in range(seconds):
            clock.advance(1)
            self.second += 1
            now, at = self.worker.now, self.base + self.second
            self.take(
                encode(
                    GroupEvent(
                        "main", "g", SOURCE, now, [TopicOffsets("orders", None, [0], [at], [now], [at])]
                    )
                )
            )
            self.take(encode(self.progress(SOURCE, at)))
            log_end(self.worker, self.base + 1000)
            (found,) = asyncio.run(self.worker.tick(0, now))
        return found

    def progress(self, source: int, at: int) -> Beat:
        ends = [at + 1]
        return Beat("main", self.worker.now, "r", 1.0, False, [source], [at], ends, ends, ends)

    def answer(self, committed: int) -> None:
        """What the coordinator is asked, and answers."""
        for partition, entry in self.worker.ingest.without_commits():
            self.worker.ingest.rebuild(partition, entry, {("orders", 0): committed})

    @property
    def entry(self) -> Any:
        return self.worker.index.entries(0)["main/g"]

    @property
    def committed(self) -> list[int]:
        return list(self.entry.commits["orders"].committed)


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_offset_does_not_make_every_true_commit_an_older_one(kind: str) -> None:
    world = World()
    world.run(15)
    world.take(encode(GroupEvent("main", "g", SOURCE, 1, **FORGED[kind])))

    found = world.run(15)

    assert world.committed == [world.second]
    assert world.worker.ingest.without_commits(), "a group that commits rarely has to be asked for"
    world.answer(committed=28)
    assert world.committed == [world.second]
    assert (found.judged, found.blind) == (1, 0)
    assert world.worker.refused["event", "beyond_log_end"] == 1


def test_an_event_that_comes_before_its_progress_is_believed() -> None:
    world = World()
    world.run(15)
    now = world.worker.now
    ahead = TopicOffsets("orders", None, [0], [18], [now], [18])
    world.take(encode(GroupEvent("main", "g", SOURCE, now, [ahead])))

    world.run(20)

    assert world.committed == [world.second]
    assert not world.worker.refused


def test_a_busy_group_that_is_ahead_of_the_progress_at_every_tick_is_believed() -> None:
    world = World()
    world.run(15)
    clock: Any = world.worker.context.clock
    for at in range(100, 700, 10):  # ten records a second
        clock.advance(1)
        now = world.worker.now
        commit = TopicOffsets("orders", None, [0], [at], [now], [at])
        world.take(encode(GroupEvent("main", "g", SOURCE, now, [commit])))
        asyncio.run(world.worker.tick(0, now))
        world.take(encode(world.progress(SOURCE, at)))  # after the tick, each time

    assert not world.worker.refused


def test_a_pipeline_that_dies_before_it_tells_its_progress_costs_nothing() -> None:
    world = World()
    world.run(15)
    clock: Any = world.worker.context.clock
    now = world.worker.now
    ahead = TopicOffsets("orders", None, [0], [500], [now], [500])
    world.take(encode(GroupEvent("main", "g", SOURCE, now, [ahead])))
    for _ in range(60):
        clock.advance(1)
        asyncio.run(world.worker.tick(0, world.worker.now))

    assert not world.worker.refused


def test_one_record_of_progress_that_is_too_short_costs_nothing() -> None:
    world = World()
    world.run(15)
    world.take(encode(Beat("main", world.worker.now, "other", 1.0, False, [SOURCE], [0], [0], [0], [0])))

    world.run(20)

    assert not world.worker.refused
    assert world.committed == [world.second]


def test_a_forged_membership_sets_its_group_aside_until_it_rebalances() -> None:
    world = World()
    record = orjson.loads(orjson.dumps(membership()))
    world.take(encode(GroupEvent("main", "g", SOURCE, 1, records=[MembershipRecord(INT64, 1, record)])))
    found = world.run(30)
    assert (found.judged, found.blind, found.set_aside) == (0, 1, 1)

    world.take(
        encode(GroupEvent("main", "g", SOURCE, 1, records=[MembershipRecord(world.second, 1, record)]))
    )

    found = world.run(1)
    assert (found.judged, found.blind, found.set_aside) == (1, 0, 0)
    assert len(world.entry.roster({}).members) == 2


def test_a_source_that_was_made_anew_is_followed_though_all_rows_are_of_the_old_one() -> None:
    rows = tables()
    World(rows, base=1_000_000).run(15)
    world = World(rows)
    assert world.entry.newest_source > 1_000_000

    world.run(30)

    assert world.committed == [world.second]


@pytest.mark.slow
def test_a_source_that_does_not_exist_blinds_the_cluster_for_no_longer_than_a_minute() -> None:
    world = World()
    world.run(15)
    world.take(encode(world.progress(2**31 - 1, 7)))

    assert world.run(30).status == "blind"
    assert world.run(45).status == "watching"


@pytest.mark.slow
def test_a_source_that_groups_are_in_is_not_forgotten_however_long_it_is_silent() -> None:
    world = World()
    world.run(5)
    now = world.worker.now
    world.take(encode(GroupEvent("main", "h", 4, now, [TopicOffsets("orders", None, [0], [1], [now], [1])])))
    world.take(encode(world.progress(4, 1)))

    assert world.run(100).status == "blind"
