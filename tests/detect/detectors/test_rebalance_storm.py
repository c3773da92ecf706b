"""unstable: members that come back again and again; everybody in turn is a deployment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kagent.detect.detectors import rebalance_storm
from tests.fixtures.findings import FINE, FOUR, STANDS, leading
from tests.fixtures.group_builder import NOW

Make = Callable[..., Any]


def restless(now: int, turns: int = 9) -> dict[str, Any]:
    return {
        "generations": tuple((now - 500_000 + n * 60_000 // max(1, turns // 9), n) for n in range(turns)),
        "restless_since": now - 500_000,
        "names": tuple(FOUR),
    }


def test_members_that_come_back_again_and_again_are_a_storm_and_everybody_in_turn_a_deployment(
    group: Make,
) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now
    model, found = made.looked(**restless(now), comings={"m1": 4 * (NOW,)})

    assert leading(found) == "unstable"
    assert (
        rebalance_storm.reason(model, found[0])
        == "The group rebalanced 8 times in 10 min; m1 leaves and rejoins."
    )
    assert leading(made.looked(**restless(now), comings=dict.fromkeys(FOUR, (NOW,)))[1]) == "balanced"


def test_two_restarts_of_a_member_after_a_deployment_are_no_storm_and_three_are(group: Make) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now

    def verdict(times: int) -> str | None:
        return leading(made.looked(**restless(now), comings={"m3": times * (NOW,)})[1])

    assert [verdict(times) for times in (2, 3)] == ["balanced", "unstable"]


def test_members_that_a_scaler_removes_now_and_then_are_no_storm(group: Make) -> None:
    """They came back three times within the hour, once of them within the ten minutes in which it added members four times."""
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now
    back = dict.fromkeys(("m2", "m3"), (now - 2_400_000, now - 1_200_000, now - 400_000))

    assert leading(made.looked(**restless(now), comings=back)[1]) == "balanced"


def test_a_deployment_that_does_not_end_is_a_storm_after_two_minutes_a_member(group: Make) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now
    in_turn = {**restless(now), "comings": dict.fromkeys(FOUR, (NOW,))}

    assert leading(made.looked(**in_turn, restless_s=890.0)[1]) == "balanced"
    assert leading(made.looked(**in_turn, restless_s=910.0)[1]) == "unstable"


def test_three_deployments_in_a_row_are_no_storm_and_more_are(group: Make) -> None:
    """A restart makes three rebalances of a cooperative group: three deployments of four members 36."""
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now
    in_turn = {**restless(now), "comings": dict.fromkeys(FOUR, (NOW,))}
    last = in_turn["generations"][-1][1]

    assert leading(made.looked(**in_turn, restless_from=last - 36)[1]) == "balanced"
    assert leading(made.looked(**in_turn, restless_from=last - 37)[1]) == "unstable"


def test_where_a_partition_stands_through_it_its_record_is_awaited(group: Make) -> None:
    made = group({"t": [STANDS, *7 * [FINE]]}, FOUR)
    stands = made.look().state.standing
    _, found = made.looked(**restless(made.observe().now), comings={"m1": 4 * (NOW,)}, standing=stands)

    assert leading(found) == "stalled"
    assert "unstable" not in {str(f.verdict) for f in found}


def test_four_generations_are_no_storm(group: Make) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)

    assert (
        leading(made.looked(**restless(made.observe().now, 4), comings={"m1": 2 * (NOW,)})[1]) == "balanced"
    )


def test_members_that_come_back_several_at_once_may_be_an_autoscalers(group: Make) -> None:
    made = group({"t": 8 * [FINE]}, FOUR)
    now = made.observe().now
    times = tuple(now - n * 120_000 for n in range(4))
    together = {"m2": times, "m3": tuple(time + 10_000 for time in times)}
    in_turn = {"m2": times, "m3": tuple(time + 60_000 for time in times)}

    model, found = made.looked(**restless(now), comings=together)

    assert leading(found) == "unstable"
    assert (
        rebalance_storm.reason(model, found[0])
        == "The group rebalanced 8 times in 10 min; m2 and 1 other leave and rejoin together."
    )
    assert found[0].evidence["together"]
    assert not made.looked(**restless(now), comings=in_turn)[1][0].evidence["together"]
    # One member that crashes fast is nobody's number.
    fast = {"m2": tuple(now - n * 12_000 for n in range(6))}
    assert not made.looked(**restless(now), comings=fast)[1][0].evidence["together"]
