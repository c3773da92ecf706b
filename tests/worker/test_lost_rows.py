"""Groups whose rows are lost come back by what their coordinators say, however rarely they commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import pytest

from kagent.contract.admission import Refused, checked
from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.errors import KafkaError
from kagent.group_key import source_partition
from kagent.kafka.descriptions import Described, GroupAnswers, GroupDescription, Key, MemberDescription
from kagent.settings import Cluster, Settings, Topics
from kagent.tables.members import MembersRow
from kagent.testing import FakeClock, RecordingPublisher, memory_tables
from kagent.worker import lost_rows
from kagent.worker.engine import GroupEngine
from kagent.worker.lost_rows import LOOK_EVERY_S, LostRows
from tests.fixtures.coordinators import no_answers

SOURCES = 4
T = TypeVar("T")


@dataclass
class Coordinators:
    """What the cluster knows: group → committed offsets, and descriptions."""

    offsets: dict[str, dict[Key, int]] = field(default_factory=dict)
    groups_described: dict[str, Described] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    away: bool = False
    silent: set[str] = field(default_factory=set)
    """Groups whose coordinator does not answer."""

    def groups(self) -> list[str]:
        if self.away:
            raise KafkaError("away")
        return sorted(self.offsets)

    def committed_each(self, groups: Iterable[str]) -> GroupAnswers[dict[Key, int]]:
        self.asked.append(list(groups))
        return self._answers({name: self.offsets.get(name, {}) for name in self.asked[-1]})

    def described_each(self, groups: Iterable[str]) -> GroupAnswers[Described]:
        dead = {name: Described(GroupDescription(name, "dead", "classic", "", True)) for name in groups}
        return self._answers({name: self.groups_described.get(name, found) for name, found in dead.items()})

    def _answers(self, found: dict[str, T]) -> GroupAnswers[T]:
        told = {name: answer for name, answer in found.items() if name not in self.silent}
        return GroupAnswers(told, dict.fromkeys(found.keys() - told.keys(), "NOT_COORDINATOR"))


class Owner:
    """The only partition is ours, and built."""

    ready, loaded, loaded_at, recoveries = True, {0}, 0, 0

    def built(self, partition: int) -> bool:
        return partition in self.loaded

    def load_again(self) -> None:
        self.loaded_at = self.recoveries = self.loaded_at + 1


class World:
    """One worker, the rows that it has, and the cluster's coordinators."""

    def __init__(self, rows: Any = None, **worker: Any) -> None:
        self.rows = memory_tables() if rows is None else rows
        self.cluster, self.owner, self.clock = Coordinators(), Owner(), FakeClock()
        settings = Settings(
            clusters={"main": Cluster(bootstrap="127.0.0.1:1")},
            topics=Topics(partitions=1),
            worker=worker or {},
        )
        self.published = RecordingPublisher()
        self.engine = GroupEngine.of(settings, self.rows, self.published, no_answers, "w:1", self.clock)
        self.engine.load([0], {0: 0})
        owner, admin = self.owner, self.cluster
        self.lost: Any = LostRows(self.engine, owner, {"main": admin})  # type: ignore[arg-type,dict-item]
        self.offset = 0

    def take(self, value: bytes) -> None:
        assert self.engine.take(0, self.offset, value) == []
        self.offset += 1

    def beat(self) -> None:
        """The pipeline has read all, and the log ends are known."""
        self.engine.logs.sampled("main", [], {}, {})
        read = [0] * SOURCES
        self.take(
            encode(
                Beat("main", self.engine.now, "r", 1.0, False, list(range(SOURCES)), read, read, read, read)
            )
        )

    async def looks(self, count: int) -> None:
        """So many looks, with the pipeline at work between them."""
        for _ in range(count):
            self.beat()
            await self.lost.look()
            self.clock.advance(LOOK_EVERY_S)

    def entry(self, group: str) -> Any:
        return self.engine.index.entries(0).get(f"main/{group}")

    def committed(self, group: str) -> dict[Key, int]:
        rows = self.entry(group).commits.values()
        return {(r.topic, p): o for r in rows for p, o in zip(r.partition, r.committed, strict=True)}


