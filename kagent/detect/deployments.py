"""Whether members come and go by a deployment, or because they crash."""

from __future__ import annotations

from kagent.detect.group_model import GroupModel

ROLL_S = 120.0
"""How long a rolling restart takes a member, generously."""


def may_be_deployment(model: GroupModel) -> bool:
    """Whether the latest rebalances may be a rolling restart or a change of scale: every member comes and goes in turn, and it has
    not lasted beyond `deploy_silence` and two minutes a member."""
    state = model.state
    patience = max(model.policy.deploy_silence, ROLL_S * len(state.names)) * 1000
    # To the latest change, not to now: two deployments within a quarter of an hour are over when the second is.
    lasted = max((time for time, _ in state.generations), default=0) - state.restless_since
    return not come_and_go(model) and lasted < patience


def come_and_go(model: GroupModel) -> dict[str, int]:
    """The members that left and came back out of turn within the storm window, and how often: twice more than another member, or
    three times. A deployment that is taken back brings everybody back twice."""
    state, since = model.state, model.now - model.policy.storm_window * 1000
    # As of now: a scaler that removes members and adds them again every quarter of an hour is no storm.
    returns = {name: sum(time >= since for time in times) for name, times in state.comings.items()}
    least = min((returns.get(name, 0) for name in state.names), default=0)
    return {name: times for name, times in returns.items() if times >= min(least + 2, 3)}


def crashes_in_turn(model: GroupModel) -> bool:
    """Whether the latest rebalances show members that crash, not a deployment: some come and go while others stay."""
    stayed = set(model.state.names) - model.state.comings.keys()
    return bool(come_and_go(model) or (stayed and not may_be_deployment(model)))
