"""What can be done about a finding, for the kind of group it is: ranked, each with the exact setting or command.

No broker can be asked to move a partition. What a group's clients can do decides what is feasible (see the table in
``docs/judgement.md``); what cannot be done is said with its reason, never put first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Any, Literal

import numpy as np

from kagent.advice.look import Look
from kagent.advice.relief import Relief
from kagent.advice.switching import how_to_switch
from kagent.advice.verdicts import Finding
from kagent.contract.recommendation import Action, ActionType, GroupKind, Verdict
from kagent.text import shown

Feasible = Literal["yes", "no", "unknown"]
K = GroupKind
CLIENTS = frozenset({K.CLASSIC, K.CLASSIC_JAVA, K.CLASSIC_LIBRDKAFKA, K.CLASSIC_PYTHON})
SHIPPED: dict[GroupKind, tuple[str, ...]] = {
    K.CLASSIC_JAVA: ("cooperative-sticky", "sticky", "roundrobin", "range"),
    K.CLASSIC_LIBRDKAFKA: ("cooperative-sticky", "roundrobin", "range"),
    K.CLASSIC_PYTHON: ("sticky", "roundrobin", "range"),
    K.CLASSIC: ("roundrobin", "range"),
    K.CONSUMER: ("kip848-uniform", "kip848-range"),
    K.CONNECT: ("cooperative-sticky", "sticky", "roundrobin", "range"),
}
"""The strategies that each kind's own library has, in the order in which they are preferred."""
RANK = {"yes": 0, "unknown": 1, "no": 2}


@dataclass(frozen=True)
class Option:
    """What another strategy would give: greatest work and skew after it, partitions that change hands."""

    strategy: str
    greatest: float
    skew: float
    moves: int
    unsafe: str | None = None


@dataclass(frozen=True)
class Advice:
    """All that the actions are made from."""

    look: Look
    finding: Finding
    relief: Relief | None
    options: tuple[Option, ...] = ()
    counts: tuple[tuple[int, float], ...] = ()
    """Member counts with the greatest share of the inflow that one member would have."""

    @property
    def member(self) -> str:
        """The member concerned, as it is shown."""
        return shown(self.look.names[self.finding.members[0]]) if self.finding.members else "the group"

    @property
    def place(self) -> str:
        """The partition concerned, as it is shown."""
        if not self.finding.rows:
            return "its partition"
        topic, partition = self.look.lags.name(self.finding.rows[0])
        return f"{shown(topic)}-{partition}"

    @property
    def topic(self) -> str:
        return shown(self.look.lags.name(self.finding.rows[0])[0]) if self.finding.rows else "<topic>"

    @property
    def kind(self) -> GroupKind:
        return self.look.kind


def actions(advice: Advice) -> list[Action]:
    """What can be done, best first: feasible before unknown before infeasible, then in the order of the verdict."""
    made = [a for maker in MAKERS[advice.finding.verdict] for a in maker(advice)]
    made.sort(key=lambda a: RANK[a.feasible])
    if not any(a.feasible != "no" for a in made):
        made.insert(0, _nothing(advice))
    return made


def _action(kind: ActionType, how: str, feasible: Feasible, reason: str | None = None, **more: Any) -> Action:
    return Action(type=kind, how=how, feasible=feasible, reason=reason, **more)


def following(look: Look) -> bool:
    """Whether the group's own protocol is an assignor that reads kagent's plans."""
    protocol = (look.roster.protocol if look.roster else None) or ""
    return "kagent" in protocol


def stateful(look: Look) -> bool:
    """Whether moving a partition means moving state."""
    return look.policy.stateful or look.kind is K.STREAMS


def _gain(advice: Advice, after: float | None = None) -> dict[str, float | None]:
    relief = advice.relief
    if relief is None or relief.unit != "seconds":
        return {}
    return {"now": round(relief.now, 1), "after": round(relief.after if after is None else after, 1)}


def _follow(advice: Advice) -> Iterator[Action]:
    relief = advice.relief
    if relief is None or not relief.plan.moves or relief.gain < advice.look.policy.min_gain:
        return
    moves = relief.plan.move_count
    how = f"Let the group follow the plan: {_first_moves(relief)}"
    feasible, reason = _can_follow(advice.look)
    if feasible == "no" and advice.kind not in CLIENTS:
        return
    yield _action(
        ActionType.FOLLOW_PLAN,
        f"{how} {_hand(advice, feasible)}".rstrip(),
        feasible,
        reason,
        gain=_gain(advice),
        disruption={"partitions": float(moves)},
    )


