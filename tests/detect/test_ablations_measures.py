"""Each part of what is measured earns its place: without it, capacity, inflow or lateness say what is not so, and so does a verdict.

See `test_ablations.py`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kagent.detect import busy_windows, capacity, group_model, inflow, spells
from kagent.detect.capacity import Estimate
from kagent.detect.inflow import Interval
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import MemberState, WindowStart
from kagent.lag.measure import Floats
from tests.fixtures.timeline import Rate, Timeline, judged, told

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


def one_backlog() -> Timeline:
    """One member was away for ten minutes, and works off what came meanwhile; the others have next to nothing to do."""

    def away(second: int) -> float:
        return 110.0 if second >= 600 else 0.0

    made = Timeline([40.0, 40.0, 10.0, 10.0, 10.0, 10.0], HELD, {"m0": away, "m1": 110.0, "m2": 110.0})
    made.run(600)
    return made


@pytest.mark.slow
def test_without_the_certificate_idle_members_have_no_room_for_what_waits(monkeypatch: Any) -> None:
    """Members with nothing to do are not followed, which hides it: here all are."""

    def everybody(columns: ObservedColumns, *_: Any) -> list[int]:
        return list(range(columns.members))

    def always_busy(leg: Any) -> WindowStart:
        mark: WindowStart = leg.mark
        return replace(mark, busy_s=mark.busy_s + leg.length_s)

    def whole(known: MemberState, idle: bool) -> MemberState:
        return known

    monkeypatch.setattr(busy_windows, "tracked", everybody)
    monkeypatch.setattr(spells, "_slim", whole)
    assert told(one_backlog(), 600) == ["rebalance"]

    monkeypatch.setattr(busy_windows._Leg, "mark_after", always_busy)
    assert told(one_backlog(), 600) == []


def age_of_the_oldest_s(columns: ObservedColumns, owner: npt.NDArray[np.int32], *_: Any) -> Floats:
    """How old each member's oldest unread record was when it committed."""
    waits = (owner >= 0) & (columns.waiting_since > 0)
    ages = (columns.committed_at[owner] - columns.waiting_since) / 1000
    out = np.zeros(columns.members)
    np.maximum.at(out, owner[waits], ages[waits])
    return out


@pytest.mark.slow
def test_by_the_age_of_its_oldest_record_a_member_would_fall_behind_and_catch_up_by_turns(
    monkeypatch: Any,
) -> None:
    """A client that processes one partition's fetch after another gets 15 % more than it can do."""
    held = {"m0": (0, 1, 2), "m1": (3, 4, 5)}

    def since_first_told() -> set[str]:
        made = Timeline([115.0 / 3] * 3 + [10.0] * 3, held, dict.fromkeys(held, 100.0), block=4000)
        verdicts = [one.verdict for one in judged(made, 1500)]
        return set(verdicts[verdicts.index("rebalance") :])

    assert since_first_told() == {"rebalance"}

    monkeypatch.setattr(group_model, "lateness_s", age_of_the_oldest_s)
    assert since_first_told() == {"rebalance", "balanced"}


def by_chance(seed: int, mean: float) -> Rate:
    """A speed that is another one each minute."""
    random = Random(seed)
    minutes = [max(0.0, random.gauss(mean, 0.4 * mean)) for _ in range(60)]
    return lambda second: minutes[second // 60]


def of_chance() -> Timeline:
    """Three alike, each quick and slow by chance, that get 86 % of what they can do."""
    return Timeline([40.0] * 6, HELD, {name: by_chance(40 + at, 93.0) for at, name in enumerate(HELD)})


@pytest.mark.slow
def test_without_the_interval_of_capacity_slow_polls_make_a_slow_member(monkeypatch: Any) -> None:
    singly, of_runs = capacity.estimate, capacity.of_runs

    def point(found: Estimate | None) -> Estimate | None:
        return found and (found[1], found[1], found[1])

    assert told(of_chance(), 1500) == []

    monkeypatch.setattr(capacity, "estimate", lambda *given: point(singly(*given)))
    monkeypatch.setattr(capacity, "of_runs", lambda *given: point(of_runs(*given)))
    assert told(of_chance(), 1500) == ["slow_member"]


@pytest.mark.slow
def test_without_the_interval_of_inflow_a_burst_is_told_when_it_is_over(monkeypatch: Any) -> None:
    """Three minutes with nearly twice as much as usual, of which all members are through soon after."""

    def burst(second: int) -> float:
        return 86.0 if 1900 <= second < 2080 else 45.0

    def made() -> Timeline:
        return Timeline([burst] * 6, HELD, dict.fromkeys(HELD, 110.0))

    def median(by_minute: Floats) -> Interval:
        usual = np.median(by_minute, axis=0)
        return Interval(usual, usual, usual)

    assert told(made(), 2400) == []

    monkeypatch.setattr(inflow, "estimate", median)
    monkeypatch.setattr(ObservedColumns, "least_rates", property(lambda columns: columns.usual_rates))
    assert told(made(), 2400) == ["under_provisioned"]
