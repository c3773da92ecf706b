"""lost_data: retention was faster; told for what is certain, and not for what was fetched before it was deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kagent.detect.detectors import data_loss
from kagent.recommend.render import diagnose
from tests.fixtures.findings import FINE, FOUR, LATE, leading
from tests.fixtures.timeline import Timeline, judged

Make = Callable[..., Any]
BEHIND = {**LATE, "lag": 400_000}


def test_commits_below_the_log_start_that_come_again_lost_what_lies_between(group: Make) -> None:
    taken = {**BEHIND, "start": 9_800_000, "moved": 60}
    made = group({"t": [taken, *7 * [FINE]]}, FOUR)
    before = made.look().state
    model, found = made.looked(trail=before.trail)

    assert leading(found) == "lost_data"
    assert found[0].evidence["partitions"] == [["t", 0]]
    assert found[0].evidence["lost"] == 200_250
    assert found[0].evidence["lost_by_partition"] == [200_250]
    assert data_loss.reason(model, found[0]).startswith("Retention deleted 200,250 records of t-0")


def test_each_partition_is_told_with_its_own_loss(group: Make) -> None:
    one, two = ({**BEHIND, "start": start, "moved": 60} for start in (9_800_000, 9_700_000))
    made = group({"t": [one, *6 * [FINE], two]}, FOUR)
    _, found = made.looked(trail=made.look().state.trail)

    assert found[0].evidence["partitions"] == [["t", 0], ["t", 7]]
    assert found[0].evidence["lost_by_partition"] == [200_250, 100_250]


def test_a_client_that_had_fetched_the_records_already_lost_nothing(group: Make) -> None:
    """It commits beyond the log start, by no more than it can have read since."""
    made = group({"t": [{**FINE, "start": 9_999_000}, *7 * [FINE]]}, FOUR)
    _, found = made.looked(trail={"t/0": 9_998_500})

    assert leading(found) == "balanced"


def test_a_reset_to_the_end_leaps_over_what_is_lost(group: Make) -> None:
    made = group({"t": [{**FINE, "start": 9_900_000}, *7 * [FINE]]}, FOUR)
    _, found = made.looked(trail={"t/0": 9_500_000})

    assert leading(found) == "lost_data"
    assert found[0].evidence["lost"] == 400_000


def test_a_leap_is_judged_once_a_log_start_is_known_that_is_younger(group: Make) -> None:
    leapt = group({"t": [{**FINE, "age": -1}, *7 * [FINE]]}, FOUR).look(trail={"t/0": 9_500_000}).state
    _, found = group({"t": [{**FINE, "start": 9_900_000}, *7 * [FINE]]}, FOUR).looked(trail=leapt.trail)
    kept = group({"t": 8 * [FINE]}, FOUR).look(trail=leapt.trail).state

    assert leapt.trail == {"t/0": 9_500_000}
    assert found[0].evidence["lost"] == 400_000
    assert (kept.trail, kept.lost) == ({}, {})  # nothing was deleted: somebody skipped them


def test_a_loss_is_told_for_an_hour(group: Make) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now

    assert leading(made.looked(lost={"t/0": (now - 3_000_000, 500)})[1]) == "lost_data"
    assert leading(made.looked(lost={"t/0": (now - 3_700_000, 500)})[1]) == "balanced"


def hung(hangs: Mapping[str, int]) -> Timeline:
    held = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
    return Timeline([40.0] * 6, held, dict.fromkeys(held, 200.0), hangs=hangs)


@pytest.mark.parametrize("hangs", [{"m0": 1800}, {"m0": 1800, "m1": 1800, "m2": 1800}])
def test_what_is_deleted_while_its_member_stands_is_lost(hangs: Mapping[str, int]) -> None:
    """It commits nothing at all, as a Java client that hangs."""
    world = hung(hangs)
    stuck = judged(world, 2400)[-1]
    world.delete(keep=4000)
    lost = judged(world, 30, stuck.state)[-1]

    assert (stuck.verdict, lost.verdict) == ("stuck_member", "lost_data")
    assert lost.findings[0].evidence["lost"] == pytest.approx(2 * len(hangs) * (600 * 40 - 4000), rel=0.02)


def test_who_makes_no_progress_and_will_lose_more_is_to_be_restarted_first() -> None:
    world = hung({"m2": 1800})
    stuck = judged(world, 2400)[-1]
    world.delete(keep=4000)
    lost = judged(world, 30, stuck.state)[-1]
    assert lost.model is not None
    made = diagnose(lost.model, lost.findings[0])

    assert lost.verdict == "lost_data"
    assert made.member == "m2/h"
    assert [a.type for a in made.actions] == ["restart_member", "reset_or_accept_loss"]
    assert "m2/h makes no progress, so more will follow" in data_loss.reason(lost.model, lost.findings[0])


def test_a_member_that_may_still_process_what_it_fetched_lost_nothing_yet() -> None:
    world = hung({"m0": 1800})
    silent = judged(world, 1950)[-1]
    world.delete(keep=400)

    assert not judged(world, 30, silent.state)[-1].state.lost
