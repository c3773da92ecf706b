"""A clock that jumps, the worker's or everybody else's, makes blind or costs nothing: no incident opens or ends by it, and it heals."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from kagent.contract.admission import Refused
from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.contract.recommendation import Recommendation, Status, from_bytes
from kagent.worker.engine import GroupEngine
from kagent.worker.status import Summary
from tests.worker.test_engine import desk, log_end, recommendation

pytestmark = pytest.mark.slow

MINUTES_10_S, DAY_S = 600, 86_400


class World:
    """A worker with one open incident, a group that commits every second, and two clocks: the worker's, and the brokers'."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes | None]] = []
        self.worker: GroupEngine = desk(sent=self.sent)
        self.brokers_ms, self.second, self.pipeline = self.worker.now, 0, True
        self.run(5)
        self.worker.adopt(0, {"main/g": recommendation("g")})

    def run(self, seconds: int) -> Summary:
        for _ in range(seconds):
            clock: Any = self.worker.context.clock
            clock.advance(1)
            self.brokers_ms += 1000
            found = self._second()
        return found

    def _second(self) -> Summary:
        at = [self.second]
        beat = Beat("main", self.brokers_ms, "r", 1.0, False, [3], at, [at[0] + 1], [at[0] + 1], [at[0] + 1])
        commit = TopicOffsets("orders", None, [1], at, [self.brokers_ms], at)
        event = GroupEvent("main", "g", 3, self.brokers_ms, [commit])
        for offset, message in enumerate((encode(beat), encode(event)) if self.pipeline else ()):
            # Refused is what is too far ahead: it is taken as of its arrival, and a dead letter says so.
            with suppress(Refused):
                self.worker.take(0, 2 * self.second + offset, message)
        log_end(self.worker, 1000 + self.second)
        self.second += self.pipeline
        (found,) = asyncio.run(self.worker.tick(0, self.worker.now))
        return found

    def said(self) -> set[Status]:
        """What was published of the incident."""
        messages = [from_bytes(value) for _, value in self.sent if value]
        return {message.status for message in messages if isinstance(message, Recommendation)} - {
            Status.UPDATED
        }

    def sees_what_is(self) -> None:
        """The group was judged now, with log ends of now."""
        entry = self.worker.context.index.entries(0)["main/g"]
        assert entry.judged is not None
        assert entry.judged.last_tick == self.worker.now
        assert self.worker.logs.ends["main", "orders"].last == self.worker.now

    def jump(self, whose: str, seconds: int) -> None:
        if whose == "worker":
            clock: Any = self.worker.context.clock
            clock.advance(seconds)
        else:
            self.brokers_ms += 1000 * seconds


def undisturbed(seconds: int) -> set[Status]:
    """What is published of the same incident within so many seconds if no clock jumps."""
    world = World()
    world.run(seconds)
    return world.said()


@pytest.mark.parametrize("seconds", [MINUTES_10_S, -MINUTES_10_S, DAY_S, -DAY_S])
@pytest.mark.parametrize("whose", ["worker", "brokers"])
def test_a_clock_that_jumps_opens_and_ends_nothing_and_heals_when_it_is_set_right(
    whose: str, seconds: int
) -> None:
    world = World()
    assert (world.run(5).status, world.run(1).judged) == ("watching", 1)

    world.jump(whose, seconds)
    jumped = world.run(100)
    assert jumped.open == 1
    assert jumped.judged or jumped.blind_reason or jumped.reason

    world.jump(whose, -seconds)
    healed = world.run(130)
    assert (healed.status, healed.judged, healed.open) == ("watching", 1, 1)
    world.sees_what_is()
    assert world.said() <= undisturbed(6 + 100 + 130)


def test_a_clock_that_leaps_by_a_day_while_the_pipeline_is_away_ends_nothing() -> None:
    world = World()
    world.run(5)
    world.pipeline = False
    assert world.run(100).blind == 1

    world.jump("worker", DAY_S)
    assert world.run(100).open == 1

    world.pipeline = True
    world.jump("worker", -DAY_S)
    healed = world.run(130)
    assert (healed.status, healed.judged, healed.open) == ("watching", 1, 1)
    world.sees_what_is()
