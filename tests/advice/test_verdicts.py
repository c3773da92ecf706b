"""Each verdict beside the neighbour that would be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kagent.advice.message import tell
from kagent.advice.rates import Busy, fit
from kagent.advice.verdicts import findings

Make = Callable[..., Any]
LATE = {"end": 10_000_000, "rate": 100, "lag": 100_000}
FINE = {"end": 10_000_000, "rate": 100, "lag": 0}
STANDS = {**FINE, "lag": 50_000, "moved": 900}
FOUR = {"m0": {"t": [0, 1]}, "m1": {"t": [2, 3]}, "m2": {"t": [4, 5]}, "m3": {"t": [6, 7]}}


def leading(look: Any) -> str:
    found = findings(look)
    return str(tell(look, found[0]).verdict) if found else "balanced"


def busy(**per_second: float) -> dict[str, Busy]:
    return {f"app-{name}/10.0.0.1": Busy(100, 10, {"t": 100 * n}) for name, n in per_second.items()}


def test_nothing_is_the_matter_with_a_group_that_is_caught_up(group: Make) -> None:
    assert leading(group({"t": 8 * [FINE]}, FOUR).look()) == "balanced"


def test_a_member_with_more_to_do_is_a_matter_of_the_spread(group: Make) -> None:
    look = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR).look(busy=busy(m0=1000, m1=1000, m2=1000))

    assert leading(look) == "rebalance"


def test_a_member_that_is_slower_at_the_same_topic_is_slow_wherever_its_partitions_came_from(
    group: Make,
) -> None:
    look = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR).look(busy=busy(m0=100, m1=1000, m2=1000))

    assert leading(look) == "slow_member"


def test_one_partition_with_everything_is_hot_and_not_slow(group: Make) -> None:
    look = group({"t": [{**LATE, "lag": 1_000_000}, *7 * [FINE]]}, FOUR).look(busy=busy(m0=1000, m1=1000))

    assert leading(look) == "hot_partition"


def test_one_partition_that_stands_while_the_members_others_move_is_a_record(group: Make) -> None:
    assert leading(group({"t": [STANDS, *7 * [FINE]]}, FOUR).look()) == "stalled"


def test_a_member_none_of_whose_partitions_move_is_stuck(group: Make) -> None:
    gone = {**FINE, "lag": 0, "age": 900}
    assert leading(group({"t": [gone, gone, *6 * [FINE]]}, FOUR).look()) == "stuck_member"


def test_a_group_that_has_always_paused_that_long_is_neither(group: Make) -> None:
    gone = {**FINE, "lag": 0, "age": 900}
    look = group({"t": [gone, gone, *6 * [FINE]]}, FOUR).look(stops={"t": 3_400_000})

    assert leading(look) == "balanced"


def test_idle_members_beside_one_that_is_saturated_do_not_call_for_more(group: Make) -> None:
    look = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR).look(busy=busy(m0=190))

    assert leading(look) != "under_provisioned"


def test_more_inflow_than_all_members_can_do_is_under_provisioned(group: Make) -> None:
    look = group({"t": 8 * [LATE]}, FOUR).look(busy=busy(m0=150, m1=150, m2=150, m3=150))
    found = findings(look)

    assert str(found[0].verdict) == "under_provisioned"
    assert found[0].evidence["needed"] == 6


def test_an_absent_group_is_spoken_of_only_when_it_had_members_today(group: Make) -> None:
    waits = {"t": [{**FINE, "lag": 0, "age": 7200}]}
    gone = group(waits, {})
    now = gone.look().now

    assert leading(gone.look(members_at=now - 7_200_000, empty_since=now - 7_200_000)) == "no_members"
    assert leading(gone.look(members_at=now - 90_000_000, empty_since=now - 90_000_000)) == "balanced"
    often = gone.look(members_at=now - 7_200_000, empty_since=now - 7_200_000, longest_absence=80_000_000)
    assert leading(often) == "balanced"


def test_costs_of_topics_are_told_apart_and_speeds_follow() -> None:
    did = {
        "a": Busy(100, 10, {"cheap": 90_000.0, "dear": 100.0}),
        "b": Busy(100, 10, {"cheap": 10_000.0, "dear": 900.0}),
        "c": Busy(100, 10, {"cheap": 50_000.0, "dear": 500.0}),
        "slow": Busy(100, 10, {"cheap": 10_000.0, "dear": 100.0}),
    }
    rates = fit(did)

    assert round(rates.cost["dear"].value / rates.cost["cheap"].value) == 100
    assert round(rates.speed["slow"].value, 2) == 0.2


def test_what_rests_on_too_few_intervals_is_unknown() -> None:
    assert fit({"a": Busy(100, 1, {"t": 100.0})}).cost == {}


def test_several_slow_members_are_slow_beside_those_that_keep_up_with_more(group: Make) -> None:
    slow = {**LATE, "rate": 300}
    parts = {"t": [*4 * [slow], *4 * [{**FINE, "rate": 300}]]}
    quiet = {"t": [*4 * [slow], *4 * [{**FINE, "rate": 20}]]}

    # The others read 600 records a second each and were never behind; or they have shown no more than these two.
    assert leading(group(parts, FOUR).look(busy=busy(m0=200, m1=200))) == "slow_member"
    assert leading(group(quiet, FOUR).look(busy=busy(m0=200, m1=200))) == "rebalance"


def test_what_stands_at_the_last_stable_offset_is_a_transaction_and_what_stands_before_it_a_record(
    group: Make,
) -> None:
    def stands(stable: int) -> str:
        part = {"end": 10_000_000, "rate": 100, "committed": 9_900_000, "moved": 900, "stable": stable}
        return leading(group({"t": [part, *7 * [FINE]]}, FOUR).look())

    assert stands(9_900_000) == "blocked_by_transaction"
    assert stands(10_000_000) == "stalled"


def test_a_partition_with_most_of_the_backlog_is_hot_only_if_no_member_could_keep_up_with_it(
    group: Make,
) -> None:
    def skewed(inflow: int) -> str:
        first = {**LATE, "rate": inflow, "lag": 80_000}
        second = {**LATE, "rate": 600, "lag": 16_000}
        return leading(
            group({"t": [first, second, *6 * [FINE]]}, FOUR).look(busy=busy(m0=1000, m1=1000, m2=1000))
        )

    assert skewed(600) == "rebalance"
    assert skewed(1100) == "hot_partition"


def test_members_that_come_back_again_and_again_are_a_storm_and_everybody_in_turn_a_deployment(
    group: Make,
) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now
    turns = tuple((now - 500_000 + n * 60_000, n) for n in range(9))
    restless: dict[str, Any] = {"generations": turns, "restless_since": now - 500_000, "names": tuple(FOUR)}

    assert leading(made.look(**restless, comings={"m1": 4})) == "unstable"
    assert leading(made.look(**restless, comings=dict.fromkeys(FOUR, 1))) == "balanced"


def test_what_retention_took_leads_before_the_lag_that_led_to_it(group: Make) -> None:
    behind = {**LATE, "lag": 400_000}
    taken = {**behind, "start": 9_800_000}

    assert leading(group({"t": 8 * [taken]}, FOUR).look()) == "lost_data"
    assert leading(group({"t": [behind, *7 * [FINE]]}, FOUR).look()) == "hot_partition"


def test_members_without_a_partition_are_idle_after_a_week_and_no_matter_of_the_spread(group: Make) -> None:
    made = group({"t": [FINE]}, {"m0": {"t": [0]}, "m1": {}})
    now = made.observe().now

    assert leading(made.look(generation_at=now - 610_000_000)) == "idle_members"
    assert leading(made.look(generation_at=now - 600_000_000)) == "balanced"


def test_a_commit_made_again_without_moving_is_no_matter_of_the_spread(group: Make) -> None:
    rare = {"rate": 100, "age": 10, "end": 10_000_000}
    stands, moves = {**rare, "lag": 60_000, "moved": 610}, {**rare, "lag": 0}
    made = group({"t": [stands, *7 * [moves]]}, FOUR)
    seen = made.observe()
    commits = {"t": replace(seen.commits["t"], gaps=[300_000] * 5)}
    look = replace(made.look(), seen=replace(seen, commits=commits))

    assert look.pinned.tolist() == [True, *7 * [False]]
    assert not look.stopped.any()
    assert leading(look) == "balanced"
