"""A group that carries out what it is told: each kind of action changes the world as it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kagent.contract.recommendation import Action, ActionType, Basis, Move, Recommendation
from kagent.simulator.following import carry_out, predicted_s
from kagent.simulator.passing_time import begin, step
from kagent.simulator.scenario_events import happen
from kagent.simulator.scenario_file import parse
from kagent.simulator.truth import late, lateness
from kagent.simulator.world import World

HANG = {"at": 0, "do": "hang", "member": "m0"}
SLOW = {"at": 0, "do": "speed", "member": "m0", "value": 0.2}
HOT = {"at": 0, "do": "inflow", "topic": "t", "partition": 0, "factor": 12}
TWO_HOT = {"at": 0, "do": "inflow", "topic": "t", "partition": [0, 1], "factor": 6}
FEW = {"at": 0, "do": "inflow", "topic": "t", "factor": 6}
POISON = {"at": 0, "do": "poison", "topic": "t", "partition": 0}
OPEN = {"at": 0, "do": "transaction", "topic": "t", "partition": 0}


def group(event: dict[str, Any]) -> World:
    """Two groups of two members, in trouble for five minutes."""
    topics = {"t": {"partitions": 4, "inflow": 16, "cost": 0.03}}
    world = begin(
        parse({"name": "g", "topics": topics, "members": 2, "clients": {"family": "java"}, "hours": 1}),
        (1, 2),
    )
    happen(world, event)
    run(world, 300)
    return world


def run(world: World, seconds: int) -> None:
    for _ in range(seconds):
        step(world, 1.0)


def message(kind: ActionType, moves: tuple[Move, ...] = (), **params: Any) -> Recommendation:
    """A message whose first action cannot be done; the second is this one."""
    no = Action(type=ActionType.NONE, how="-", feasible="no")
    action = Action(type=kind, how="-", feasible="yes", params=params, gain={"after": 120.0})
    basis = Basis.model_construct()  # type: ignore[call-arg]
    return Recommendation.model_construct(  # type: ignore[call-arg]
        actions=[no, action], moves=list(moves), basis=basis
    )


PLAN = (Move.model_validate({"topic": "t", "partition": 1, "from": "g-m0/10.0.0.1", "to": "g-m1/10.0.0.1"}),)
BACK = (Move.model_validate({"topic": "t", "partition": 2, "from": "g-m1/10.0.0.1", "to": "g-m0/10.0.0.1"}),)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (HANG, message(ActionType.RESTART_MEMBER, member="g-m0/10.0.0.1")),
        (SLOW, message(ActionType.RESTART_MEMBER, member="g-m1/10.0.0.1", others=["g-m0/10.0.0.1"])),
        (TWO_HOT, message(ActionType.FOLLOW_PLAN, PLAN)),
        (TWO_HOT, message(ActionType.SWITCH_ASSIGNOR, strategy="roundrobin")),
        (HOT, message(ActionType.ADD_PARTITIONS_OR_REKEY, topic="t")),
        (FEW, message(ActionType.SET_MEMBER_COUNT, members=4)),
        (POISON, message(ActionType.SKIP_OR_FIX_RECORD, topic="t", partition=0)),
        (OPEN, message(ActionType.ABORT_TRANSACTION, topic="t")),
    ],
    ids=["restart", "replace", "plan", "switch", "rekey", "members", "skip", "abort"],
)
@pytest.mark.slow
def test_the_right_action_lets_a_group_catch_up_that_would_not_by_itself(
    event: dict[str, Any], told: Recommendation
) -> None:
    world = group(event)
    assert late(world, 30.0).all()

    carry_out(world, 0, told)
    run(world, 1200)

    assert predicted_s(told) == 120.0
    assert late(world, 30.0).tolist() == [False, True]


def test_a_process_that_is_out_of_the_group_is_restarted_and_gets_no_partition() -> None:
    world = group(HANG)
    (out,) = (slot for slot, name in enumerate(world.slots) if name == "m0")
    world.order[0].remove(out)
    owner = world.owner[0].copy()

    carry_out(world, 0, message(ActionType.RESTART_MEMBER, member="g-m0/10.0.0.1"))
    carry_out(world, 0, message(ActionType.FOLLOW_PLAN, BACK))

    assert not world.hung[0, out]
    assert (world.owner[0] == owner).all()


def test_a_steady_number_of_members_is_what_the_scaler_goes_up_to() -> None:
    scaler = {"lag_per_member": 60, "least": 2, "greatest": 4, "cooldown": 30}
    topics = {"t": {"partitions": 4, "inflow": 16, "cost": 0.03}}
    clients = {"family": "java"}
    made = {"topics": topics, "members": 2, "autoscaler": scaler, "clients": clients, "hours": 1}
    world = begin(parse(made), (1,))

    carry_out(world, 0, message(ActionType.SET_MEMBER_COUNT))
    run(world, 120)

    assert len(world.order[0]) == 4


def test_to_wait_changes_nothing() -> None:
    world = group(HANG)
    before = world.owner.copy()

    carry_out(world, 0, message(ActionType.WAIT))

    assert (world.owner == before).all()
    assert world.hung.any()


def test_lateness_is_the_time_since_the_logs_ended_where_the_latest_member_is() -> None:
    topics = {"t": {"partitions": 4, "inflow": 16, "cost": 0.03, "noise": 0}}
    hung = parse(
        {
            "topics": topics,
            "members": 2,
            "clients": {"family": "java"},
            "world": {"remember_all": True},
            "hours": 1,
        }
    )
    world = begin(hung, (1, 2))
    run(world, 100)
    happen(world, HANG)
    run(world, 700)

    assert np.allclose(lateness(world), 700, atol=12)


def test_a_group_that_switched_keeps_to_the_strategy_when_a_member_comes_back() -> None:
    """A deployment after the advice was followed must not undo it."""
    world = group(TWO_HOT)
    carry_out(world, 0, message(ActionType.SWITCH_ASSIGNOR, strategy="roundrobin"))
    run(world, 60)
    for at, do in ((60, "leave"), (120, "join")):
        happen(world, {"at": at, "do": do, "member": "m1"})
        run(world, 60)

    switched, not_switched = world.owner[0], world.owner[1]
    assert switched[0] != switched[1]
    assert not_switched[0] == not_switched[1]


@pytest.mark.slow
def test_an_action_that_changes_nothing_leaves_the_same_world() -> None:
    acted, other = group(FEW), group(FEW)
    carry_out(acted, 0, message(ActionType.ADD_PARTITIONS_OR_REKEY, topic="t"))
    run(acted, 600)
    run(other, 600)
    # Records were spread evenly before: what differed now would be other random numbers, and be taken for the action's doing.
    np.testing.assert_allclose(acted.end, other.end, atol=1.0)
    np.testing.assert_allclose(acted.position, other.position, atol=1.0)


def test_a_scaler_at_its_limit_keeps_the_members_that_the_owner_asked_for() -> None:
    scaled = {
        "topics": {"t": {"partitions": 8, "inflow": 16, "cost": 0.03}},
        "members": 2,
        "clients": {"family": "java"},
        "autoscaler": {"lag_per_member": 1e9, "least": 1, "greatest": 2, "cooldown": 60},
    }
    world = begin(parse(scaled), (1, 2))

    carry_out(world, 0, message(ActionType.SET_MEMBER_COUNT, members=4))
    run(world, 300)

    assert [len(order) for order in world.order] == [4, 1]
