"""Questions to coordinators beside the ticks: one that has no answer costs neither a tick nor another group's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kagent.errors import KafkaError
from kagent.kafka.descriptions import GroupAnswers
from kagent.worker.confirmations import FRESH_TICKS, Confirmations
from kagent.worker.coordinator_check import CoordinatorAnswer
from kagent.worker.groups import Entry
from tests.fixtures.waiting import until_async

TICK_S = 60.0
"""Half of it is waited for an answer: more than any machine takes for one that comes at once."""
SHORT_TICK_S = 0.01
STABLE = CoordinatorAnswer("stable", {}, {})


def entry(group: str, cluster: str = "main") -> Entry:
    return Entry(cluster, group, 0)


class Cluster:
    """Coordinators that answer at once, but for the groups named ``late…``, which have to be let go first."""

    def __init__(self, tick_s: float = TICK_S) -> None:
        self.asked: list[list[str]] = []
        self.answered: list[list[str]] = []
        self.answers = asyncio.Event()
        self.confirmations = Confirmations(self.ask, tick_s)

    async def ask(self, cluster: str, entries: Sequence[Entry]) -> GroupAnswers[CoordinatorAnswer]:
        names = [entry.group for entry in entries]
        self.asked.append(names)
        if any(name.startswith("late") for name in names):
            await self.answers.wait()
        if "odd" in names:
            raise ValueError("an answer that nobody has thought of")
        if cluster == "gone":
            raise KafkaError("The cluster does not answer.")
        found = {name: STABLE for name in names if not name.startswith("moving")}
        failed = {name: "NOT_COORDINATOR" for name in names if name not in found}
        self.answered.append(names)
        return GroupAnswers(found, failed)


async def test_candidates_of_one_tick_are_asked_about_together() -> None:
    cluster = Cluster()

    found = await cluster.confirmations.answers([entry("a"), entry("b")])

    assert found == {"main/a": STABLE, "main/b": STABLE}
    assert cluster.asked == [["a", "b"]]


async def test_a_late_answer_holds_up_no_tick_and_is_there_at_the_next_one() -> None:
    cluster = Cluster(SHORT_TICK_S)

    first = await cluster.confirmations.answers([entry("late")])
    meanwhile = await cluster.confirmations.answers([entry("late"), entry("other")])
    cluster.confirmations.tick_s = TICK_S
    cluster.answers.set()
    last = await cluster.confirmations.answers([entry("late"), entry("other")])

    assert (first, meanwhile) == ({}, {})
    assert last == {"main/late": STABLE, "main/other": STABLE}
    assert cluster.asked == [["late"], ["other"]]


async def test_a_cluster_without_an_answer_costs_no_other_cluster_its_answer() -> None:
    cluster = Cluster(10 * SHORT_TICK_S)

    found = await cluster.confirmations.answers([entry("late"), entry("a", "other")])

    assert found == {"other/a": STABLE}


async def test_what_a_coordinator_does_not_answer_is_held_back_and_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    candidates = [entry("moving"), entry("a"), entry("b", "gone")]

    first = await cluster.confirmations.answers(candidates)
    await cluster.confirmations.answers(candidates)

    assert first == {"main/moving": None, "main/a": STABLE, "gone/b": None}
    assert cluster.asked == [["moving", "a"], ["b"]] * 2
    assert "main/moving' is held back: NOT_COORDINATOR" in caplog.text
    assert "gone/b' is held back: The cluster does not answer." in caplog.text


async def test_an_answer_that_cannot_be_read_is_its_own_group_s_alone() -> None:
    cluster = Cluster()

    found = await cluster.confirmations.answers([entry("odd"), entry("a")])

    assert found["main/a"] == STABLE
    assert isinstance(found["main/odd"], ValueError)


async def test_an_answer_of_several_ticks_ago_is_not_used() -> None:
    cluster = Cluster(SHORT_TICK_S)
    await cluster.confirmations.answers([entry("late")])
    cluster.answers.set()
    await until_async(lambda: cluster.answered, "the first answer")
    await asyncio.sleep(2 * FRESH_TICKS * SHORT_TICK_S)

    await cluster.confirmations.answers([entry("late")])

    await until_async(lambda: len(cluster.asked) > 1, "the second question")
    assert cluster.asked == [["late"], ["late"]]
