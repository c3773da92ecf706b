"""Groups that were deleted while the pipeline was away are forgotten once their coordinators say so, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.contract.events import GroupEvent, MembershipRecord, TopicOffsets, encode
from kagent.contract.recommendation import Resolution
from kagent.detect.state import JudgeState
from kagent.kafka.descriptions import Described, GroupDescription
from kagent.tables.lag import LagRow
from kagent.tables.members import MembersRow
from kagent.tables.verdicts import VerdictRow
from kagent.testing import memory_tables
from kagent.worker.deleted_groups import QUIET_MS, DeletedGroups
from tests.worker.http.test_server import membership
from tests.worker.test_engine import recommendation
from tests.worker.test_lost_rows import World


class Watched(World):
    """Two groups that commit; one with a member."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted = DeletedGroups(self.engine, self.owner, {"main": self.cluster})  # type: ignore[arg-type,dict-item]
        self.beat()
        for group in ("kept", "plain"):
            self.commit(group)
            self.cluster.offsets[group] = {("orders", 0): 7}
        self.clock.advance(QUIET_MS / 1000)

    def commit(self, group: str, at: int = 0) -> None:
        now = self.engine.now
        commit = TopicOffsets("orders", None, [0], [7], [now], [at])
        self.take(encode(GroupEvent("main", group, 0, now, [commit])))

    def delete(self, group: str) -> None:
        del self.cluster.offsets[group]

    async def look(self) -> None:
        self.beat()
        await self.deleted.look()
        await self.engine.tick(0, self.engine.now)


@pytest.fixture
def world() -> Watched:
    return Watched()


async def test_a_group_that_its_coordinator_does_not_know_is_forgotten_with_its_rows(
    world: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    record: Any = membership()
    world.take(encode(GroupEvent("main", "plain", 0, 1, records=[MembershipRecord(1, 1, record)])))
    world.delete("plain")

    await world.look()

    assert world.engine.index.entries(0).keys() == {"main/kept"}
    assert [row.group for table in (world.rows.lag, world.rows.members) for row in table.values()] == [
        "kept"
    ] * 2
    assert "groups were deleted while the pipeline was away, and are forgotten: main/plain" in caplog.text
    assert world.engine.index.refused["members", "deleted"] == 1


async def test_its_incident_ends(world: Watched) -> None:
    world.engine.adopt(0, {"main/plain": recommendation("plain")})
    world.delete("plain")

    await world.look()

    (message,) = world.published.recommendations
    assert message.resolution is Resolution.EXPIRED


async def test_a_group_that_a_list_lacks_while_its_coordinator_knows_it_stays(world: Watched) -> None:
    world.cluster.groups = list  # type: ignore[method-assign]

    await world.look()

    assert world.engine.index.entries(0).keys() == {"main/kept", "main/plain"}


async def test_a_group_whose_coordinator_does_not_answer_stays(world: Watched) -> None:
    world.delete("plain")
    world.cluster.silent = {"plain"}

    await world.look()

    assert world.entry("plain") is not None


async def test_a_group_that_still_has_members_stays(world: Watched) -> None:
    world.delete("plain")
    world.cluster.groups_described["plain"] = Described(
        GroupDescription("plain", "stable", "classic", "consumer", True)
    )

    await world.look()

    assert world.entry("plain") is not None


async def test_a_group_that_commits_while_its_coordinator_is_asked_stays(world: Watched) -> None:
    world.delete("plain")
    asked = world.cluster.committed_each

    def meanwhile(groups: Any) -> Any:
        world.commit("plain", at=5)
        return asked(groups)

    world.cluster.committed_each = meanwhile  # type: ignore[method-assign]

    await world.look()

    assert world.committed("plain") == {("orders", 0): 7}


async def test_while_events_are_on_their_way_none_is_asked_for(world: Watched) -> None:
    world.delete("plain")
    world.clock.advance(60)

    await world.deleted.look()

    assert world.entry("plain") is not None
    assert world.cluster.asked == []


async def test_a_cluster_that_is_away_is_asked_again(world: Watched) -> None:
    world.delete("plain")
    world.cluster.away = True
    await world.look()
    assert world.entry("plain") is not None

    world.cluster.away = False
    await world.look()

    assert world.entry("plain") is None


async def test_a_group_of_which_something_came_lately_is_not_asked_for(world: Watched) -> None:
    world.commit("plain", at=5)
    world.delete("plain")

    await world.look()

    assert world.committed("plain") == {("orders", 0): 7}
    assert world.cluster.asked == []


@pytest.mark.parametrize("left", ["lag", "verdicts"])
async def test_a_group_that_is_nowhere_and_whose_row_of_members_is_lost_is_forgotten(left: str) -> None:
    rows: Any = memory_tables()
    rows.members["main/nowhere"] = MembersRow("main", "nowhere", 0, 2**31 - 1, None)
    if left == "lag":
        commits = {"partition": [0], "committed": [7], "time": [1], "source_offset": [1]}
        rows.lag["main/nowhere/orders"] = LagRow("main", "nowhere", "orders", 0, commits)
    else:
        rows.verdicts["main/nowhere"] = VerdictRow("main", "nowhere", 0, JudgeState(first_seen=1).to_row())
    world = World(rows)
    deleted: Any = DeletedGroups(world.engine, world.owner, {"main": world.cluster})  # type: ignore[arg-type,dict-item]
    world.beat()
    assert world.entry("nowhere") is not None
    await world.lost.look()

    await deleted.look()
    await world.engine.tick(0, world.engine.now)

    assert world.entry("nowhere") is None
    assert not rows.members
    assert not rows.verdicts
