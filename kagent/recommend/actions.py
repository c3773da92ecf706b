"""What can be done about a finding, for the kind of group it is: ranked, each with the exact setting or command.

No broker can be asked to move a partition. What a group's clients can do decides what is feasible (see the table in
``docs/judgement.md``); what cannot be done is shown with its reason, never first. Which actions a verdict has, and in which order,
its detector says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Any, Literal
from urllib.parse import quote as quote_url

import numpy as np

from kagent.assignor import NAME, follows_plans
from kagent.contract.recommendation import Action, ActionType, GroupKind, Verdict
from kagent.detect.detectors import OF
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.start_position import has_commit
from kagent.detect.useful_members import SPREAD_ALONE
from kagent.planner.comparison import Alternative
from kagent.recommend.member_counts import Counts
from kagent.recommend.reassignment import Reassignment
from kagent.recommend.switching import how_to_switch
from kagent.strategies.availability import shipped
from kagent.text import counted, shown, span

Feasible = Literal["yes", "no", "unknown"]
K = GroupKind
CLIENTS = frozenset({K.CLASSIC, K.CLASSIC_JAVA, K.CLASSIC_LIBRDKAFKA, K.CLASSIC_PYTHON})
RANK = {"yes": 0, "unknown": 1, "no": 2}
# The best two as actions; the message lists every strategy under `alternatives`.
MOST_SWITCHES = 2


@dataclass(frozen=True)
class Advice:
    """All that the actions are made from."""

    model: GroupModel
    finding: Finding
    reassignment: Reassignment | None
    alternatives: tuple[Alternative, ...]
    counts: Counts

    @property
    def kind(self) -> GroupKind:
        return self.model.kind

    @property
    def member(self) -> str:
        """The name of the member concerned, as data."""
        return self.model.names[self.finding.members[0]] if self.finding.members else ""

    @property
    def place(self) -> tuple[str, int] | None:
        """Topic and partition concerned."""
        return self.model.lags.name(self.finding.rows[0]) if self.finding.rows else None

    @property
    def topic(self) -> str:
        return shown(self.place[0]) if self.place else "<topic>"

    @property
    def tools(self) -> str:
        """The options with which Kafka's own tools reach the cluster."""
        return self.model.seen.tool_options

    @property
    def partition(self) -> str:
        """The partition concerned, as it is shown."""
        return f"{shown(self.place[0])}-{self.place[1]}" if self.place else "its partition"


def actions(advice: Advice) -> list[Action]:
    """What can be done, best first: feasible before unknown before infeasible, then in the order of the detector."""
    made = [a for kind in OF[advice.finding.decided].ACTIONS for a in MAKERS[kind](advice)]
    # list.sort is stable, so the detector's own order holds among equals.
    made.sort(key=lambda a: RANK[a.feasible])
    if not any(a.feasible != "no" for a in made):
        made.insert(0, _action(ActionType.NONE, _nothing(advice), "yes"))
    return made


def _nothing(advice: Advice) -> str:
    """The sentence that nothing can be done; where the message's reason says that moves would help, also why they cannot be made."""
    made = advice.reassignment
    wanted = made is not None and gains(made, advice.model) and made.earns_back
    if advice.finding.verdict is not Verdict.REBALANCE or not wanted:
        return "Nothing can be done from outside the group's clients."
    why = _can_follow(advice.model)[1]
    return f"The partitions cannot be moved as the group runs now: {why}, and no assignor that it can choose helps enough."


def gains(made: Reassignment, model: GroupModel) -> bool:
    """Whether the plan gains what the policy asks of one."""
    return made.helps and made.gain >= model.policy.min_gain


def _action(kind: ActionType, how: str, feasible: Feasible, reason: str | None = None, **more: Any) -> Action:
    return Action(type=kind, how=how, feasible=feasible, reason=reason, **more)


def follows(model: GroupModel) -> bool:
    """Whether the group's own protocol is an assignor that reads kagent's plans."""
    protocol = model.roster.protocol if model.roster else None
    if model.kind is K.CONSUMER:
        # The brokers run the assignor (KIP-848), and the group only names it.
        return follows_plans(protocol, model.policy.uniform_follows)
    return NAME in (protocol or "")  # kagent.follow's own names begin with it


