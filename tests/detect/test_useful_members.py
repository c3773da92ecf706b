"""The number of useful members moves only for load that members change, and not to and fro."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kagent.contract.recommendation import ActionType, Verdict
from kagent.detect.detectors import ORDER
from kagent.detect.enough_members import RAISED_MS
from kagent.detect.finding import Finding
from kagent.detect.state import JudgeState, Useful
from kagent.detect.useful_members import LOOK_EVERY_MS, advance, due
from kagent.recommend.render import diagnose, reason
from kagent.simulator.run import run
from kagent.simulator.scenario_file import parse
from tests.fixtures.findings import CALM, FINE, FOUR
from tests.fixtures.group_builder import NOW

LATE = {"end": 10_000_000, "rate": 100.0, "lag": 40_000}
LONG_AGO = 1
SPEED = 150.0
TWO_OF_TWELVE = {"m0": {"t": [*range(6)]}, "m1": {"t": [*range(6, 12)]}}
SPEED_OF_TWO = 600.0
USUAL = {"end": 10_000_000, "rate": 110.0, "lag": 8000}
ROSE = {**USUAL, "rate": 190.0, "before": 110.0}
"""Three members are enough for the inflow of most of the last five minutes, six for that of the last."""


def looked(group: Any, parts: list[dict[str, Any]], **state: Any) -> Useful | None:
    made = group({"t": parts}, FOUR)
    known = {"members": made.at_work(dict.fromkeys(FOUR, SPEED)), **state}
    model, found = made.looked(**known)
    return advance(model, found).useful


def test_a_group_that_is_too_small_gets_more_once_that_has_held_for_a_minute(group: Any) -> None:
    first = looked(group, [LATE] * 8)
    assert first is not None
    assert (first.members, first.more_since > 0) == (4, True)
    later = looked(group, [LATE] * 8, useful=replace(first, more_since=LONG_AGO))
    assert later is not None
    assert later.members == 8


def looked_two(group: Any, *parts: dict[str, Any], **useful: Any) -> Useful:
    made = group({"t": [*parts[:-1], *(13 - len(parts)) * parts[-1:]]}, TWO_OF_TWELVE)
    busy = made.at_work(dict.fromkeys(TWO_OF_TWELVE, SPEED_OF_TWO))
    model, found = made.looked(members=busy, useful=Useful(**useful))
    after = advance(model, found).useful
    assert after is not None
    return after


def test_a_group_that_is_late_and_gets_later_gets_the_members_for_what_arrives_now(group: Any) -> None:
    assert looked_two(group, USUAL, members=2, more_since=LONG_AGO).members == 3
    assert looked_two(group, ROSE, members=2, more_since=LONG_AGO).members == 6


def test_a_minute_in_which_one_partition_gets_what_others_miss_adds_no_member(group: Any) -> None:
    more, less = {**USUAL, "before": 110.0, "rate": 250.0}, {**USUAL, "before": 110.0, "rate": 97.0}
    assert looked_two(group, more, less, members=2, more_since=LONG_AGO).members == 3


def test_what_arrives_now_alone_does_not_make_a_group_too_small(group: Any) -> None:
    found = looked_two(group, ROSE, members=3, more_since=LONG_AGO)
    assert (found.members, found.more_since) == (3, 0)


def test_a_rise_that_was_too_little_is_corrected_without_a_new_minute(group: Any) -> None:
    found = looked_two(group, ROSE, members=3, raised_at=NOW - 30_000)
    assert found.members == 6
    assert found.raised_at > NOW - 30_000


def test_a_rise_of_long_ago_is_not_corrected_but_weighed_anew(group: Any) -> None:
    found = looked_two(group, ROSE, members=2, raised_at=NOW - RAISED_MS - 1000)
    assert (found.members, found.raised_at, found.more_since > 0) == (2, 0, True)


def test_a_group_that_catches_up_is_not_corrected_without_a_new_minute(group: Any) -> None:
    drains = {**USUAL, "rate": 95.0, "lag": 16_000}
    found = looked_two(group, drains, members=1, raised_at=NOW - 30_000)
    assert (found.members, found.more_since > 0) == (1, True)


def test_nobody_late_ends_the_correction(group: Any) -> None:
    found = looked_two(group, {**ROSE, "lag": 0}, members=3, raised_at=NOW - 30_000)
    assert (found.members, found.raised_at) == (3, 0)


def test_a_rebalance_does_not_end_the_correction(group: Any) -> None:
    made = group({"t": [ROSE] * 12}, TWO_OF_TWELVE)
    busy = made.at_work(dict.fromkeys(TWO_OF_TWELVE, SPEED_OF_TWO))
    known = Useful(3, capacity=SPEED_OF_TWO, raised_at=NOW - 30_000)
    model, found = made.looked(members=busy, useful=known, generation_at=NOW - 1000)
    after = advance(model, found).useful
    assert after is not None
    assert (after.because, after.raised_at) == ("settling", known.raised_at)


def test_members_added_by_hand_that_are_needed_are_not_scaled_away(group: Any) -> None:
    busy = [{**FINE, "rate": 100.0}] * 8
    found = looked(group, busy, useful=Useful(1, capacity=SPEED, more_since=LONG_AGO))
    assert found is not None
    assert found.members == 8


def test_a_group_with_more_members_than_partitions_never_wants_more_than_these(group: Any) -> None:
    found = looked(group, [FINE] * 2)
    assert found is not None
    assert found.members == 2


def test_a_bad_spread_alone_needs_no_members(group: Any) -> None:
    parts = [{**LATE, "lag": 5000}] * 2 + [{**CALM, "rate": 10}] * 6
    found = looked(group, parts, useful=Useful(4, more_since=LONG_AGO))
    assert found is not None
    assert (found.members, found.because) == (4, "spread")


def test_one_partition_that_gets_more_than_a_member_can_do_needs_no_members(group: Any) -> None:
    hot = {"end": 10_000_000, "rate": 400.0, "lag": 100_000}
    found = looked(group, [hot, *7 * [CALM]], useful=Useful(4, more_since=LONG_AGO))
    assert found is not None
    assert (found.members, found.because) == (4, "hot_partition")


def test_the_number_that_a_message_names_is_the_number_at_once(group: Any) -> None:
    """One number in the reason, the action and the metric, without another wait."""
    made = group({"t": [LATE] * 8}, FOUR)
    work = made.at_work(dict.fromkeys(FOUR, SPEED), tuple(FOUR), "under_provisioned")
    model, found = made.looked(members=work, useful=Useful(4, capacity=SPEED))
    assert found[0].ripe
    model = replace(model, state=advance(model, found))
    said = diagnose(model, found[0])
    (action,) = [a for a in said.actions if a.type is ActionType.SET_MEMBER_COUNT]
    assert model.state.useful is not None
    assert (model.state.useful.members, found[0].evidence["needed"], action.params["members"]) == (8, 8, 8)
    assert "needs 8 members to catch up" in reason(said)


def test_a_number_that_is_already_greater_is_what_the_message_names(group: Any) -> None:
    made = group({"t": [{**LATE, "rate": 80.0}] * 8}, FOUR)
    work = made.at_work(dict.fromkeys(FOUR, SPEED), tuple(FOUR), "under_provisioned")
    _, found = made.looked(members=work, useful=Useful(6, capacity=SPEED))
    assert found[0].evidence["needed"] >= 6


@pytest.mark.parametrize("verdict", [d.VERDICT for d in ORDER if not d.MEMBERS_MAY_HELP])
def test_while_members_are_not_what_is_missing_the_number_stands(group: Any, verdict: Verdict) -> None:
    made = group({"t": [LATE] * 8}, FOUR)
    known = Useful(4, more_since=LONG_AGO, capacity=SPEED, raised_at=NOW - 30_000)
    model, _ = made.looked(members=made.at_work(dict.fromkeys(FOUR, SPEED)), useful=known)
    found = advance(model, (Finding(verdict, (0,), (0,), 100.0, {}, since=1),)).useful
    assert found is not None
    assert (found.members, found.because, found.more_since, found.raised_at) == (4, str(verdict), 0, 0)


def test_fewer_only_after_half_an_hour_in_which_fewer_would_do(group: Any) -> None:
    idle = [{**FINE, "rate": 10.0}] * 8
    first = looked(group, idle, useful=Useful(4, capacity=SPEED))
    assert first is not None
    assert (first.members, first.fewer_since > 0) == (4, True)
    later = looked(group, idle, useful=replace(first, fewer_since=LONG_AGO))
    assert later is not None
    assert later.members == 1


def test_nothing_is_told_until_a_member_was_busy(group: Any) -> None:
    model, found = group({"t": [FINE] * 8}, FOUR).looked()
    assert advance(model, found) is model.state


def test_a_well_group_is_looked_at_for_fewer_now_and_then() -> None:
    state = JudgeState(first_seen=0, useful=Useful(4, looked_at=1_000_000))
    assert not due(state, 1_000_001)
    assert due(state, 1_000_000 + LOOK_EVERY_MS)
    assert not due(JudgeState(first_seen=0), 2**40)


def test_it_outlives_the_process() -> None:
    state = JudgeState(first_seen=1, useful=Useful(4, "spread", 12.5, 7, 0, 9, 8))
    assert JudgeState.from_row(state.to_row()) == state


def scenario(**changes: Any) -> Any:
    topic = {"partitions": 12, "inflow": 2000, "cost": 0.003} | changes.pop("topic", {})
    return parse(
        {"name": "s", "topics": {"t": topic}, "members": 4, "hours": 0.5, "follow": "useful", "expect": "under_provisioned"}
        | changes
    )  # fmt: skip


@pytest.mark.slow
def test_in_the_simulator_a_group_grows_to_what_it_needs_and_no_further() -> None:
    report = run(scenario())
    assert [count for _, count in report.sizes] == [12]
    assert report.drained is not None


@pytest.mark.slow
def test_in_the_simulator_a_hot_key_adds_no_member() -> None:
    hot = {"spread": [40, *11 * [1]], "cost": 0.001}
    assert run(scenario(topic=hot, expect="hot_partition")).sizes == ()
