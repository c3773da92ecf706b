"""Each part of what counts as evidence earns its place: without it, a group is told what ends by itself, or is not told what lasts.

See `test_ablations.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kagent.detect import evidence, spells
from kagent.detect.evidence import LatenessLimits
from kagent.detect.state import MemberState
from tests.fixtures.timeline import Rate, Timeline, judged, told

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


def test_without_growth_a_group_that_is_late_on_purpose_is_told(monkeypatch: Any) -> None:
    """It waits for two and a half minutes before it processes a record; when kagent sees it first, it has done so for a while."""

    def late_on_purpose() -> list[str]:
        made = Timeline([30.0] * 6, HELD, dict.fromkeys(HELD, 100.0), order="even", delay_s=150)
        made.run(450)
        return told(made, 300)

    def late_for_long(member: MemberState, gap: float, need: float, limits: LatenessLimits) -> bool:
        return member.spell is not None and member.spell.grown_s >= need

    assert late_on_purpose() == []

    monkeypatch.setattr(spells, "growing", lambda known, look, limits: True)
    monkeypatch.setattr(spells, "_was_back", lambda known, spell, reference, limits: False)
    monkeypatch.setattr(evidence, "enough_growth", late_for_long)
    assert late_on_purpose() == ["under_provisioned"]


def by_turns(usual: float, at_peak: float, every_s: int, peak_s: int) -> Rate:
    """A load that comes again and again, at the end of each of these times."""
    return lambda second: at_peak if second % every_s >= every_s - peak_s else usual


@pytest.mark.slow
def test_without_habits_a_load_that_comes_again_and_again_is_told_each_time(monkeypatch: Any) -> None:
    """Four minutes in every twenty; what is told of the first ones is not looked at."""

    def later() -> list[str]:
        peaks = by_turns(30.0, 90.0, 1200, 240)
        made = Timeline([peaks, peaks, 20.0, 20.0, 20.0, 20.0], HELD, dict.fromkeys(HELD, 110.0))
        state = judged(made, 1500)[-1].state
        return told(made, 2400, state)

    assert later() == []

    monkeypatch.setattr(evidence, "habit", lambda habits, kind, now: 0.0)
    assert later() == ["rebalance"]


@pytest.mark.slow
def test_without_asking_whether_it_caught_up_who_falls_behind_burst_by_burst_is_told_no_more(
    monkeypatch: Any,
) -> None:
    """Two and a half minutes of a quarter too much, and as long of a little less than it can do: each lull ends a spell."""

    def later() -> list[str]:
        bursts = by_turns(51.0, 70.0, 300, 150)
        made = Timeline([bursts, bursts, 20.0, 20.0, 20.0, 20.0], HELD, dict.fromkeys(HELD, 110.0))
        state = judged(made, 1500)[-1].state
        return told(made, 1500, state)

    def ended_s(known: MemberState, earlier: MemberState) -> float:
        return spells._length_s(earlier.spell) if earlier.spell and not known.spell else 0.0

    assert later() == ["rebalance"]

    monkeypatch.setattr(spells, "_ended_by_itself_s", ended_s)
    assert later() == []


def after_standing_for(seconds: int, busy: float) -> Timeline:
    """All members were away for so long, and work off what came meanwhile: most of it waits for one of them, of whose partitions each gets
    so many records/s."""

    def speed(second: int) -> float:
        return 110.0 if second >= seconds else 0.0

    made = Timeline([busy, busy, 10.0, 10.0, 10.0, 10.0], HELD, dict.fromkeys(HELD, speed))
    made.run(seconds)
    return made


def test_without_the_clock_of_a_drain_an_old_backlog_of_one_member_is_not_told(monkeypatch: Any) -> None:
    assert told(after_standing_for(600, 40.0), 600) == ["rebalance"]

    monkeypatch.setattr(evidence, "enough_drain", lambda member, need, speed_over_inflow, limits: False)
    assert told(after_standing_for(600, 40.0), 600) == []


def test_without_a_wait_a_backlog_that_is_soon_worked_off_is_told(monkeypatch: Any) -> None:
    assert told(after_standing_for(500, 30.0), 600) == []

    monkeypatch.setattr(evidence, "draining_need_s", lambda state, now, policy: 0.0)
    assert told(after_standing_for(500, 30.0), 600) == ["rebalance"]
