"""Beats leave no hole, whatever could not be asked or sent, and say nothing that is not known."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kagent.contract.events import Beat
from kagent.errors import KafkaError
from kagent.pipeline.catchup import CatchUp
from kagent.pipeline.checkpoint import CoveredOffsets
from kagent.pipeline.progress import ProgressReporter


class World:
    """A broker that answers, or not, and a topic that takes beats, or not."""

    def __init__(self) -> None:
        self.ends = {0: (10, 10), 1: (5, 4)}
        self.away = self.deaf = False
        self.sent: list[Beat] = []
        self.reporter = ProgressReporter("main", 1.0, self.ask, self.send)

    def ask(self) -> dict[int, tuple[int, int]]:
        if self.away:
            raise KafkaError("away")
        return self.ends

    def send(self, beat: Beat) -> bool:
        if not self.deaf:
            self.sent.append(beat)
        return not self.deaf

    def batch(self, start: dict[str, int] | None, end: dict[str, int]) -> None:
        said = {
            "startOffset": {"__consumer_offsets": start} if start else None,
            "endOffset": {"__consumer_offsets": end},
        }
        progress = SimpleNamespace(json=json.dumps({"sources": [said]}))
        self.reporter.onQueryProgress(SimpleNamespace(progress=progress))

    def covered(self) -> list[tuple[list[int], list[int]]]:
        return [(list(b.start), list(b.offset)) for b in self.sent]


def test_the_first_batch_covers_from_the_beginning() -> None:
    world = World()

    world.batch(None, {"0": 7, "1": 5})

    assert world.covered() == [([0, 0], [7, 5])]
    assert (world.sent[0].log_end, world.sent[0].stable_end) == ((10, 5), (10, 4))


@pytest.mark.parametrize("trouble", ["away", "deaf"])
def test_what_could_not_be_told_is_told_with_the_next(trouble: str) -> None:
    world = World()
    world.batch(None, {"0": 3, "1": 1})
    setattr(world, trouble, True)
    world.batch({"0": 3, "1": 1}, {"0": 5, "1": 2})
    setattr(world, trouble, False)
    world.batch({"0": 5, "1": 2}, {"0": 9, "1": 3})

    assert world.covered() == [([0, 0], [3, 1]), ([3, 1], [9, 3])]


def test_idle_is_told_with_fresh_ends() -> None:
    world = World()
    world.batch(None, {"0": 10, "1": 5})
    world.ends = {0: (12, 12), 1: (5, 5)}
    world.reporter.onQueryIdle(None)

    assert world.covered()[1] == ([10, 5], [10, 5])
    assert world.sent[1].log_end == (12, 5)


def test_a_restart_covers_what_the_checkpoint_has_on_record() -> None:
    world = World()
    world.reporter.start(CoveredOffsets({0: 4}, {0: 8, 1: 2}))
    world.reporter.stop()
    world.reporter.beat()

    assert world.covered()[0] == ([4, 0], [8, 2])


def test_nothing_is_told_before_anything_is_known() -> None:
    world = World()
    world.reporter.onQueryIdle(None)

    assert world.sent == []


def test_a_partition_whose_end_is_unknown_is_left_out_and_caught_up_later() -> None:
    world = World()
    world.ends = {0: (10, 10)}
    world.batch(None, {"0": 7, "1": 5})
    world.ends[1] = (5, 5)
    world.reporter.onQueryIdle(None)

    assert world.covered() == [([0], [7]), ([7, 0], [7, 5])]


def beat(offset: int, end: int) -> Beat:
    return Beat("main", 0, "r", 1.0, False, [0], [0], [offset], [end], [end])


def test_ready_is_said_once_when_an_earlier_end_is_reached(caplog: Any) -> None:
    caplog.set_level("INFO", "kagent.pipeline")
    catching_up = CatchUp()

    for now, (offset, end) in enumerate(
        [(0, 100_000), (50_000, 100_100), (100_050, 100_200), (100_100, 100_300)]
    ):
        catching_up.see(beat(offset, end), float(10 * now))
    assert not catching_up.ready
    catching_up.see(beat(100_300, 100_400), 50.0)
    catching_up.see(beat(100_400, 100_400), 60.0)

    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "Catching up: 50,000 of 100,100 records (50 %), 5,000/s, 10 s left."
    assert sum("Ready" in line for line in said) == 1
