"""Each part of what tells a standstill earns its place: without it, a group that is well is told to stand, or one that stands is not.

See `test_ablations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kagent.detect import standstill
from kagent.detect.detectors import stuck_member
from kagent.detect.observed_columns import ObservedColumns
from kagent.lag import commits
from kagent.lag.measure import Flags
from tests.fixtures.timeline import Rate, Timeline, judged, told

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
ALONE = {"m0": (0,), "m1": (1,), "m2": (2,)}


def at_once(records: float) -> Rate:
    """Ten records a second, and so many at once after a quarter of an hour."""
    return lambda second: records if second == 900 else 10.0


def test_without_served_twice_a_partition_that_waits_its_turn_is_called_stalled(monkeypatch: Any) -> None:
    """One fetch takes six minutes, and the partition beside it waits for it."""

    def made() -> Timeline:
        inflow = [at_once(14_000), 10.0, 10.0, 10.0, 10.0, 10.0]
        return Timeline(inflow, HELD, dict.fromkeys(HELD, 40.0), block=15_000)

    def siblings_moved_s(group: ObservedColumns, siblings: Flags, turn: int) -> float:
        return max(0.0, (int(group.lags.moved[siblings].max(initial=0)) - turn) / 1000)

    assert told(made(), 1500) == []

    monkeypatch.setattr(standstill, "_passed_over_s", siblings_moved_s)
    assert told(made(), 1500) == ["stalled"]


def test_without_the_time_that_a_fetch_takes_who_commits_once_a_fetch_is_called_stuck(
    monkeypatch: Any,
) -> None:
    """A client that commits nothing until a whole fetch is done: here for more than six minutes."""

    def made() -> Timeline:
        inflow = [at_once(16_000), 10.0, 10.0]
        return Timeline(inflow, ALONE, dict.fromkeys(ALONE, 40.0), commit_s=0, block=15_000)

    assert told(made(), 1500) == []

    monkeypatch.setattr(stuck_member, "fetch_left_s", lambda model, rows, at: 0.0)
    assert told(made(), 1500) == ["stuck_member"]


class RetriesAhead(Timeline):
    """Its client retries the record at which partition 1 stands, and commits one ahead of it and back by turns, as aiokafka does."""

    def _commit(self, held: Sequence[int]) -> None:
        if 1 in held and self.second > 300:
            self.position[1] += 1 if self.second % 2 else -1
        super()._commit(held)


def test_without_the_least_of_the_latest_offsets_a_record_that_is_retried_for_ever_passes_for_progress(
    monkeypatch: Any,
) -> None:
    def made() -> Timeline:
        return RetriesAhead(
            [30.0] * 6, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=300
        )

    assert told(made()) == ["stalled"]

    monkeypatch.setattr(commits, "_is_progress", lambda known, kept: True)
    assert told(made()) == ["slow_member"]


WAKES_AT = {"m0": 1280, "m1": 1310, "m2": 1340}


class Sleeps(Timeline):
    """From 1,000 s on all members sleep, some longer than others: they do and commit nothing."""

    def _sleeps(self, name: str) -> bool:
        return 1000 <= self.second < WAKES_AT[name]

    def _serve(self, name: str, held: Sequence[int]) -> float:
        return 0.0 if self._sleeps(name) else super()._serve(name, held)

    def _commit(self, held: Sequence[int]) -> None:
        if not any(mine == held and self._sleeps(name) for name, mine in self.held.items()):
            super()._commit(held)


def test_without_a_limit_on_one_gap_the_first_that_wakes_makes_the_others_stuck(monkeypatch: Any) -> None:
    def made() -> Timeline:
        return Sleeps([30.0] * 6, HELD, dict.fromkeys(HELD, 100.0))

    assert told(made(), 1800) == []

    monkeypatch.setattr(standstill, "silence", lambda before_s, more_s, cap_s: before_s + more_s)
    assert told(made(), 1800) == ["stuck_member"]


@pytest.mark.slow
def test_without_habits_a_group_that_rests_again_and_again_is_stuck_each_time(monkeypatch: Any) -> None:
    """Nearly seven minutes in every forty; what is told of the first rest is not looked at."""

    def later() -> list[str]:
        def speed(second: int) -> float:
            return 0.0 if second % 2400 >= 2000 else 100.0

        made = Timeline([15.0] * 6, HELD, dict.fromkeys(HELD, speed))
        state = judged(made, 2500)[-1].state
        return told(made, 2400, state)

    assert later() == []

    monkeypatch.setattr(stuck_member, "habit", lambda habits, kind, now: 0.0)
    assert later() == ["stuck_member"]


def after_an_outage() -> set[str]:
    """What is told of a group of which one member comes back four minutes after the others, once the cluster was away for ten minutes."""
    world = Timeline([40.0] * 6, HELD, dict.fromkeys(HELD, 200.0), commit_s=60)
    state = judged(world, 2030)[-1].state
    world.second += 600
    world.hangs = {"m1": world.second}
    looks = judged(world, 240, state)
    world.hangs = {}
    looks += judged(world, 300, looks[-1].state)
    return {one.verdict for one in looks}


def test_without_the_time_that_could_not_be_seen_who_comes_back_last_is_called_stuck(
    monkeypatch: Any,
) -> None:
    assert after_an_outage() == {"balanced"}

    monkeypatch.setattr(standstill, "_away_s", lambda columns, since, until: 0.0)
    assert "stuck_member" in after_an_outage()