def stateful(model: GroupModel) -> bool:
    """Whether moving a partition means moving state."""
    # A Streams task that moves restores its state stores from changelog topics first, for minutes to hours.
    return model.policy.stateful or model.kind is K.STREAMS


def _gain(advice: Advice, after: float | None = None) -> dict[str, float | None]:
    """Time to catch up now and after, s; None: never, or unknown."""
    if advice.reassignment is None or not advice.reassignment.seconds:
        return {}
    now, planned = advice.reassignment.drain
    then = planned if after is None else after
    return {"now": _seconds(now), "after": _seconds(then)}


def _disruption(made: Reassignment | None, partitions: int) -> dict[str, float | None]:
    """What a rebalance costs: for how long it stops who must stop, s, and how many partitions move."""
    return {"pause_s": made.cost.pause_s if made else None, "partitions": float(partitions)}


def _seconds(drain: float | None) -> float | None:
    return round(drain, 1) if drain is not None and np.isfinite(drain) else None


def _wait(advice: Advice) -> Iterator[Action]:
    seconds = advice.finding.evidence.get("drains_in_s")
    if seconds is not None:
        how = f"Wait: at the present speed it catches up by itself in about {span(seconds)}."
        yield _action(ActionType.WAIT, how, "yes", params={"seconds": seconds})


def _follow(advice: Advice) -> Iterator[Action]:
    made = advice.reassignment
    if made is None or not gains(made, advice.model) or not made.earns_back:
        return
    feasible, reason = _can_follow(advice.model)
    # Streams, Connect, Faust and simple groups can never follow a plan. Classic consumers could, with another assignor: it is
    # named, as not feasible now.
    if feasible == "no" and advice.kind not in CLIENTS:
        return
    how = f"Let the group follow the plan: {_first_moves(made)} {_carried_out_by(advice, feasible)}".rstrip()
    disruption = _disruption(made, made.plan.move_count) | {"r_score": made.cost.r_score}
    # Beside the sentence, which has names from clients in it: the page must not read the command from there.
    params = {"options": _command_options(advice)} if advice.kind is K.CONSUMER else {}
    yield _action(
        ActionType.FOLLOW_PLAN,
        how,
        feasible,
        reason,
        params=params,
        gain=_gain(advice),
        disruption=disruption,
    )


def _command_options(advice: Advice) -> str:
    seen = advice.model.seen
    return seen.command_options or f"--cluster {quote(seen.cluster)}"


APPLIES = {K.CLASSIC_JAVA: "kagent.apply=follow", K.CLASSIC_PYTHON: "apply=True (kagent.follow)"}
"""What makes an assignor of kagent follow: without it, it only counts or logs what it would do."""


def _carried_out_by(advice: Advice, feasible: Feasible) -> str:
    """What carries the plan out, or would."""
    if advice.kind is K.CONSUMER:
        # The cluster too: with several in the settings, the command would only list them.
        seen = advice.model.seen
        run = f"Run `kagent apply {quote(shown(seen.group))} {_command_options(advice)}`."
        return (
            run
            if feasible == "yes"
            else f"{run} It takes kagent's assignor on the brokers (`kagent assignor`)."
        )
    if feasible == "yes":
        return f"Its assignor does so by itself where its consumers have {APPLIES.get(advice.kind, ' or '.join(APPLIES.values()))}."
    if advice.kind is K.CLASSIC_JAVA:
        return "This takes kagent's assignor in every consumer (`kagent assignor --consumer`)."
    if advice.kind is K.CLASSIC:
        return (
            "This takes kagent's assignor in every consumer (Java: `kagent assignor --consumer`; aiokafka and kafka-python: "
            "kagent.follow)."
        )
    return "This takes an assignor that follows kagent (aiokafka, kafka-python)."


def _first_moves(made: Reassignment, limit: int = 3) -> str:
    moves = made.plan.moves
    listed = ", ".join(f"{shown(m.topic)}-{m.partition} to {shown(m.to)}" for m in moves[:limit])
    return f"{listed} and {len(moves) - limit} more." if len(moves) > limit else f"{listed}."


