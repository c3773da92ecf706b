"""under_provisioned: no assignment catches up, even for an optimist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kagent.detect.detectors import skew, under_provisioned
from kagent.simulator import run
from kagent.simulator.scenario_file import parse
from tests.fixtures.findings import CALM, FINE, FOUR, LATE, leading

Make = Callable[..., Any]
ALL = ("m0", "m1", "m2", "m3")


def test_more_inflow_than_all_members_can_do_takes_more_of_them(group: Make) -> None:
    made = group({"t": 8 * [LATE]}, FOUR)
    work = made.at_work(dict.fromkeys(ALL, 150), ALL, "under_provisioned")
    model, found = made.looked(members=work)

    assert leading(found) == "under_provisioned"
    assert (found[0].evidence["needed"], found[0].evidence["members"]) == (
        8,
        4,
    )  # With seven, one would hold two partitions of 100/s, and do 150/s.
    assert "The group needs 8 members to catch up in about" in under_provisioned.reason(model, found[0])
    fewer = replace(found[0], evidence={**found[0].evidence, "keep_up": 5, "caught_up_s": 240})
    assert "needs 5 members to keep up, 8 to catch up in about 4 min" in under_provisioned.reason(
        model, fewer
    )


def test_five_equal_partitions_on_four_members_that_do_one_and_a_half_are_too_many(group: Make) -> None:
    """The inflow is less than the members can do together, but one of them must hold two partitions."""
    members = {"m0": {"t": [0, 1]}, "m1": {"t": [2]}, "m2": {"t": [3]}, "m3": {"t": [4]}}
    made = group({"t": [LATE, LATE, *3 * [FINE]]}, members)
    work = made.at_work({"m0": 150, "m1": 150}, ["m0"], "under_provisioned")
    model, found = made.looked(members=work)

    assert leading(found) == "under_provisioned"
    assert "but no assignment lets each of them keep up: app-m0" in under_provisioned.reason(model, found[0])


def test_with_as_many_members_as_partitions_partitions_come_first(group: Make) -> None:
    members = {name: {"t": [at]} for at, name in enumerate(ALL)}
    made = group({"t": 4 * [LATE]}, members)
    model, found = made.looked(members=made.at_work(dict.fromkeys(ALL, 75), ALL, "under_provisioned"))

    assert leading(found) == "under_provisioned"
    assert found[0].evidence["partitions_first"]
    assert "more partitions, then more members" in under_provisioned.reason(model, found[0])


def test_a_partition_that_is_too_much_for_any_member_is_named_beside_the_members_that_are_too_few(
    group: Make,
) -> None:
    """Of 480 records/s that two members of 200 get, 260 come to one partition: it stays late with any number of members."""
    rates = [260, 80, 80, 20, 20, 20]
    topic = [{**LATE, "rate": rate, "lag": 60_000 if rate > 20 else 0} for rate in rates]
    made = group({"t": topic}, {"m0": {"t": [0, 1, 2]}, "m1": {"t": [3, 4, 5]}})
    model, found = made.looked(members=made.at_work({"m0": 200}, ["m0"], "under_provisioned"))

    assert leading(found) == "under_provisioned"
    assert under_provisioned.reason(model, found[0]).endswith(
        "The group needs more members, and also finer keys or more partitions: t-0 alone receives more than a member processes."
    )


@pytest.mark.parametrize("busy", [["m0"], ["m0", "m1"]], ids=["one of four", "half"])
def test_it_says_so_where_most_members_were_never_behind_and_may_be_faster(
    group: Make, busy: list[str]
) -> None:
    late, fine = {**LATE, "rate": 180}, {**FINE, "rate": 150}
    members = {"m0": {"t": [0]}, "m1": {"t": [1]}, "m2": {"t": [2]}, "m3": {"t": [3]}}
    made = group({"t": [late, late if len(busy) > 1 else fine, fine, fine]}, members)
    work = made.at_work(dict.fromkeys(busy, 140), ["m0"], "under_provisioned")
    model, found = made.looked(members=work)
    ends = "if the 3 members that were never behind work no faster."

    assert leading(found) == "under_provisioned"
    assert under_provisioned.reason(model, found[0]).endswith(ends) == (len(busy) == 1)
    assert under_provisioned.is_assumed(found[0]) == (len(busy) == 1)


@pytest.mark.parametrize(
    ("lag", "some_on_time", "unknown"),
    [(500_000, False, True), (100_000, False, False), (500_000, True, False)],
    ids=["older than the known log ends", "measured", "another member is on time"],
)
def test_a_group_that_is_late_since_before_the_known_log_ends_may_read_so_on_purpose(
    group: Make, lag: int, some_on_time: bool, unknown: bool
) -> None:
    late = {**LATE, "lag": lag}
    calm = {**FINE, "rate": 70} if some_on_time else late
    made = group({"t": [late, late, late, calm]}, {name: {"t": [at]} for at, name in enumerate(ALL)})
    model, found = made.looked(members=made.at_work(dict.fromkeys(ALL, 75), ALL[:3], "under_provisioned"))
    said = under_provisioned.reason(model, found[0])

    assert leading(found) == "under_provisioned"
    assert said.endswith(", unless it reads so late on purpose.") == unknown
    assert under_provisioned.is_assumed(found[0]) == unknown
    assert ("at least 60 min behind" in said) == (lag == 500_000)


def test_idle_members_beside_one_that_is_saturated_do_not_call_for_more(group: Make) -> None:
    made = group({"t": [LATE, LATE, *6 * [CALM]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 190}, ["m0"], "under_provisioned"))

    assert leading(found) != "under_provisioned"


def test_where_one_topic_may_cost_all_the_time_a_move_may_help(group: Make) -> None:
    """One member has three of four partitions of a topic whose cost nobody can tell: it is always busy with the same mix."""
    dear, cheap = {**LATE, "rate": 30}, {**FINE, "rate": 150}
    topics = {
        "cheap": [{**LATE, "rate": 150}, cheap, cheap, cheap],
        "dear": [dear, dear, dear, {**dear, "lag": 0}],
    }
    members = {"m0": {"dear": [0, 1, 2], "cheap": [0]}, "m1": {"cheap": [1], "dear": [3]}}
    made = group(topics, members | {"m2": {"cheap": [2]}, "m3": {"cheap": [3]}})
    work = made.at_work({"m0": 80}, ["m0"], "rebalance", topic="cheap", beside={"dear": 72})
    model, found = made.looked(members=work)

    assert leading(found) == "rebalance"
    assert found[0].evidence["may_not_be_enough"]
    # The plan is made at the costs that the finding names.
    named = {skew.COSTLY_TOPIC: "dear", skew.ITS_SHARE: 0.75}
    cost = skew.model_of(model, replace(found[0], evidence=named)).cost
    assert cost[4] * 72 == pytest.approx(0.75 * (cost[0] * 80 + cost[4] * 72), rel=0.01)


def test_a_backlog_that_nobody_acts_on_does_not_change_what_would_help(group: Make) -> None:
    """Alone on a member, each hot partition of the old backlog takes two hours: no reason to call for more members."""
    for lag, longest in ((20_000, 600), (500_000, 7_200)):
        hot = {**LATE, "lag": lag}
        made = group({"t": [hot, hot, *6 * [CALM]]}, FOUR)
        _, found = made.looked(members=made.at_work({"m0": 170}, ["m0"], "rebalance"))

        assert leading(found) == "rebalance"
        assert longest / 3 <= found[0].evidence["drain_best_s"] <= longest


def test_three_slow_polls_are_not_enough_to_be_certain(group: Make) -> None:
    """One window of each member gives a wide interval; the optimist's end passes."""
    made = group({"t": 8 * [{**LATE, "lag": 20_000}]}, FOUR)
    work = made.at_work(dict.fromkeys(ALL, 190), ALL, "under_provisioned")
    assert leading(made.looked(members=work)[1]) == "under_provisioned"
    few = {name: replace(m, windows=m.windows[-1:]) for name, m in work.items()}
    _, found = made.looked(members=few)

    assert leading(found) == "balanced"
    assert found[0].missing == "unsure"


