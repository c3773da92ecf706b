"""The laws of the judgement, held against a world in which every second is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagent.detect.group_model import observe
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import Judgement, judge
from kagent.policy import Policy
from kagent.recommend.reassignment import reassign
from kagent.recommend.render import diagnose, severity
from tests.fixtures.timeline import START, Timeline, judged

ORDERS = ("even", "blocks", "longest")
KNOWN = JudgeState(first_seen=START - 8 * 86_400_000, members_at=START)


def world(order: str = "blocks", hot: float = 150.0, speed: float = 220.0, **more: Any) -> Timeline:
    """Three members of two partitions; the first gets more than it can do where 2·hot is above speed."""
    held = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
    return Timeline([hot, hot, 50, 50, 50, 50], held, dict.fromkeys(held, speed), order, **more)


def windows_of(found: list[Judgement]) -> set[tuple[str, int, float]]:
    """All capacity windows that were ever closed: (member, end in s, length in s)."""
    return {
        (name.split("/")[0], (w.until - START) // 1000, w.seconds)
        for one in found
        for name, known in one.state.members.items()
        for w in known.windows
    }


def speeds_of(found: Judgement) -> list[float]:
    """Records/s of each capacity window that is kept."""
    return [sum(w.records.values()) / w.seconds for m in found.state.members.values() for w in m.windows]


@given(
    order=st.sampled_from(ORDERS),
    hot=st.sampled_from([60.0, 105.0, 111.0, 150.0]),
    block=st.sampled_from([50, 400, 5000]),
    commit_s=st.sampled_from([0, 1, 5, 20]),
    rest=st.sampled_from([0, 40]),
)
@settings(max_examples=20, deadline=None)
@pytest.mark.slow
def test_no_capacity_window_has_an_idle_second(
    order: str, hot: float, block: int, commit_s: int, rest: int
) -> None:
    def bursts(second: int) -> float:
        return 2.2 * hot if second % 120 < rest else hot

    held = {"m0": (0, 1), "m1": (2, 3)}
    made = Timeline([bursts, hot, 50, 50], held, dict.fromkeys(held, 220.0), order, commit_s, block)
    closed = windows_of(judged(made, 900))

    for name, until, length in closed:
        begins = until - length
        assert not [s for s in made.idle[name] if begins + 1 < s <= until - 1]


def test_a_member_that_is_always_busy_has_windows_and_they_tell_its_speed() -> None:
    made = world()
    found = judged(made, 600)

    speeds = speeds_of(found[-1])
    assert {name for name, _, _ in windows_of(found)} == {"m0"}
    assert len(speeds) >= 8
    assert speeds == pytest.approx([220.0] * len(speeds), rel=0.02)


def test_a_client_that_commits_once_a_block_is_measured_however_its_blocks_grow() -> None:
    """Each block holds what had arrived when it was fetched: it takes twice as long as the one before, and nothing that waited at
    the first of two commits waits at the second."""
    made = Timeline(
        [34.0, 34, 2, 2], {"m0": (0, 1), "m1": (2, 3)}, {"m0": 40.0, "m1": 40.0}, commit_s=0, block=10**9
    )
    found = judged(made, 500)

    speeds = speeds_of(found[-1])
    assert len(speeds) >= 2
    assert speeds == pytest.approx([40.0] * len(speeds), rel=0.05)


def test_a_long_gap_that_work_fills_is_evidence_and_one_without_work_is_a_pause() -> None:
    """One partition in long blocks beside one in short ones: half of the gaps are short, so the usual gap says little."""

    def pauses(second: int) -> float:
        return 0.0 if second > 240 else 20.0

    grown = {}
    for name, speed in (("works", 20.0), ("pauses", pauses)):
        made = Timeline(
            [38.0, 2, 2, 2], {"m0": (0, 1), "m1": (2, 3)}, {"m0": speed, "m1": 40.0}, commit_s=0, block=10**9
        )
        found = judged(made, 400)
        spells = [m.spell.grown_s for one in found for m in one.state.members.values() if m.spell]
        grown[name] = max(spells, default=0.0)
    assert grown["works"] > 120
    assert grown["pauses"] < 60


def test_lateness_is_the_same_under_any_order_of_service() -> None:
    lateness = []
    for order in ORDERS:
        made = world(order)
        made.run(900)
        model = observe(made.observe(), KNOWN, Policy())
        lateness.append(float(model.lateness[0]))
    # 80 records/s are left undone of 300 for 900 s.
    assert lateness == pytest.approx([240.0] * len(ORDERS), abs=6)


@pytest.mark.slow
@pytest.mark.parametrize(("inflow", "block"), [(30.0, 1536), (27.0, 1536), (30.0, 1024)])
def test_lateness_that_grows_is_one_spell_however_long_a_partition_waits_for_its_turn(
    inflow: float, block: int
) -> None:
    """Parts of 13 s are committed, of one partition at a time: meanwhile the other, whose offset stands, is committed by nobody."""
    made = Timeline(
        [inflow, inflow, 5, 5], {"m0": (0, 1), "m1": (2, 3)}, {"m0": 40.0, "m1": 40.0},
        commit_s=0, block=block, commit_records=512,
    )  # fmt: skip
    found = judged(made, 600)

    assert len({m.spell.began for one in found for m in one.state.members.values() if m.spell}) == 1


def test_without_a_new_commit_no_clock_advances() -> None:
    made = world()
    state = judged(made, 300)[-1].state
    seen = made.observe()
    for later in range(1, 60):
        again = judge(replace(seen, now=seen.now + later * 10_000, as_of=seen.as_of), state, Policy())
        assert again.state.members == state.members
        assert again.state.standing == state.standing
        state = again.state


@pytest.mark.slow
def test_the_same_commits_seen_often_or_seldom_make_the_same_spell() -> None:
    grown = {}
    for tick in (5, 10, 30):
        state = judged(world(), 600, tick=tick)[-1].state
        spell = next(m.spell for n, m in state.members.items() if n.startswith("m0"))
        assert spell is not None
        grown[tick] = spell.grown_s

    assert grown[5] > 300
    assert grown[10] == pytest.approx(grown[5], abs=35)
    assert grown[30] == pytest.approx(grown[5], abs=35)


def test_commits_that_come_twice_change_nothing() -> None:
    once, twice = world(), world()
    state, again = KNOWN, KNOWN
    for _ in range(40):
        once.run(10)
        twice.run(10)
        twice.row = twice.row and replace(twice.row)  # the same values in another object
        state = judge(once.observe(), state, Policy()).state
        again = judge(twice.observe(), again, Policy()).state
        again = judge(twice.observe(), again, Policy()).state

    assert again == state


def test_blind_time_adds_nothing_and_removes_nothing() -> None:
    made = world()
    before = judged(made, 300)[-1].state
    assert any(m.spell for m in before.members.values())

    during = judged(made, 120, before, blind=lambda second: True)

    assert all(one.state.members == before.members for one in during)
    assert all(one.state.standing == before.standing for one in during)


@pytest.mark.slow
def test_a_pause_of_the_pipeline_every_four_minutes_does_not_keep_a_group_silent() -> None:
    def first(found: list[Judgement]) -> int:
        return next(at for at, one in enumerate(found) if one.candidate)

    seen = first(judged(world(), 900))
    with_pauses = first(judged(world(), 900, blind=lambda second: second % 240 < 14))

    assert with_pauses <= seen + 3


@pytest.mark.parametrize(
    ("hot", "before"), [(118.0, 0), (150.0, 3300)], ids=["slowly", "15 min late at first sight"]
)
@pytest.mark.slow
def test_one_blind_tick_every_five_minutes_is_no_worse_than_one_every_five_and_a_half_or_none(
    hot: float, before: int
) -> None:
    def told(every: int) -> int:
        """The second in which it would be reported."""
        made = world(hot=hot)
        made.run(before)
        found = judged(made, 1200, blind=lambda second: second % every == 100)
        return before + 10 * (1 + next(at for at, one in enumerate(found) if one.candidate))

    found = [told(every) for every in (300, 330, 10**9)]

    assert max(found) - min(found) <= 10
    assert min(found) > before + 100


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.slow
def test_two_hot_partitions_on_one_member_are_a_matter_of_the_spread_and_never_a_bad_record(
    order: str,
) -> None:
    found = judged(world(order, block=5000), 1200)

    assert {str(f.verdict) for one in found for f in one.findings if f.ripe} == {"rebalance"}


def test_groups_that_keep_up_are_never_candidates() -> None:
    for order in ORDERS:
        assert not [one for one in judged(world(order, hot=90), 1200) if one.candidate]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.slow
def test_a_plan_is_never_slower_than_staying(group: Any, data: st.DataObject) -> None:
    rates = data.draw(st.lists(st.integers(1, 300), min_size=6, max_size=6))
    lags = data.draw(st.lists(st.integers(0, 200_000), min_size=6, max_size=6))
    speeds = data.draw(st.lists(st.integers(50, 900), min_size=3, max_size=3))
    parts = [{"end": 10_000_000, "rate": r, "lag": n} for r, n in zip(rates, lags, strict=True)]
    made = group({"t": parts}, {f"m{n}": {"t": [2 * n, 2 * n + 1]} for n in range(3)})
    known = made.at_work({f"m{n}": s for n, s in enumerate(speeds)})

    best = reassign(made.look(members=known))

    if best is not None and best.plan.drain_now is not None and best.plan.drain_after is not None:
        assert best.plan.drain_after.max() <= best.plan.drain_now.max() + 1e-6


def standstill_of(one: Judgement) -> tuple[float, float, str] | None:
    """Seconds behind, seconds without progress and severity of the stuck members; None where none is found."""
    found = next((f for f in one.findings if f.verdict == "stuck_member"), None)
    if found is None or one.model is None:
        return None
    return found.behind, found.evidence["stands_s"], severity(diagnose(one.model, found)).value


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [{"m0": 1800}, {"m0": 1800, "m1": 1800, "m2": 1800}])
def test_deleting_what_is_unread_makes_no_standstill_shorter_or_less_urgent(hangs: Mapping[str, int]) -> None:
    kept, deleted = world(hot=50.0, hangs=hangs), world(hot=50.0, hangs=hangs)
    with_all, without = judged(kept, 1900), judged(deleted, 1900)
    for _ in range(12):
        deleted.delete(keep=1000)
        with_all += judged(kept, 100, with_all[-1].state)
        without += judged(deleted, 100, without[-1].state)
    all_kept, some_deleted = ([standstill_of(one) for one in each] for each in (with_all, without))

    assert some_deleted == all_kept
    assert {each[2] for each in some_deleted if each} == {"ticket", "page"}
