"""rebalance: another assignment catches up, today's does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kagent.detect.detectors import skew
from kagent.detect.group_model import GroupModel
from kagent.detect.late_member import LateMember
from kagent.policy import Policy
from kagent.simulator import load, run
from tests.fixtures.findings import CALM, FINE, FOUR, HOT, LATE, TWO, leading
from tests.fixtures.group_builder import NOW

Make = Callable[..., Any]
SICK = Path(__file__).parents[3] / "benchmarks/scenarios/sick"
SKEWED = {"t": [HOT, HOT, *6 * [CALM]]}


def test_a_member_that_gets_too_much_beside_members_with_room_is_a_matter_of_the_spread(group: Make) -> None:
    made = group(SKEWED, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 500, "m1": 500}, ["m0"]))

    assert leading(found) == "rebalance"
    evidence = found[0].evidence
    assert (evidence["drain_now_s"], evidence["may_not_be_enough"]) == (None, False)
    assert 0 < evidence["drain_best_s"] < 3600
    assert "does not catch up at its present speed" in skew.reason(model, found[0])


def test_without_a_measured_speed_nothing_is_said(group: Make) -> None:
    made = group(SKEWED, FOUR)
    known = made.at_work({"m0": 500}, ["m0"])
    known = {name: m.__class__(spell=m.spell, lateness=m.lateness, time=m.time) for name, m in known.items()}
    _, found = made.looked(members=known)

    assert [f.missing for f in found] == ["unsure"]


def test_a_backlog_that_is_gone_within_hold_is_left_alone(group: Make) -> None:
    lag = {**LATE, "lag": 20_000}
    made = group({"t": [lag, lag, *6 * [FINE]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 500, "m1": 500}, ["m0"]))

    assert leading(found) == "balanced"


def draining(made: Any, **backlog: Any) -> Any:
    """m0 was 1,500 s late five minutes ago, is 1,000 s late now, and does twice what it gets."""
    known = made.at_work({"m0": 400, "m1": 400, "m2": 400, "m3": 400})
    name = made.roster().names[0]
    fell = made.backlog("rebalance", **backlog)
    return {**known, name: replace(known[name], backlog=fell, lateness=((NOW - 10_000, 1010.0),))}


def test_a_backlog_that_drains_visibly_but_slowly_is_shared_out(group: Make) -> None:
    made = group({"t": [*4 * [LATE], *4 * [FINE]]}, FOUR)
    _, found = made.looked(members=draining(made))

    assert leading(found) == "rebalance"
    assert 900 <= found[0].evidence["drain_now_s"] <= 1100


@pytest.mark.parametrize(
    ("policy", "backlog", "missing"),
    [
        (Policy(threshold=9), {}, "draining"),
        (Policy(hold=900), {}, "draining"),
        (Policy(), {"late_s": 100.0}, "evidence"),
        (Policy(), {"commits": 1}, "evidence"),
        (Policy(), {"ramp_s": 200.0, "ramp_records": 500}, "after_pause"),
    ],
)
def test_a_backlog_that_drains_is_left_alone_where_one_thing_is_missing(
    group: Make, policy: Policy, backlog: dict[str, Any], missing: str
) -> None:
    made = group({"t": [*4 * [LATE], *4 * [FINE]]}, FOUR)
    _, found = made.looked(policy, members=draining(made, **backlog))

    assert [(f.ripe, f.missing) for f in found] == [(False, missing)]


def test_a_delay_on_purpose_does_not_fall_and_is_no_drain(group: Make) -> None:
    """Who waits on purpose seems to do more than arrives, but its lateness stays where it is."""
    made = group({"t": [*4 * [LATE], *4 * [FINE]]}, FOUR)
    known = draining(made, most=1005.0)
    _, found = made.looked(members=known)

    assert [(f.ripe, f.missing) for f in found] == [(False, "evidence")]


def test_two_partitions_near_a_members_speed_may_be_helped(group: Make) -> None:
    # 2 · 290 on a member that does 295: one each fits, but leaves next to no room.
    nearly = {"end": 10_000_000, "rate": 290, "lag": 60_000}
    made = group({"t": [nearly, nearly, *6 * [CALM]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 295}, ["m0"]))

    assert leading(found) == "rebalance"
    assert found[0].evidence["may_not_be_enough"]


@pytest.mark.parametrize(("grown_s", "missing"), [(100.0, "evidence"), (200.0, None)])
def test_what_holds_for_an_optimist_alone_needs_the_evidence_of_a_drain(
    group: Make, grown_s: float, missing: str | None
) -> None:
    nearly = {"end": 10_000_000, "rate": 290, "lag": 60_000}
    made = group({"t": [nearly, nearly, *6 * [CALM]]}, FOUR)
    known = made.at_work({"m0": 295}, ["m0"])
    name = made.roster().names[0]
    known[name] = replace(known[name], spell=made.spell(grown_s=grown_s))
    _, found = made.looked(members=known)

    assert [(f.needed_s, f.missing) for f in found] == [(180.0, missing)]


def test_what_holds_for_an_optimist_alone_waits_for_three_windows(group: Make) -> None:
    """With commits minutes apart one look brings all the seconds of evidence."""
    nearly = {"end": 10_000_000, "rate": 290, "lag": 60_000}
    made = group({"t": [nearly, nearly, *6 * [CALM]]}, FOUR)
    known = made.at_work({"m0": 295}, ["m0"])
    name = made.roster().names[0]
    known[name] = replace(known[name], windows=known[name].windows[-2:])
    _, found = made.looked(members=known)

    assert [f.missing for f in found] == ["unsure"]


def test_where_todays_assignment_may_do_as_well_no_other_one_may_help(group: Make) -> None:
    """A member with one partition: whoever else gets it has it alone, too."""
    nearly = {"end": 10_000_000, "rate": 300, "lag": 60_000}
    made = group({"t": [nearly, *3 * [CALM]]}, {f"m{n}": {"t": [n]} for n in range(4)})
    model, found = made.looked(members=made.at_work({"m0": 295}, ["m0"]))

    assert model.drain[0] == float("inf") > model.drain_low[0]
    assert "rebalance" not in {str(f.verdict) for f in found}


LITERAL = Policy(min_behind=0, hold=0)


def test_the_literal_policy_reports_the_crossing_of_threshold_whatever_the_forecast(group: Make) -> None:
    uneven = group({"t": [{**LATE, "lag": 5000}, {**LATE, "lag": 500}]}, TWO)
    even = group({"t": [{**LATE, "lag": 5000}, {**LATE, "lag": 4900}]}, TWO)

    assert leading(uneven.looked(LITERAL)[1]) == "rebalance"
    assert leading(even.looked(LITERAL)[1]) == "balanced"
    assert leading(uneven.looked()[1]) == "balanced"


def test_the_literal_policy_says_how_long_the_drain_takes_where_it_drains(group: Make) -> None:
    made = group({"t": [{**LATE, "lag": 5000}, {**LATE, "lag": 500}]}, TWO)
    _, found = made.looked(LITERAL, members=made.at_work({"m0": 200, "m1": 200}))

    assert 40 <= found[0].evidence["drains_in_s"] <= 60


def test_a_topic_of_which_nothing_waits_explains_no_lateness(group: Make) -> None:
    """Records of u cannot be all that costs time: all of them are read, and those of t wait."""
    calm = {**FINE, "rate": 20}
    members = {f"m{n}": {"t": [n], "u": [n]} for n in range(4)}
    made = group({"t": [LATE, *3 * [calm]], "u": 4 * [calm]}, members)
    model, _ = made.looked(members=made.at_work({"m0": 40}, ["m0"], "rebalance", beside={"u": 10}))

    cases = LateMember(model, 0).at_other_costs
    assert ("t", 1.0) in cases
    assert ("u", 1.0) not in cases


def test_the_sentence_has_the_skew_that_is_published(group: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = group(SKEWED, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 500, "m1": 500}, ["m0"]))
    monkeypatch.setattr(GroupModel, "skew", property(lambda _: 3.95497))

    assert model.shown_skew == 3.955
    assert f"(skew {model.shown_skew:.2f})" in skew.reason(model, found[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["range-one-partition-topics", "range-fourth-idle", "five-partition-topics"])
def test_topics_with_as_many_partitions_each_move_freely_where_nobody_said_that_they_are_joined(
    name: str,
) -> None:
    """The classical failures of range: all on the first member, none on the fourth, twice as many on the first."""
    report = run(replace(load(SICK / f"{name}.yaml"), hours=0.25), seed=21)
    (first, *_) = report.messages

    assert {str(message.verdict) for message in report.messages} == {"rebalance"}
    assert "yes" in {action.feasible for action in first.actions}
    assert len({(move.topic, move.partition) for move in first.moves}) > 1
    assert "no assignment" not in first.reason
