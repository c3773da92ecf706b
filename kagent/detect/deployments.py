"""Whether members come and go by a deployment, or because they crash."""

from __future__ import annotations

from kagent.detect import pauses
from kagent.detect.group_model import GroupModel
from kagent.detect.state import JudgeState
from kagent.lag.chance import CLEARLY, NOT_CHANCE

TURNS = 3
"""Rebalances that the restart of a member makes, at most: two of an eager group (it leaves, it joins), three of a cooperative one."""
IN_A_ROW = NOT_CHANCE
"""A deployment, the one that takes it back and the one that mends it may follow each other."""


def may_be_deployment(model: GroupModel) -> bool:
    """Whether the latest rebalances may be rolling restarts or changes of scale: every member comes and goes in turn, they have not
    lasted beyond `deploy_silence` and three minutes a member, and they are no more than some deployments in a row make."""
    state = model.state
    # A member's restart takes as long as its rebalances take to settle, generously.
    patience_s = max(model.policy.deploy_silence, TURNS * model.policy.settle * len(state.names))
    everybody = len(state.comings.keys() | set(state.names))
    few = _turns(state) <= IN_A_ROW * TURNS * everybody
    return few and state.restless_s < patience_s and not come_and_go(model)


def _turns(state: JudgeState) -> int:
    """How many rebalances have followed each other; 0 where their beginning was not seen."""
    if state.restless_from is None or not state.generations:
        return 0
    return state.generations[-1][1] - state.restless_from


def come_and_go(model: GroupModel) -> dict[str, int]:
    """The members that left and came back out of turn within the storm window, and how often: three times more than another, or
    more often than deployments in a row bring everybody back."""
    state = model.state
    # Not all that is remembered: a scaler that removes members and adds them again every quarter of an hour is no storm. And as of the
    # latest rebalance: that the others' returns in a deployment get out of the window makes no member come and go.
    latest = state.generations[-1][0] if state.generations else model.now
    since = latest - model.policy.storm_window * 1000
    returns = {name: sum(time >= since for time in times) for name, times in state.comings.items()}
    least = min((returns.get(name, 0) for name in state.names), default=0)
    return {name: times for name, times in returns.items() if times >= min(least + NOT_CHANCE, IN_A_ROW + 1)}


def comes_and_goes_together(model: GroupModel) -> bool:
    """Whether most returns within the storm window were of several members at once: as an autoscaler changes their number, or as
    members fail that share a machine. A member that crashes by itself comes back alone."""
    since = model.now - model.policy.storm_window * 1000
    # Who joins while the members pause for another one joins with it.
    at_once_ms = 1000 * CLEARLY * pauses.usual_s(model.state)
    returns = sorted(
        (time, name) for name, times in model.state.comings.items() for time in times if time >= since
    )
    # Not only neighbours of one time: the same member twice in a row is one that crashes fast.
    shared = [
        any(abs(time - other) <= at_once_ms and name != who for other, who in returns)
        for time, name in returns
    ]
    return 2 * sum(shared) > len(shared)


def crashes_in_turn(model: GroupModel) -> bool:
    """Whether the latest rebalances show members that crash, not a deployment: some come and go while others stay."""
    stayed = set(model.state.names) - model.state.comings.keys()
    return bool(come_and_go(model) or (stayed and not may_be_deployment(model)))
