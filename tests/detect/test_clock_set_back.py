"""A state whose clock was ahead."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.clock_set_back import latest_ms, set_back
from kagent.detect.state import Incident, JudgeState, Useful

NOW_MS, HOUR_MS, DAY_MS = 1_700_000_000_000, 3_600_000, 86_400_000
OPEN = Incident("i", NOW_MS - DAY_MS, "rebalance", "m0", {}, "d", NOW_MS - DAY_MS)
times = st.integers(NOW_MS - 2 * DAY_MS, NOW_MS + 2 * DAY_MS)


@given(times, times, times, times, times)
def test_no_tick_is_ahead_and_what_was_not_stays(
    tick: int, assigned: int, blind: int, due: int, generation: int
) -> None:
    state = JudgeState(
        first_seen=NOW_MS - DAY_MS,
        last_tick=tick,
        assigned_at=assigned,
        generations=((generation, 3),),
        incident=replace(OPEN, blind_since=blind),
        useful=Useful(3, more_since=due),
    )

    back = set_back(state, NOW_MS, HOUR_MS)

    assert latest_ms(back) <= NOW_MS
    assert back.incident is not None
    assert back.useful is not None
    assert (back.last_tick, back.assigned_at) == (min(tick, NOW_MS), min(assigned, NOW_MS))
    assert (back.incident.blind_since, back.useful.more_since) == (min(blind, NOW_MS), min(due, NOW_MS))
    assert back.generations == ((min(generation, NOW_MS), 3),)
    assert set_back(back, NOW_MS, HOUR_MS) == back


def test_a_cooldown_lasts_no_longer_than_one_that_begins_now() -> None:
    short = JudgeState(first_seen=1, cooldown_until=NOW_MS + 5)

    assert set_back(short, NOW_MS, HOUR_MS) == short
    assert (
        set_back(replace(short, cooldown_until=NOW_MS + DAY_MS), NOW_MS, HOUR_MS).cooldown_until
        == NOW_MS + HOUR_MS
    )
