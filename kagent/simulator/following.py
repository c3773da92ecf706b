"""A group that carries out the recommendation: the plan, a switch of strategy, or the first feasible action."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kagent.contract.recommendation import Action, ActionType, Recommendation
from kagent.simulator import rebalancing
from kagent.simulator import world as w
from kagent.simulator.world import World
from kagent.strategies import STRATEGIES

FIRST = "first"
"""`follow: first`: the first feasible action is carried out, ACT_AFTER_S after it was published."""
USEFUL = "useful"
"""`follow: useful`: an autoscaler sets the number of members that would help, ACT_AFTER_S after it changed."""
ACT_AFTER_S = 60.0


def follow(world: World, at: int, message: Recommendation) -> None:
    """What group ``at`` does at once, as the scenario says: the plan's moves, or another strategy."""
    if isinstance(world.scenario.follow, str):
        if world.scenario.follow != USEFUL:
            rebalancing.switch(world, at, world.scenario.follow)
    else:
        _move(world, at, message)


def first_action(message: Recommendation) -> Action | None:
    """The first action of a message that can be done."""
    return next((a for a in message.actions if a.feasible != "no"), None)


def predicted_s(message: Recommendation) -> float | None:
    """In how many seconds the group should be drained if the first action is taken; None where nothing is promised."""
    action = first_action(message)
    after = action.gain.get("after") if action else None
    return after if after is not None and np.isfinite(after) else None


def carry_out(world: World, at: int, message: Recommendation) -> None:
    """Do the first feasible action of the message."""
    action = first_action(message)
    if action is not None and action.type in ACTS:
        ACTS[action.type](world, at, action, message)


def _move(world: World, at: int, message: Recommendation) -> None:
    if not message.moves:
        return
    owner = world.owner[at].copy()
    for move in message.moves:
        to = _slot(world, move.to)
        # Who has left since gets nothing.
        if to in world.order[at]:
            owner[world.rows(move.topic)[move.partition]] = to
    rebalancing.rebalance(world, at, owner)


def _slot(world: World, name: str) -> int:
    """The member that kagent calls ``name``, whether it is in the group now or not."""
    # As MemberView.name makes it of the client id and host that run._described gives; a static member has its instance id.
    names = {f"{world.scenario.name}-{slot}/10.0.0.1": at for at, slot in enumerate(world.slots)}
    return names[name] if name in names else world.slots.index(name)


def _switch(world: World, at: int, action: Action, message: Recommendation) -> None:
    strategy = str(action.params.get("strategy", ""))
    if strategy in STRATEGIES:
        rebalancing.switch(world, at, strategy)


def _resize(world: World, at: int, action: Action, message: Recommendation) -> None:
    """As many members as advised, with the strategy that is advised with them; they are started at once, and a scaler's limit is raised."""
    _switch(world, at, action, message)
    scaler = world.scenario.autoscaler
    # Without a number, it is to be steady: a scaler changes it no more once its least is what it goes up to.
    steady = scaler.greatest if scaler else 0
    world.asked[at] = max(int(action.params.get("members", steady)), len(world.names(at)))
    rebalancing.resize(world, at, world.asked[at])


def _restart(world: World, at: int, action: Action, message: Recommendation) -> None:
    """New processes on good machines, under the same names."""
    if "member" in action.params:
        for name in (action.params["member"], *action.params.get("others", ())):
            _restart_process(world, at, _slot(world, str(name)))


def _restart_process(world: World, at: int, slot: int) -> None:
    world.speed[at, slot], world.leak[at, slot], world.hung[at, slot] = 1.0, 0.0, False
    mine = world.owner[at] == slot
    world.position = world.position.copy()
    # A restarted process begins at its commits: what it had read beyond them is read again.
    world.position[at, mine] = np.minimum(world.position[at, mine], world.committed[at, mine])
    world.block_end[at, mine] = world.position[at, mine]
    world.poll_left[at, slot] = 0.0


def _skip(world: World, at: int, action: Action, message: Recommendation) -> None:
    """The record is stepped over."""
    world.held[at, world.rows(str(action.params["topic"]))[int(action.params["partition"])]] = False


def _spread(world: World, at: int, action: Action, message: Recommendation) -> None:
    """Other keys: from now on records are spread evenly over the topic's partitions."""
    topic = action.params.get("topic") or next(iter(message.basis.partitions))
    here = slice(*world.span(str(topic)))
    world.weight[at, here] = world.weight[at, here].mean()
    # Not by new weather: its other random numbers would be taken for what the action did.
    w.set_flow(world, min(world.scenario.step, world.scenario.world.max_step_s), np.array([at]))


def _abort(world: World, at: int, action: Action, message: Recommendation) -> None:
    world.lso[at, slice(*world.span(str(action.params["topic"])))] = np.inf


ACTS: dict[ActionType, Callable[[World, int, Action, Recommendation], None]] = {
    ActionType.FOLLOW_PLAN: lambda world, at, action, message: _move(world, at, message),
    ActionType.SWITCH_ASSIGNOR: _switch,
    ActionType.SET_MEMBER_COUNT: _resize,
    ActionType.RAISE_PARALLELISM: _resize,
    ActionType.RESTART_MEMBER: _restart,
    ActionType.SKIP_OR_FIX_RECORD: _skip,
    ActionType.ADD_PARTITIONS_OR_REKEY: _spread,
    ActionType.ABORT_TRANSACTION: _abort,
}
"""What is not here (wait, accept a loss) changes nothing."""

__all__ = ["ACT_AFTER_S", "FIRST", "carry_out", "first_action", "follow", "predicted_s"]