def test_peers_that_wait_on_purpose_may_be_as_fast_as_the_member_that_falls_behind(group: Make) -> None:
    """All are read two minutes late; one gets more than it can do, and the others do what arrives, however fast they are."""
    late = {"end": 10_000_000, "rate": 50, "lag": 6_000}
    hot = {**late, "rate": 300, "lag": 60_000}
    made = group({"t": [hot, hot, *6 * [late]]}, FOUR)
    speeds = {"m0": 500, "m1": 100, "m2": 100, "m3": 100}

    def told(peers_late: Callable[[int], float | None]) -> str:
        work = made.at_work(speeds, ["m0"], "under_provisioned")
        for name, known in list(work.items())[1:]:
            windows = tuple(replace(w, late_s=peers_late(at)) for at, w in enumerate(known.windows))
            work[name] = replace(known, windows=windows)
        return leading(made.looked(members=work)[1])

    assert told(lambda _: None) == "under_provisioned"
    assert told(lambda at: 100.0 + 5 * at) == "under_provisioned"
    assert told(lambda _: 120.0) != "under_provisioned"


@pytest.mark.slow
@pytest.mark.parametrize(("members", "partitions"), [(4, 4), (4, 5), (4, 8), (12, 12)])
def test_a_group_that_is_28_per_cent_too_slow_has_too_few_members_whatever_its_partition_count(
    members: int, partitions: int
) -> None:
    topic = {"partitions": partitions, "inflow": 1.28 * members / 0.03, "cost": 0.03}
    clients = {"family": ["java", "kafka-python"]}
    made = parse({"topics": {"t": topic}, "members": members, "clients": clients, "hours": 0.25})

    messages = run(made, seed=22).messages

    assert {str(message.verdict) for message in messages} == {"under_provisioned"}
