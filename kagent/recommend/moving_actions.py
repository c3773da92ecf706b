"""Actions that let partitions change hands: waiting, following the plan, switching the assignor."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from kagent.assignor.routes import ROUTES
from kagent.contract.recommendation import Action, ActionType
from kagent.detect.group_model import GroupModel
from kagent.lag.bound import Bound
from kagent.planner.comparison import Alternative
from kagent.recommend.advice import (
    Advice,
    Feasible,
    K,
    action,
    caught_up,
    disruption_of,
    follows,
    gain_of,
    gains,
    how_to_declare,
    stateful,
)
from kagent.recommend.reassignment import Reassignment, expected_s
from kagent.recommend.switching import how_to_switch
from kagent.strategies.availability import shipped
from kagent.text import partition_name, shown, span

APPLIES = {K.CLASSIC_JAVA: "kagent.apply=follow", K.CLASSIC_PYTHON: "apply=True (kagent.follow)"}
"""What makes an assignor of kagent follow: without it, it only counts or logs what it would do."""
LITTLE_LEFT = "what its members can process beyond the inflow is little beside the errors of both"
"""Why no bound can be promised although it is known who gets what."""
MOST_SWITCHES: Bound = 2
"""The best two as actions; the message lists every strategy under `alternatives`."""


def wait(advice: Advice) -> Iterator[Action]:
    """It catches up by itself: how soon."""
    seconds = advice.finding.evidence.get("drains_in_s")
    if seconds is not None:
        how = f"Wait: at the present speed it catches up by itself in about {span(seconds)}."
        yield action(ActionType.WAIT, how, "yes", params={"seconds": seconds})


def follow_plan(advice: Advice) -> Iterator[Action]:
    """The plan's moves, and what carries them out for this kind of group."""
    made = advice.reassignment
    if made is None or not gains(made, advice.model) or not made.earns_back:
        return
    feasible, reason = can_follow(advice.model)
    # Streams, Connect, Faust and simple groups can never follow a plan. Classic consumers could, with something else: it is
    # named, as not feasible now.
    if feasible == "no" and advice.kind not in ROUTES:
        return
    moves = f"{_first_moves(made)}{how_to_declare(advice.model)}"
    how = f"Have the group move {moves} {_carried_out_by(advice, feasible)}".rstrip()
    disruption = disruption_of(made, made.plan.move_count) | {"r_score": made.cost.r_score}
    # Beside the sentence, which has names from clients in it: the page must not read the command from there.
    params = {"options": _command_options(advice)} if advice.kind is K.CONSUMER else {}
    gain = gain_of(advice)
    yield action(
        ActionType.FOLLOW_PLAN,
        how,
        feasible,
        f"{reason}; {caught_up(gain, LITTLE_LEFT)}",
        params=params,
        gain=gain,
        disruption=disruption,
    )


def _command_options(advice: Advice) -> str:
    seen = advice.model.seen
    return seen.command_options or f"--cluster {quote(seen.cluster)}"


def _carried_out_by(advice: Advice, feasible: Feasible) -> str:
    """What carries the plan out, or would."""
    if advice.kind is K.CONSUMER:
        # The cluster too: with several in the settings, the command would only list them.
        seen = advice.model.seen
        run = f"Run `kagent apply {quote(shown(seen.group))} {_command_options(advice)}`."
        return (
            run
            if feasible == "yes"
            else f"{run} It needs kagent's assignor on the brokers (`kagent assignor`)."
        )
    if feasible == "yes":
        return f"The group's assignor follows the plan by itself if every consumer has {APPLIES.get(advice.kind, ' or '.join(APPLIES.values()))}."
    return f"It needs {ROUTES[advice.kind]}."


def _first_moves(made: Reassignment, limit: int = 3) -> str:
    moves = made.plan.moves
    listed = ", ".join(f"{partition_name(m.topic, m.partition)} to {shown(m.to)}" for m in moves[:limit])
    return f"{listed} and {len(moves) - limit} more." if len(moves) > limit else f"{listed}."