def _hand(advice: Advice, feasible: Feasible) -> str:
    """What carries the plan out, or would."""
    if advice.kind is K.CONSUMER:
        run = f"Run `kagent apply {quote(shown(advice.look.seen.group))}`."
        return (
            run
            if feasible == "yes"
            else f"{run} It takes kagent's assignor on the brokers (`kagent assignor`)."
        )
    if feasible == "yes":
        return ""
    if advice.kind is K.CLASSIC_JAVA:
        return "This takes kagent's assignor in every consumer (`kagent assignor --consumer`)."
    return "This takes an assignor that follows kagent (aiokafka, kafka-python)."


def _first_moves(relief: Relief, limit: int = 3) -> str:
    moves = relief.plan.moves
    said = ", ".join(f"{shown(m.topic)}-{m.partition} to {shown(m.to)}" for m in moves[:limit])
    return f"{said} and {len(moves) - limit} more." if len(moves) > limit else f"{said}."


def _can_follow(look: Look) -> tuple[Feasible, str | None]:
    if stateful(look):
        return "no", "its members keep state by partition"
    if following(look):
        return "yes", "its assignor follows kagent"
    if look.kind is K.CLASSIC_PYTHON:
        return "unknown", "possible once its consumers run kagent's following assignor"
    if look.kind is K.CONSUMER and not (look.roster and look.roster.protocol):
        return "unknown", (
            "its members name no assignor, so it has the brokers' default: feasible if that is kagent "
            "(kafka-consumer-groups.sh --describe --state shows it)"
        )
    if look.kind is K.CLASSIC_JAVA:
        return "no", "its assignor is not kagent's"
    return "no", "no client of this kind can be told which partition to take"


def _switch(advice: Advice) -> Iterator[Action]:
    """The shipped strategies that would relieve the group for good."""
    look, relief = advice.look, advice.relief
    if relief is None or look.kind not in SHIPPED:
        return
    better = [
        o
        for o in advice.options
        if o.strategy in SHIPPED[look.kind]
        and o.strategy != _present(look)
        and o.greatest <= (1 - look.policy.min_gain) * relief.now
    ]
    order = SHIPPED[look.kind]
    for option in sorted(
        better, key=lambda o: (o.unsafe is not None, round(o.skew, 1), order.index(o.strategy))
    )[:2]:
        feasible: Feasible = "no" if option.unsafe or stateful(look) else "yes"
        reason = f"unsafe: {option.unsafe}" if option.unsafe else "stateful" if stateful(look) else None
        yield _action(
            ActionType.SWITCH_ASSIGNOR,
            how_to_switch(look.kind, option.strategy, _present(look)),
            feasible,
            reason or f"skew {option.skew:.2f} with the lags of now",
            params={"strategy": option.strategy},
            gain=_gain(advice, option.greatest),
            durable=True,
            disruption={"partitions": float(option.moves)},
        )


def _present(look: Look) -> str:
    """The strategy that the group runs now, which nobody can switch to."""
    protocol = (look.roster.protocol if look.roster else None) or ""
    return f"kip848-{protocol}" if look.kind is K.CONSUMER else protocol


def _count(advice: Advice) -> Iterator[Action]:
    look = advice.look
    have = len(look.names)
    now = dict(advice.counts).get(have)
    if not advice.counts or now is None:
        return
    needed = advice.finding.evidence.get("needed", have)
    fitting = [(n, share) for n, share in advice.counts if n >= needed and n != have]
    if advice.finding.verdict is not Verdict.UNDER_PROVISIONED:
        if not _uneven(look):
            yield from _more_for_certain(advice)
            return
        fitting = [
            (n, share)
            for n, share in fitting
            if have < n <= 2 * have and share <= (1 - look.policy.min_gain) * now
        ]
    if not fitting:
        return
    count = fitting[0][0]
    noun, how = _how_to_scale(advice, count)
    yield _action(
        noun,
        how,
        "yes",
        f"the most loaded would get {fitting[0][1]:.0%} of the inflow instead of {now:.0%}",
        params={"members": count, "fitting": [n for n, _ in fitting[:5]]},
        gain=_gain(advice, advice.relief.now * fitting[0][1] / now) if advice.relief and now else {},
        durable=True,
    )