def _can_follow(model: GroupModel) -> tuple[Feasible, str | None]:
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
            f"its members name no assignor, so it has the brokers' default: feasible if that is kagent ({shows} tells)"
        )
    if model.kind is K.CLASSIC_JAVA:
        return "no", "its assignor is not kagent's"
    if model.kind is K.CLASSIC:
        return (
            "unknown",
            "its records do not tell which client it runs: only Java, aiokafka and kafka-python can",
        )
    return "no", "clients of this kind have no way to take a given partition"


def _switch(advice: Advice) -> Iterator[Action]:
    """The shipped strategies that would relieve the group for good."""
    model, made = advice.model, advice.reassignment
    order = shipped(str(model.kind))
    if made is None or not order:
        return
    # A switch takes a rolling restart: it must gain as much as a plan has to.
    limit = (1 - model.policy.min_gain) * made.plan.now
    better = [
        a
        for a in advice.alternatives
        if a.strategy in order and a.strategy != _present(model) and a.greatest < limit
    ]
    # Rounded: with lags that change, a skew of 1.21 is no better than 1.24, and the strategy that is easier to have goes first.
    better.sort(key=lambda a: (a.unsafe is not None, round(a.skew, 1), order.index(a.strategy)))
    for option in better[:MOST_SWITCHES]:
        yield _switch_to(advice, option)


def _switch_to(advice: Advice, option: Alternative) -> Action:
    keeps_state = stateful(advice.model)
    reason = f"unsafe: {option.unsafe}" if option.unsafe else "stateful" if keeps_state else None
    drains = advice.reassignment is not None and advice.reassignment.plan.objective == "drain"
    return _action(
        ActionType.SWITCH_ASSIGNOR,
        how_to_switch(advice.kind, option.strategy, _present(advice.model)),
        "no" if option.unsafe or keeps_state else "yes",
        reason or f"skew {option.skew:.2f} with the lags of now",
        params={"strategy": option.strategy},
        gain=_gain(advice, option.greatest) if drains else {},
        durable=True,
        disruption=_disruption(advice.reassignment, option.moves),
    )


def _present(model: GroupModel) -> str:
    """The strategy that the group runs now, which the group cannot switch to."""
    protocol = (model.roster.protocol if model.roster else None) or ""
    return f"kip848-{protocol}" if model.kind is K.CONSUMER else protocol


def _count(advice: Advice) -> Iterator[Action]:
    """Another number of members, where that helps."""
    # Streams scales by threads and simple groups by the job's parallelism: see _parallelism.
    if advice.kind in (K.STREAMS, K.SIMPLE) or not advice.model.by_member:
        return
    if advice.finding.verdict is Verdict.IDLE_MEMBERS:
        yield _fewer(advice)
    else:
        yield from _scaled(advice, ActionType.SET_MEMBER_COUNT)


def _start(advice: Advice) -> Iterator[Action]:
    if advice.finding.verdict is not Verdict.NO_MEMBERS:
        yield from _count(advice)
    elif not advice.finding.evidence.get("members"):
        yield _action(ActionType.SET_MEMBER_COUNT, "Start the group's consumers, or delete the group.", "yes")


def _fewer(advice: Advice) -> Action:
    count = len(advice.model.names) - len(advice.finding.members)
    how = f"Run {counted(count, 'member')} instead of {len(advice.model.names)}, or keep the others as stand-by."
    return _action(ActionType.SET_MEMBER_COUNT, how, "yes", params={"members": count}, durable=True)


def _scaled(advice: Advice, kind: ActionType) -> Iterator[Action]:
    number = advice.finding.evidence.get("needed")
    # None where there are as many members as partitions: another one would stay idle.
    found = (
        advice.counts.relieving(advice.model.policy.min_gain) if number is None else advice.counts.of(number)
    )
    if found is None:
        return
    share = f"the most loaded member would get {found.share_then:.0%} of the inflow instead of {found.share_now:.0%}"
    useful = advice.model.state.useful
    # The number relieves a bad spread, and is not the autoscalers' number.
    if number is None and useful is not None and useful.because == SPREAD_ALONE:
        share = f"{useful.members} are enough if the work is well spread; with {found.members} {share}"
    yield _action(
        kind,
        _how_to_scale(advice, found.members),
        "yes",
        share,
        params={"members": found.members, "fitting": list(found.fitting)},
        durable=True,
    )