async def test_a_group_without_any_row_is_back_with_its_commits_and_is_judged() -> None:
    world = World()
    world.cluster.offsets["g"] = {("orders", 0): 7, ("orders", 2): 9}

    await world.looks(3)

    assert world.committed("g") == {("orders", 0): 7, ("orders", 2): 9}
    assert world.entry("g").source == source_partition("g", SOURCES)
    world.beat()
    (summary,) = await world.engine.tick(0, world.engine.now)
    assert summary.learning == 1
    assert summary.set_aside == 0


async def test_it_has_rows_again_that_the_next_start_reads() -> None:
    world = World()
    world.cluster.offsets["g"] = {("orders", 0): 7}
    await world.looks(3)

    again = World(world.rows)

    assert again.committed("g") == {("orders", 0): 7}
    assert again.entry("g").source == source_partition("g", SOURCES)
    assert again.engine.index.refused == {}


async def test_what_comes_of_the_group_later_counts_as_newer() -> None:
    world = World()
    world.cluster.offsets["g"] = {("orders", 0): 7}
    await world.looks(3)

    now = world.engine.now
    source = source_partition("g", SOURCES)
    world.take(
        encode(GroupEvent("main", "g", source, now, [TopicOffsets("orders", None, [0], [3], [now], [0])]))
    )

    assert world.committed("g") == {("orders", 0): 3}


async def test_a_new_group_is_left_to_its_event() -> None:
    world = World()
    await world.looks(1)
    world.cluster.offsets["g"] = {("orders", 0): 7}

    await world.looks(1)

    assert world.entry("g") is None
    assert world.cluster.asked == []


async def test_nothing_is_asked_while_the_pipeline_has_not_read_to_the_end() -> None:
    world = World()
    world.cluster.offsets["g"] = {("orders", 0): 7}
    for _ in range(5):
        ends = [9] * SOURCES
        zero = [0] * SOURCES
        world.take(
            encode(
                Beat("main", world.engine.now, "r", 1.0, False, list(range(SOURCES)), zero, zero, ends, ends)
            )
        )
        await world.lost.look()
        world.clock.advance(LOOK_EVERY_S)

    assert world.entry("g") is None


async def test_commits_that_are_missing_among_others_are_filled_in_and_no_others_are_changed() -> None:
    world = World()
    now = world.engine.now
    world.take(encode(GroupEvent("main", "g", 1, now, [TopicOffsets("orders", None, [0], [5], [now], [3])])))
    world.cluster.offsets["g"] = {("orders", 0): 6, ("orders", 1): 4, ("parcels", 0): 2}

    await world.looks(3)

    assert world.committed("g") == {("orders", 0): 5, ("orders", 1): 4, ("parcels", 0): 2}
    assert world.engine.index.refused == {("lag", "missing"): 2}


async def test_all_is_compared_once_a_load() -> None:
    world = World()
    world.cluster.offsets |= {f"g{n}": {("orders", 0): n} for n in range(5)}
    await world.looks(6)
    asked = [len(names) for names in world.cluster.asked]

    world.owner.load_again()
    await world.looks(3)

    assert asked == [5]
    assert [len(names) for names in world.cluster.asked] == [5, 5]


async def test_a_group_whose_row_of_members_cannot_be_read_gets_them_from_its_coordinator() -> None:
    world = World()
    now = world.engine.now
    world.take(encode(GroupEvent("main", "g", 1, now, [TopicOffsets("orders", None, [0], [5], [now], [3])])))
    world.rows.members["main/g"] = MembersRow("main", "g", 0, 1, {"slots": 1})
    again = World(world.rows)
    again.cluster.offsets["g"] = {("orders", 0): 5}
    again.cluster.groups_described["g"] = joined("g", "stable")
    again.beat()
    (before,) = await again.engine.tick(0, again.engine.now)
    assert before.set_aside == 1

    await again.looks(3)

    assert [m.member_id for m in again.entry("g").roster({}).members] == ["m-1"]
    again.beat()
    (after,) = await again.engine.tick(0, again.engine.now)
    assert (after.set_aside, after.learning) == (0, 1)


