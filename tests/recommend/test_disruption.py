"""What a rebalance costs is in the recommendation, and a plan that does not earn it back is not advised."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.contract.recommendation import Action, ActionType, Status
from kagent.lag.observation import TopicInfo
from kagent.policy import Policy
from kagent.recommend.reassignment import reassign
from kagent.recommend.render import Diagnosis, compose, diagnose
from tests.fixtures.findings import CALM, HOT

HALVES = {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4, 5, 6, 7]}}
UNEVEN = {"t": [HOT, HOT, CALM, CALM, *4 * [CALM]]}


def told(made: Any, policy: Policy | None = None, **state: Any) -> Diagnosis:
    known = {"members": made.at_work({"m0": 500, "m1": 500}, ["m0"]), **state}
    model, found = made.looked(policy, **known)
    return diagnose(model, found[0])


def follow(made: Diagnosis) -> Action | None:
    return next((a for a in made.actions if a.type is ActionType.FOLLOW_PLAN), None)


def test_a_plan_says_how_long_the_group_stops_and_how_much_inflow_moves(group: Any) -> None:
    action = follow(told(group(UNEVEN, HALVES, protocol="kagent"), pauses_s=(20.0, 30.0, 80.0)))
    assert action is not None
    moved = action.disruption
    assert moved["pause_s"] == 30.0
    # One of two partitions with 300 records/s moves, perhaps with some of 50: a member does 500 records/s.
    assert moved["r_score"] is not None
    assert 0.1 <= moved["r_score"] <= 0.9
    assert moved["partitions"] is not None
    assert moved["partitions"] >= 1


def test_every_change_of_assignor_says_what_it_costs_too(group: Any) -> None:
    made = told(group(UNEVEN, HALVES), pauses_s=(20.0,))
    switches = [a for a in made.actions if a.type is ActionType.SWITCH_ASSIGNOR]
    assert all(a.disruption["pause_s"] == 20.0 for a in switches)


def test_a_pause_longer_than_the_gain_keeps_a_plan_from_being_advised(group: Any) -> None:
    """Both members keep up: today's drain ends, and an even spread only ends it sooner."""
    late = {"end": 10_000_000, "rate": 100.0, "lag": 20_000, "age": 1, "moved": 1}
    calm = {"end": 10_000_000, "rate": 10.0, "lag": 0, "age": 1, "moved": 1}
    made = group({"t": [late, late, *6 * [calm]]}, HALVES, protocol="kagent")
    policy = Policy(min_behind=0, hold=0)
    short, long = told(made, policy, pauses_s=(1.0,)), told(made, policy, pauses_s=(500.0,))
    assert follow(short) is not None
    assert follow(long) is None
    assert "costs more" in compose(long, "i", 0, Status.OPEN).reason


def test_only_what_moves_stops_where_groups_rebalance_incrementally(group: Any) -> None:
    pause: Any = {"pauses_s": (100.0,)}
    eager = told(group(UNEVEN, HALVES, protocol="kagent"), **pause).reassignment
    incremental = told(group(UNEVEN, HALVES, type="consumer", protocol="kagent"), **pause).reassignment
    assert eager is not None
    assert incremental is not None
    assert incremental.cost.drain_s is not None
    assert eager.cost.drain_s is not None
    assert eager.drain[1] is not None
    assert eager.drain[1] < incremental.cost.drain_s < eager.cost.drain_s


@pytest.mark.parametrize("racks", [(), (frozenset({"a"}),) * 8], ids=["no racks", "racks"])
def test_the_racks_of_replicas_reach_the_planner(group: Any, racks: tuple[frozenset[str], ...]) -> None:
    info = TopicInfo(8, "id", replica_racks=racks)
    made = group(UNEVEN, HALVES, infos={"t": info})
    found = reassign(made.looked(members=made.at_work({"m0": 500, "m1": 500}, ["m0"]))[0])
    assert found is not None
    assert found.plan.problem.replica_racks == (racks[:8] if racks else ())
