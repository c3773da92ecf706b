"""stuck_member: silent while others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kagent.detect.detectors import stuck_member
from kagent.detect.state import Habit, MemberState, Standing
from kagent.lag.log_ends import EndHistory
from kagent.policy import Policy
from tests.fixtures.findings import FINE, FOUR, SILENT, leading
from tests.fixtures.group_builder import NOW
from tests.fixtures.timeline import Timeline, judged, told

Make = Callable[..., Any]
TOPIC = {"t": [SILENT, SILENT, *6 * [FINE]]}


def silent(made: Any, seconds: float, **more: Any) -> dict[str, MemberState]:
    return {made.roster().names[0]: MemberState(silent_s=seconds, silent_seen=NOW - 2500, **more)}


def test_a_member_that_is_silent_for_almost_as_long_as_hold_while_others_go_on_is_stuck(group: Make) -> None:
    made = group(TOPIC, FOUR)
    model, found = made.looked(members=silent(made, 260.0))

    assert leading(found) == "stuck_member"
    assert found[0].members == (0,)
    assert "committed nothing new" in stuck_member.reason(model, found[0])
    assert leading(made.looked(members=silent(made, 250.0))[1]) == "balanced"


def test_a_member_stands_since_its_last_progress_and_not_since_its_oldest_record(group: Make) -> None:
    worked_later = {**SILENT, "age": 600}
    made = group({"t": [SILENT, worked_later, *6 * [FINE]]}, FOUR)
    model, found = made.looked(members=silent(made, 590.0))

    assert leading(found) == "stuck_member"
    assert found[0].since == NOW - 600_000
    assert found[0].evidence["stands_s"] == 600
    assert found[0].behind > 800
    assert "committed nothing new for 10 min though records wait (15 min behind)" in stuck_member.reason(
        model, found[0]
    )


def test_a_longer_silence_that_ended_by_itself_lifts_the_threshold(group: Make) -> None:
    made = group(TOPIC, FOUR)
    habits = {"silent": Habit(300.0, NOW - 3_600_000)}

    assert leading(made.looked(members=silent(made, 400.0), habits=habits)[1]) == "balanced"
    assert leading(made.looked(members=silent(made, 500.0), habits=habits)[1]) == "stuck_member"


def test_a_client_without_a_bound_on_its_poll_may_be_silent_for_what_its_backlog_takes(group: Make) -> None:
    deep = {**SILENT, "lag": 50_000}
    made = group({"t": [deep, deep, *6 * [FINE]]}, FOUR)
    model = made.look(members=silent(made, 400.0))

    # 100,000 records at 200 a second, half as much again.
    assert 700 <= stuck_member.limit_s(model, 0) <= 800


def test_what_was_fetched_before_it_was_deleted_takes_its_time_all_the_same(group: Make) -> None:
    deep = {**SILENT, "lag": 50_000}
    taken = {**deep, "start": 9_999_900}
    limits = []
    for part in (deep, taken):
        made = group({"t": [part, part, *6 * [FINE]]}, FOUR)
        limits.append(stuck_member.limit_s(made.look(members=silent(made, 400.0)), 0))

    assert limits[0] == limits[1]


def test_a_partition_that_is_set_aside_still_tells_how_fast_its_member_is(group: Make) -> None:
    """It stands beside members that have nothing to do. Nobody was ever late, so what arrived is all that is known of speeds."""
    made = group({"t": [SILENT, FINE, FINE]}, {f"m{n}": {"t": [n]} for n in range(3)})
    standing = {"t/0": Standing(since=NOW - 260_000, idle_s=250.0)}
    model = made.look(members=silent(made, 260.0), standing=standing)

    assert model.excluded[0]
    assert stuck_member.limit_s(model, 0) == stuck_member.HOLD_SHARE * model.policy.hold


def test_a_single_member_is_silent_for_an_hour_before_anything_is_said(group: Make) -> None:
    made = group({"t": [SILENT]}, {"m0": {"t": [0]}})

    assert stuck_member.limit_s(made.look(), 0) == 3600


def test_a_whole_group_at_rest_is_stuck_only_if_it_went_on_for_three_times_as_long(group: Make) -> None:
    made = group({"t": 8 * [SILENT]}, FOUR)

    def after(seconds: int) -> str:
        going = NOW - 900_000 - seconds * 1000
        return leading(made.looked(at_rest_s=890.0, going_since=going)[1])

    assert [after(3600), after(600)] == ["stuck_member", "balanced"]


@pytest.mark.slow
def test_a_group_that_stands_is_stuck_until_it_moves_however_long_that_takes() -> None:
    held = {"m0": (0, 1), "m1": (2, 3)}
    world = Timeline([40.0] * 4, held, dict.fromkeys(held, lambda second: 200.0 if second < 1800 else 0.0))
    found = judged(world, 1800 + 3600)
    first = next(at for at, one in enumerate(found) if one.candidate)

    assert 1800 + 300 <= first * 10 < 1800 + 360
    assert {one.verdict for one in found[first:]} == {"stuck_member"}


def test_time_without_members_is_no_rest() -> None:
    """A deployment that takes the whole group away for eight minutes, of a client that commits once a minute."""
    held = {"m0": (0, 1), "m1": (2, 3)}
    world = Timeline([40.0] * 4, held, dict.fromkeys(held, 200.0), commit_s=60)
    found = judged(world, 2000)
    world.held = {}
    found += judged(world, 480, found[-1].state)
    world.held = held
    found += judged(world, 1200, found[-1].state)

    assert not [one.verdict for one in found if one.candidate]


def test_an_outage_of_the_whole_cluster_is_no_rest() -> None:
    """Clients that come back commit a minute later; what was unread before the outage has waited for all of it."""
    held = {"m0": (0, 1), "m1": (2, 3)}
    world = Timeline([40.0] * 4, held, dict.fromkeys(held, 200.0), commit_s=60)
    found = judged(world, 2030)
    world.second += 600
    world.hangs = dict.fromkeys(held, world.second)
    found += judged(world, 400, found[-1].state)
    rests = [one.state.at_rest_s for one in found[-40:]]

    assert max(rests) < 480
    assert [one.candidate is not None for one in found[-40:]] == [rest > Policy().hold for rest in rests]
    assert found[-1].candidate


def test_an_outage_of_the_whole_cluster_is_no_silence_of_the_member_that_comes_back_last() -> None:
    """Its first large poll after the outage takes it longer than the others."""
    held = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
    world = Timeline([40.0] * 6, held, dict.fromkeys(held, 200.0), commit_s=60)
    found = judged(world, 2030)
    world.second += 600
    world.hangs = {"m1": world.second}
    found += judged(world, 240, found[-1].state)
    world.hangs = {}
    found += judged(world, 600, found[-1].state)

    assert not [one.verdict for one in found if one.candidate]


def test_a_group_that_was_seen_to_commit_once_may_rest(group: Make) -> None:
    """Its first commit, an hour ago, is also its last: that it went on meanwhile is not known."""
    known = group({"t": 8 * [SILENT]}, FOUR).look()
    once = group({"t": 8 * [SILENT]}, FOUR, gaps_ms=()).look()
    state = replace(known.state, at_rest_s=890.0, going_since=NOW - 90_000_000)

    assert list(stuck_member.find(replace(known, state=state)))
    assert not list(stuck_member.find(replace(once, state=state)))


def test_a_rest_that_is_the_groups_habit_is_none(group: Make) -> None:
    made = group({"t": 8 * [SILENT]}, FOUR)
    habits = {"rest": Habit(700.0, NOW - 3_600_000)}
    _, found = made.looked(at_rest_s=890.0, going_since=NOW - 90_000_000, habits=habits)

    assert leading(found) == "balanced"


@pytest.mark.slow
def test_while_the_whole_group_sleeps_nobody_is_silent_and_the_first_to_wake_makes_nobody_stuck() -> None:
    def sleeps(until: int) -> Callable[[int], float]:
        return lambda second: 0.0 if 600 < second < until else 400.0

    held = {"m0": (0, 1), "m1": (2, 3)}
    world = Timeline([40.0] * 4, held, {"m0": sleeps(1800), "m1": sleeps(1900)})
    found = judged(world, 3000)

    assert {str(f.verdict) for one in found for f in one.findings if f.ripe} <= {"balanced"}


@pytest.mark.slow
def test_a_member_that_hangs_is_told_before_its_client_leaves_the_group() -> None:
    """After 300 s in one poll: then the next holder hangs at the same record, and its silence begins anew."""
    held = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
    speed: dict[str, Any] = {"m0": lambda second: 0.0 if second > 600 else 200.0, "m1": 200.0, "m2": 200.0}
    found = judged(Timeline([40.0] * 6, held, speed), 1500)
    first = next(at for at, one in enumerate(found) if one.candidate)

    assert {one.verdict for one in found if one.candidate} == {"stuck_member"}
    assert 600 + 255 <= first * 10 < 600 + 300


def test_how_long_it_may_be_silent_hangs_on_how_seldom_it_commits(group: Make) -> None:
    made = group(TOPIC, FOUR)
    seldom = silent(made, 400.0, gaps=9 * (300_000,))
    model = made.look(members=seldom)

    assert stuck_member.limit_s(model, 0) == 900
    assert stuck_member.limit_s(replace(model, state=replace(model.state, habits={})), 1) == 0.85 * 300


def test_of_a_reader_without_members_nobody_says_that_it_is_in_the_group(group: Make) -> None:
    made = group({"t": [SILENT, FINE, FINE]}, {}, type="simple", protocol=None)
    name = made.look().names[0]
    silence = {name: MemberState(silent_s=4000.0, silent_seen=NOW - 2500)}
    model, found = made.looked(members=silence)

    assert leading(found) == "stuck_member"
    assert "in the group" not in stuck_member.reason(model, found[0])
    assert "other readers" in stuck_member.reason(model, found[0])


@pytest.mark.slow
@pytest.mark.parametrize("hung_for_s", [60, 300, 900, 1500, 3000])
def test_a_member_that_hangs_when_kagent_first_looks_is_told_within_ten_minutes(hung_for_s: int) -> None:
    """What waits by then may be one fetch as far as kagent knows, but the member has had all that time for it."""
    held = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
    world = Timeline([50.0] * 6, held, dict.fromkeys(held, 220.0), hangs={"m0": 300})
    world.run(300 + hung_for_s)
    world.ends = EndHistory(6)

    assert told(world, 600) == ["stuck_member"]


@pytest.mark.parametrize(
    ("age", "words"), [(900, "nothing new for 15 min"), (4000, "nothing new for at least 60 min")]
)
def test_a_silence_from_before_the_first_log_end_has_lasted_at_least_since_then(
    group: Make, age: int, words: str
) -> None:
    made = group(
        {"t": [{**SILENT, "age": age}, FINE, FINE, FINE]}, {"m0": {"t": [0]}, "m1": {"t": [1, 2, 3]}}
    )
    name = made.look().names[0]
    silence = {name: MemberState(silent_s=4000.0, silent_seen=NOW - 2500)}
    model, found = made.looked(members=silence)

    assert leading(found) == "stuck_member"
    assert words in stuck_member.reason(model, found[0])