def _more_for_certain(advice: Advice) -> Iterator[Action]:
    """More members, where that relieves the greatest one whoever gets which partition: as many as divide them evenly, each
    then with so few that even the heaviest together are less than one member has now."""
    look, relief, have = advice.look, advice.relief, len(advice.look.names)
    if relief is None or relief.now <= 0:
        return
    lags, work = look.lags, look.load.size
    units = np.sort(np.bincount(lags.partition, work) if relief.paired else work)[::-1]
    sizes = [int((lags.topic[relief.rows] == code).sum()) for code in range(len(lags.topics))]
    whole = max(sizes) if relief.paired else sum(sizes)
    for count, _ in advice.counts:
        each = -(-max(sizes) // count) if relief.paired else sum(-(-n // count) for n in sizes)
        most = float(units[:each].sum())
        if not have < count <= min(2 * have, whole) or most > (1 - look.policy.min_gain) * relief.now:
            continue
        kind, how = _how_to_scale(advice, count)
        yield _action(
            kind,
            how,
            "yes",
            f"whoever gets which, nobody has more than {most / relief.now:.0%} of what the most loaded has now",
            params={"members": count},
            gain=_gain(advice, most),
            durable=True,
        )
        return


def _uneven(look: Look) -> bool:
    """Whether some members hold more partitions than others because their number does not divide them."""
    held = int((look.lags.owner >= 0).sum())
    return held % max(1, len(look.names)) != 0


def _how_to_scale(advice: Advice, count: int) -> tuple[ActionType, str]:
    have = len(advice.look.names)
    if advice.kind is K.CONNECT:
        return (
            ActionType.SET_MEMBER_COUNT,
            f"Set tasks.max={count} in the connector's configuration (now {have}).",
        )
    if advice.kind is K.STREAMS:
        return (
            ActionType.RAISE_PARALLELISM,
            f"Run {count} stream threads in all: more instances, or num.stream.threads.",
        )
    if advice.kind is K.SIMPLE:
        return ActionType.RAISE_PARALLELISM, f"Raise the job's parallelism to {count}."
    if advice.kind is K.FAUST:
        return ActionType.SET_MEMBER_COUNT, f"Run {count} workers instead of {have}."
    return ActionType.SET_MEMBER_COUNT, f"Run {count} members instead of {have}."


def _restart(advice: Advice) -> Iterator[Action]:
    what = {
        K.CONNECT: f"Restart the task of {advice.member}: POST /connectors/<name>/tasks/<n>/restart.",
        K.SIMPLE: "Restart the job.",
        K.STREAMS: f"Restart or replace the instance {advice.member}.",
    }.get(advice.kind, f"Restart or replace {advice.member}.")
    params = {"member": look_name(advice)} if advice.finding.members else {}
    yield _action(ActionType.RESTART_MEMBER, what, "yes", params=params, gain=_gain(advice))


def look_name(advice: Advice) -> str:
    """The name of the member concerned, as data."""
    return advice.look.names[advice.finding.members[0]]


def _record(advice: Advice) -> Iterator[Action]:
    row = advice.finding.rows[0]
    topic, partition = advice.look.lags.name(row)
    offset = int(advice.look.lags.committed[row])
    group = shown(advice.look.seen.group)
    yield _action(
        ActionType.SKIP_OR_FIX_RECORD,
        f"Look at the record at {advice.place} offset {offset}; make the consumer handle it, or stop the group and step "
        f"over it: kafka-consumer-groups.sh --group '{group}' --topic {shown(topic)}:{partition} --reset-offsets "
        f"--to-offset {offset + 1} --execute.",
        "yes",
        params={"topic": topic, "partition": partition, "offset": offset},
    )


def _repartition(advice: Advice) -> Iterator[Action]:
    hot = advice.finding.verdict is Verdict.HOT_PARTITION
    how = (
        f"{advice.place} alone is the bound: spread its keys (a finer key, or salt the hottest), or add partitions to "
        f"{advice.topic}; more members do not help."
        if hot
        else f"Add partitions to {advice.topic}: kafka-topics.sh --alter --topic {advice.topic} --partitions <n>. "
        "Keys move to other partitions."
    )
    yield _action(
        ActionType.ADD_PARTITIONS_OR_REKEY,
        how,
        "unknown",
        "only the owner of the topic knows whether order by key allows it",
        params={"topic": advice.look.lags.name(advice.finding.rows[0])[0]} if advice.finding.rows else {},
        durable=True,
    )


def _parallelism(advice: Advice) -> Iterator[Action]:
    if advice.kind in (K.SIMPLE, K.STREAMS):
        yield from _count(advice)
        if not advice.counts:
            yield _action(
                ActionType.RAISE_PARALLELISM, "Raise the job's parallelism.", "unknown", durable=True
            )


def _abort(advice: Advice) -> Iterator[Action]:
    yield _action(
        ActionType.ABORT_TRANSACTION,
        f"An open transaction holds {advice.place}. If its producer is gone: kafka-transactions.sh --bootstrap-server … "
        f"find-hanging --broker-id <leader>, then abort --topic {advice.topic} --partition "
        f"{advice.look.lags.name(advice.finding.rows[0])[1]} --start-offset {advice.finding.evidence['last_stable_offset']}.",
        "yes",
        params={"topic": advice.look.lags.name(advice.finding.rows[0])[0]},
    )


def _loss(advice: Advice) -> Iterator[Action]:
    lost = advice.finding.evidence["lost"]
    yield _action(
        ActionType.RESET_OR_ACCEPT_LOSS,
        f"{lost} records were deleted before they were read. Raise retention.ms of {advice.topic} until the group has "
        "caught up, and read the lost records from another source if they matter.",
        "yes",
        params={"lost": lost},
    )


def _unsteady(advice: Advice) -> Iterator[Action]:
    who = ", ".join(shown(n) for n in advice.finding.evidence["come_and_go"][:3]) or "its members"
    yield _action(
        ActionType.RESTART_MEMBER,
        f"Look at {who}: members that leave at their poll timeout need a larger max.poll.interval.ms or a smaller "
        "max.poll.records; members that crash need their logs read; static membership (group.instance.id) spares the "
        "group a restart.",
        "yes",
    )


def _wait(advice: Advice) -> Iterator[Action]:
    seconds = advice.finding.evidence.get("drains_in_s")
    if seconds is not None:
        yield _action(
            ActionType.WAIT,
            f"Wait: it drains by itself in about {seconds:.0f} s.",
            "yes",
            params={"seconds": seconds},
        )


def _nothing(advice: Advice) -> Action:
    return _action(ActionType.NONE, "Nothing can be done from outside the group's clients.", "yes")


def _fewer(advice: Advice) -> Iterator[Action]:
    have, idle = len(advice.look.names), len(advice.finding.members)
    yield _action(
        ActionType.SET_MEMBER_COUNT,
        f"Run {have - idle} members instead of {have}, or keep the others as stand-by.",
        "yes",
        params={"members": have - idle},
        durable=True,
    )


def _start(advice: Advice) -> Iterator[Action]:
    yield _action(
        ActionType.SET_MEMBER_COUNT, "Start the group's consumers, or delete the group.", "yes", params={}
    )


MAKERS: dict[Verdict, tuple[Any, ...]] = {
    Verdict.REBALANCE: (_wait, _follow, _switch, _count, _repartition),
    Verdict.HOT_PARTITION: (_repartition, _follow),
    Verdict.SLOW_MEMBER: (_restart, _follow),
    Verdict.STUCK_MEMBER: (_restart,),
    Verdict.STALLED: (_record, _restart),
    Verdict.BLOCKED_BY_TRANSACTION: (_abort,),
    Verdict.UNDER_PROVISIONED: (_count, _parallelism, _repartition),
    Verdict.UNSTABLE: (_unsteady,),
    Verdict.LOST_DATA: (_loss,),
    Verdict.IDLE_MEMBERS: (_fewer,),
    Verdict.NO_MEMBERS: (_start,),
}


def shares(look: Look) -> tuple[tuple[int, float], ...]:
    """For member counts from the present one up to the partitions: the greatest share of the inflow one would have.

    Partitions are dealt out in turn, as every shipped strategy does in some order; only counts that divide the partitions
    evenly are listed, and the present one.
    """
    lags = look.lags
    held = ~lags.orphaned & (lags.known | (lags.owner >= 0))
    partitions = int(held.sum())
    inflow = np.sort(lags.inflow[held])[::-1]
    total = float(inflow.sum())
    have = len(look.names)
    if not partitions or total <= 0:
        return ()
    counts = [n for n in range(1, partitions + 1) if partitions % n == 0 or n == have][-400:]
    now = np.bincount(
        lags.owner[held & (lags.owner >= 0)], lags.inflow[held & (lags.owner >= 0)], max(have, 1)
    )
    out = []
    for n in counts:
        per = np.bincount(np.arange(partitions) % n, inflow, n).max() / total
        out.append((n, float(now.max() / total) if n == have else float(per)))
    return tuple(out)