def _how_to_scale(advice: Advice, count: int) -> str:
    have = len(advice.model.names)
    return {
        K.CONNECT: f"Set tasks.max={count} in the connector's configuration (now {have}).",
        K.STREAMS: f"Run {count} stream threads in all: more instances, or num.stream.threads.",
        K.SIMPLE: f"Raise the job's parallelism to {count}.",
        K.FAUST: f"Run {count} workers instead of {have}.",
    }.get(advice.kind, f"Run {count} members instead of {have}.")


def _parallelism(advice: Advice) -> Iterator[Action]:
    if advice.kind is K.STREAMS:
        yield from _scaled(advice, ActionType.RAISE_PARALLELISM)
    elif advice.kind is K.SIMPLE and advice.finding.verdict is Verdict.REBALANCE:
        how = f"Assign {advice.partition} to another process in the program itself: it uses no assignor."
        yield _action(ActionType.RAISE_PARALLELISM, how, "unknown", "only the program decides who reads what")
    elif advice.kind is K.SIMPLE:
        yield _action(ActionType.RAISE_PARALLELISM, "Raise the job's parallelism.", "unknown", durable=True)


def _restart(advice: Advice) -> Iterator[Action]:
    if advice.finding.verdict is Verdict.UNSTABLE:
        yield _steady(advice)
        return
    if advice.finding.verdict is Verdict.NO_MEMBERS:
        yield from _assigned_anew(advice)
        return
    who = shown(advice.member) or "the group's members"
    how = {
        K.CONNECT: f"Restart the task of {who}: {_restart_of_task(advice)}",
        K.SIMPLE: "Restart the job.",
        K.STREAMS: f"Restart or replace the instance {who}.",
    }.get(advice.kind, f"Restart or replace {who}.")
    params = {"member": advice.member} if advice.member else {}
    yield _action(ActionType.RESTART_MEMBER, how, "yes", params=params)


def _restart_of_task(advice: Advice) -> str:
    """The request to Connect's REST API; connector and task are in the names of a sink's group and client ids (WorkerSinkTask)."""
    roster, finding = advice.model.roster, advice.finding
    # Where it is not known who holds what, findings name the readers of partitions: they are no members, and may be more.
    named = advice.model.by_member and finding.members
    client = roster.members[finding.members[0]].client_id if roster and named else ""
    task = re.fullmatch(r"connector-consumer-(.+)-(\d+)", client)
    connector = quote_url(task[1], safe="") if task else "<name>"
    number = task[2] if task else "<n>"
    return f"curl -X POST http://<connect worker>:8083/connectors/{connector}/tasks/{number}/restart"


def _assigned_anew(advice: Advice) -> Iterator[Action]:
    if advice.finding.evidence.get("members"):
        how = (
            "Restart one member, so that the group assigns its partitions anew. If they stay without an owner, its assignor is "
            "at fault."
        )
        yield _action(ActionType.RESTART_MEMBER, how, "yes")


def _steady(advice: Advice) -> Action:
    who = ", ".join(shown(n) for n in advice.finding.evidence["come_and_go"][:3]) or "its members"
    how = (
        f"Restart {who} with the cure: after poll timeouts a larger max.poll.interval.ms or a smaller max.poll.records, after "
        "crashes a fix (the logs tell which it was); static membership (group.instance.id) avoids a rebalance at a restart."
    )
    return _action(ActionType.RESTART_MEMBER, how, "yes")


def _first_record(advice: Advice, topic: str, partition: int) -> Iterator[Action]:
    # Without a commit the consumer's position is not known: to set one might skip all that it has not read.
    if advice.finding.verdict is Verdict.STALLED:
        how = (
            f"Look in the log of the consumer of {advice.partition} for the record at which it fails, and make it handle that; "
            "nothing of the partition has been committed, so kagent cannot name the record."
        )
        yield _action(
            ActionType.SKIP_OR_FIX_RECORD, how, "yes", params={"topic": topic, "partition": partition}
        )