def can_follow(model: GroupModel) -> tuple[Feasible, str]:
    """Whether the group can carry a plan out, and why or why not."""
    if stateful(model):
        return "no", "its members keep state by partition"
    if follows(model):
        return "yes", "its assignor follows kagent"
    if model.kind is K.CLASSIC_PYTHON:
        return "unknown", "possible once its consumers run kagent's following assignor"
    # Without `group.remote.assignor` the brokers take the first of their `group.consumer.assignors`, which only they know:
    # https://kafka.apache.org/43/operations/consumer-rebalance-protocol/
    if model.kind is K.CONSUMER and not (model.roster and model.roster.protocol):
        shows = f"kafka-consumer-groups.sh {model.seen.tool_options} --group {quote(shown(model.seen.group))} --describe --state"
        return "unknown", (
            f"its members name no assignor, so it has the brokers' default assignor: feasible if that is kagent's ({shows} tells)"
        )
    if model.kind is K.CLASSIC_JAVA:
        return "no", "its assignor is not kagent's"
    if model.kind is K.CLASSIC:
        return (
            "unknown",
            "its records do not tell which client it runs; only Java, aiokafka and kafka-python clients can follow a plan",
        )
    if model.kind is K.CLASSIC_LIBRDKAFKA:
        return "no", "librdkafka takes no assignor but its own"
    return "no", "clients of this kind have no way to take a given partition"


def switch_assignor(advice: Advice) -> Iterator[Action]:
    """The shipped strategies that would relieve the group for good."""
    model, made = advice.model, advice.reassignment
    order = shipped(str(model.kind))
    if made is None or not order:
        return
    better = [
        a
        for a in advice.alternatives
        if a.strategy in order and a.strategy != _present(model) and _relieves(advice, made, a)
    ]
    # Rounded: with lags that change, a skew of 1.21 is no better than 1.24, and the strategy that is easier to have goes first.
    better.sort(key=lambda a: (a.unsafe is not None, round(a.skew, 1), order.index(a.strategy)))
    for option in better[:MOST_SWITCHES]:
        yield _switch_to(advice, option)


def _relieves(advice: Advice, made: Reassignment, option: Alternative) -> bool:
    """Whether another strategy gains as much as a plan has to, since it takes a rolling restart: by the plan's values, or else by those by
    which the finding says that another assignment helps."""
    model, plan = advice.model, made.plan
    left = 1 - model.policy.min_gain
    if option.greatest < left * plan.now:
        return True
    # The plan's values have more inflow than is usual, by which the strategy may not catch up.
    cases = [False, True] if advice.finding.evidence.get("may_not_be_enough") else [False]
    return plan.objective == "drain" and any(
        expected_s(model, option.assigned, made.rows, optimist)
        < left * expected_s(model, plan.problem.owner, made.rows, optimist)
        for optimist in cases
    )


def _switch_to(advice: Advice, option: Alternative) -> Action:
    keeps_state = stateful(advice.model)
    reason = f"unsafe: {option.unsafe}" if option.unsafe else "stateful" if keeps_state else None
    drains = advice.reassignment is not None and advice.reassignment.plan.objective == "drain"
    return action(
        ActionType.SWITCH_ASSIGNOR,
        f"{how_to_switch(advice.kind, option.strategy, _present(advice.model))}{how_to_declare(advice.model)}",
        "no" if option.unsafe or keeps_state else "yes",
        reason or f"skew {round(option.skew, 3):.2f} with the present lags",
        params={"strategy": option.strategy},
        gain=gain_of(advice, option) if drains else {},
        durable=True,
        disruption=disruption_of(advice.reassignment, option.moves),
    )


def _present(model: GroupModel) -> str:
    """The strategy that the group runs now, which the group cannot switch to."""
    protocol = (model.roster.protocol if model.roster else None) or ""
    return f"kip848-{protocol}" if model.kind is K.CONSUMER else protocol
