"""A log of ``__consumer_offsets`` that lost its end and grew past it: what was lost is forgotten, and what stands there now is believed."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from kagent.contract.admission import INT64
from kagent.contract.events import Beat, GroupEvent, LogCut, MembershipRecord, TopicOffsets, encode
from kagent.worker.ingest_progress import STRAY_AFTER_MS
from tests.worker.http.test_server import membership
from tests.worker.test_beyond_log_end import SOURCE, World


@pytest.fixture
def world() -> World:
    """A group of which 1,015 offsets of the source are known."""
    made = World(base=1000)
    made.run(15)
    return made


def cut(world: World, offset: int, source: int = SOURCE) -> None:
    world.take(encode(LogCut("main", world.worker.now, [source], [offset])))


def commit(world: World, committed: int, at: int) -> None:
    now = world.worker.now
    offsets = [TopicOffsets("orders", None, [0], [committed], [now], [at])]
    world.take(encode(GroupEvent("main", "g", SOURCE, now, offsets)))


def test_a_commit_at_a_lesser_offset_than_what_was_lost_is_believed(world: World) -> None:
    cut(world, 1010)
    commit(world, 500, at=1012)

    assert world.committed == [500]


def test_without_the_cut_it_would_count_as_older(world: World) -> None:
    commit(world, 500, at=1012)

    assert world.committed == [1015]


def test_a_group_of_which_nothing_stands_there_now_is_asked_of_its_coordinator(world: World) -> None:
    cut(world, 1010)

    assert world.worker.ingest.without_commits()
    world.answer(committed=1009)
    assert world.committed == [1009]
    assert world.worker.refused["event", "log_cut"] == 1


def test_what_stood_before_the_cut_is_kept(world: World) -> None:
    cut(world, 1016)

    assert world.committed == [1015]
    assert not world.worker.ingest.without_commits()


def test_a_group_that_claims_the_greatest_offset_is_no_part_of_a_cut_elsewhere(world: World) -> None:
    commit(world, 1016, at=INT64)

    cut(world, 0, source=SOURCE + 1)

    assert world.worker.refused["event", "log_cut"] == 0


def test_the_state_says_what_happened_until_what_stands_there_now_has_been_read(world: World) -> None:
    cut(world, 1010)
    clock: Any = world.worker.context.clock
    clock.advance(1)
    found = state(world)
    assert found.status == "catching_up"
    assert found.reason is not None
    assert "lost its records from offset 1010 on (an unclean leader election)" in found.reason

    now = world.worker.now
    world.take(encode(Beat("main", now, "other", 1.0, False, [SOURCE], [1010], [1011], [1012], [1012])))
    found = state(world)
    assert found.reason is not None
    assert "lost its records from offset 1010 on" in found.reason, "a record is left to read"

    now = world.worker.now
    world.take(encode(Beat("main", now, "other", 1.0, False, [SOURCE], [1011], [1012], [1012], [1012])))
    assert state(world).status == "watching"


def test_an_old_offset_is_no_gap_for_the_pipeline_that_reads_again(world: World) -> None:
    cut(world, 1010)
    world.second = 9

    assert world.run(1).status == "watching"


def test_a_membership_that_was_lost_sets_its_group_aside_until_it_rebalances(world: World) -> None:
    record = orjson.loads(orjson.dumps(membership()))
    world.take(encode(GroupEvent("main", "g", SOURCE, 1, records=[MembershipRecord(1014, 1, record)])))
    cut(world, 1010)
    assert world.run(1).set_aside == 1

    world.take(encode(GroupEvent("main", "g", SOURCE, 1, records=[MembershipRecord(1011, 1, record)])))

    assert world.run(1).set_aside == 0


@pytest.mark.slow
def test_a_cut_of_a_source_that_does_not_exist_is_told_of_for_no_longer_than_a_minute(world: World) -> None:
    cut(world, 5, source=2**31 - 1)
    assert world.run(1).status == "catching_up"

    assert world.run(STRAY_AFTER_MS // 1000 + 1).status == "watching"


def state(world: World) -> Any:
    """The summary of a tick to which nothing came."""
    (found,) = asyncio.run(world.worker.tick(0, world.worker.now))
    return found