def _record(advice: Advice) -> Iterator[Action]:
    if advice.place is None:
        return
    (topic, partition), group = advice.place, quote(shown(advice.model.seen.group))
    if not has_commit(advice.model.seen, topic, partition):
        yield from _first_record(advice, topic, partition)
        return
    # A committed offset is that of the next record to read (KafkaConsumer.commitSync), so this is the record itself.
    offset = int(advice.model.lags.committed[advice.finding.rows[0]])
    if advice.finding.verdict is not Verdict.STALLED:
        how = f"If a restart does not help, look at the record at {advice.partition} offset {offset}: it may hang its consumer."
        yield _action(
            ActionType.SKIP_OR_FIX_RECORD,
            how,
            "unknown",
            "only the consumer's own log shows whether this record hangs it",
        )
        return
    how = (
        f"Look at the record at {advice.partition} offset {offset}; make the consumer handle it, or stop the group and skip "
        f"it: kafka-consumer-groups.sh {advice.tools} --group {group} --topic {quote(f'{shown(topic)}:{partition}')} "
        f"--reset-offsets --to-offset {offset + 1} --execute"
    )
    params = {"topic": topic, "partition": partition, "offset": offset}
    yield _action(ActionType.SKIP_OR_FIX_RECORD, how, "yes", params=params)


def _repartition(advice: Advice) -> Iterator[Action]:
    hot = advice.finding.verdict is Verdict.HOT_PARTITION
    # Moving helps for certain: keys need not change.
    if advice.finding.verdict is Verdict.REBALANCE and not advice.finding.evidence.get("may_not_be_enough"):
        return
    how = (
        f"{advice.partition} alone gets more than a member can do: spread its keys (a finer key, or salt the hottest), or add "
        f"partitions to {advice.topic}; more members do not help."
        if hot
        else f"Add partitions to {advice.topic}, for example twice as many; keys move to other partitions: "
        f"kafka-topics.sh {advice.tools} --alter --topic {quote(advice.topic)} --partitions {_twice(advice)}"
    )
    params = {"topic": advice.place[0]} if advice.place else {}
    reason = "only the owner of the topic knows whether the order by key allows it"
    yield _action(ActionType.ADD_PARTITIONS_OR_REKEY, how, "unknown", reason, params=params, durable=True)


def _twice(advice: Advice) -> str:
    """Twice the topic's partitions; a placeholder where the topic is not known."""
    about = advice.model.seen.topics.get(advice.place[0]) if advice.place else None
    return str(2 * about.partitions) if about else "<n>"


def _abort(advice: Advice) -> Iterator[Action]:
    if advice.place is None:
        return
    topic, partition = advice.place
    where = f"--topic {quote(advice.topic)} --partition {partition}"
    how = (
        f"An open transaction holds {advice.partition} back. See whether its producer is gone: kafka-transactions.sh {advice.tools} "
        f"find-hanging {where} ; if it is: kafka-transactions.sh {advice.tools} abort {where} "
        f"--start-offset {advice.finding.evidence['last_stable_offset']}"
    )
    yield _action(ActionType.ABORT_TRANSACTION, how, "yes", params={"topic": topic})


def _loss(advice: Advice) -> Iterator[Action]:
    lost = advice.finding.evidence["lost"]
    how = (
        f"Accept the loss of {counted(lost, 'record')}, or read them from another source; raise retention.ms of {advice.topic} "
        "until the group has caught up, so that no more are lost."
    )
    yield _action(ActionType.RESET_OR_ACCEPT_LOSS, how, "yes", params={"lost": lost})


MAKERS: dict[ActionType, Callable[[Advice], Iterator[Action]]] = {
    ActionType.WAIT: _wait,
    ActionType.FOLLOW_PLAN: _follow,
    ActionType.SWITCH_ASSIGNOR: _switch,
    ActionType.SET_MEMBER_COUNT: _start,
    ActionType.RAISE_PARALLELISM: _parallelism,
    ActionType.RESTART_MEMBER: _restart,
    ActionType.SKIP_OR_FIX_RECORD: _record,
    ActionType.ADD_PARTITIONS_OR_REKEY: _repartition,
    ActionType.ABORT_TRANSACTION: _abort,
    ActionType.RESET_OR_ACCEPT_LOSS: _loss,
}