@pytest.mark.parametrize("source", [-7, 2**31])
def test_a_row_of_a_partition_that_cannot_be_is_left_out_and_so_comes_back(source: int) -> None:
    row = MembersRow("main", "g", 0, source, None)

    with pytest.raises(Refused) as refused:
        checked(lambda: msgspec.json.decode(msgspec.json.encode(row), type=MembersRow))
    assert refused.value.reason == "out_of_bounds"


async def test_a_group_whose_row_names_a_source_that_there_is_not_gets_its_own_from_its_name() -> None:
    rows = memory_tables()
    rows.members["main/g"] = MembersRow("main", "g", 0, 2**31 - 1, None)
    world = World(rows)
    world.cluster.offsets["g"] = {("orders", 0): 7}

    await world.looks(4)

    assert world.entry("g").source == source_partition("g", SOURCES)
    assert world.engine.index.refused["members", "no_such_partition"] == 1
    assert rows.members["main/g"].source == world.entry("g").source


async def test_a_group_that_commits_again_gets_the_members_that_its_rows_had() -> None:
    world = World()
    now = world.engine.now
    world.take(encode(GroupEvent("main", "g", 1, now, [TopicOffsets("orders", None, [0], [5], [now], [3])])))
    world.cluster.offsets["g"] = {("orders", 0): 5}
    world.cluster.groups_described["g"] = joined("g", "stable")

    await world.looks(3)

    assert [m.member_id for m in world.entry("g").roster({}).members] == ["m-1"]
    assert world.committed("g") == {("orders", 0): 5}


async def test_a_group_that_only_commits_is_left_as_it_is() -> None:
    world = World()
    now = world.engine.now
    world.take(encode(GroupEvent("main", "g", 1, now, [TopicOffsets("orders", None, [0], [5], [now], [3])])))
    world.cluster.offsets["g"] = {("orders", 0): 5}

    await world.looks(4)

    assert len(world.cluster.asked) == 1
    assert world.engine.index.refused == {}


async def test_the_members_of_a_group_that_rebalances_are_asked_when_it_has_settled() -> None:
    world = World()
    world.cluster.offsets["g"] = {("orders", 0): 5}
    world.cluster.groups_described["g"] = joined("g", "preparingrebalance")
    await world.looks(3)
    assert world.entry("g") is None

    world.cluster.groups_described["g"] = joined("g", "stable")
    await world.looks(1)

    assert len(world.entry("g").roster({}).members) == 1


async def test_a_listed_group_without_commits_and_members_is_no_group_and_kagents_own_are_left_out() -> None:
    world = World()
    world.cluster.offsets |= {"nothing": {}, world.engine.settings.topics.app: {("orders", 0): 1}}

    await world.looks(4)

    assert world.engine.group_count == 0
    assert world.cluster.asked == [["nothing"]]


async def test_a_coordinator_that_does_not_answer_costs_its_own_groups_alone_until_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lost_rows, "AT_ONCE", 2)
    world = World()
    world.cluster.offsets |= {f"g{n}": {("orders", 0): n} for n in range(6)}
    world.cluster.silent = {"g0", "g1", "g2"}

    await world.looks(6)
    assert {name for name in world.cluster.offsets if world.entry(name)} == {"g3", "g4", "g5"}

    world.cluster.silent = set()
    await world.looks(3)
    assert {name for name in world.cluster.offsets if world.entry(name)} == set(world.cluster.offsets)


async def test_a_cluster_that_is_away_is_asked_at_the_next_look() -> None:
    world = World()
    world.cluster.offsets["g"] = {("orders", 0): 7}
    world.cluster.away = True
    await world.looks(2)
    world.cluster.away = False

    await world.looks(3)

    assert world.committed("g") == {("orders", 0): 7}


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_groups_come_back_than_there_is_room_for(limit: int) -> None:
    world = World(max_groups=limit)
    world.cluster.offsets |= {f"g{n}": {("orders", 0): n} for n in range(4)}

    await world.looks(4)

    assert world.engine.group_count == limit


def joined(group: str, state: str) -> Described:
    member = MemberDescription("m-1", None, "app", "/10.0.0.1", frozenset({("orders", 0)}))
    return Described(GroupDescription(group, state, "classic", "range", False, (member,)))
