"""Actions about the members: another number of them, or a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote as quote_url

from kagent.contract.recommendation import Action, ActionType
from kagent.detect.dealing import BY_TOPIC, deals_by_topic
from kagent.detect.useful_members import SPREAD_ALONE
from kagent.lag.bound import Bound
from kagent.recommend.advice import Advice, K, action, caught_up, stateful
from kagent.recommend.count_forecast import gain_of_count
from kagent.recommend.member_counts import Count
from kagent.recommend.switching import how_to_switch
from kagent.strategies.availability import shipped
from kagent.text import counted, shown

DEAL_TOGETHER = frozenset({"roundrobin", "kip848-uniform"})
"""Strategies that deal all topics out together and give each member as many partitions."""
ASSIGNOR_DECIDES = "its assignor decides who gets which partitions"
"""Why no bound can be promised where the number of members changes."""

NAMED: Bound = 3
"""Members that a sentence names."""

POLLING_OF_JAVA = ("max.poll.interval.ms", "lower max.poll.records", "group.instance.id")
POLLING = {
    K.CLASSIC_JAVA: POLLING_OF_JAVA,
    K.CONNECT: POLLING_OF_JAVA,
    K.STREAMS: POLLING_OF_JAVA,
    K.CLASSIC_PYTHON: ("max_poll_interval_ms", "lower max_poll_records", "group_instance_id"),
    K.FAUST: ("broker_max_poll_interval", "lower broker_max_poll_records", "consumer_group_instance_id"),
    # It hands out record by record, and has no setting of how many.
    K.CLASSIC_LIBRDKAFKA: ("max.poll.interval.ms", "do less between two polls", "group.instance.id"),
    K.CLASSIC: (
        "max.poll.interval.ms",
        "do less between two polls (Java: lower max.poll.records)",
        "group.instance.id",
    ),
}
"""By kind what a client calls the time between two polls, what makes that shorter, and static membership."""


def _counts_members(advice: Advice) -> bool:
    """Whether the group is run by a number of members: Streams scales by threads, simple groups by the job's parallelism."""
    return advice.kind not in (K.STREAMS, K.SIMPLE) and advice.model.by_member


def more_members(advice: Advice) -> Iterator[Action]:
    """As many members as relieve the group."""
    if _counts_members(advice):
        scaled = tuple(_scaled(advice, ActionType.SET_MEMBER_COUNT))
        yield from scaled or _switched_and_scaled(advice)


def _switched_and_scaled(advice: Advice) -> Iterator[Action]:
    """More members with another strategy, where neither helps alone: under range more members than the largest topic has partitions get
    nothing, and with as many as now the other strategy may leave one of them too much."""
    model = advice.model
    strategy = next((s for s in shipped(str(advice.kind)) if s in DEAL_TOGETHER), None)
    if (
        strategy is None
        or not deals_by_topic(model)
        or "needed" in advice.finding.evidence
        or stateful(model)
    ):
        return
    found = advice.counts.together.relieving(model.policy.min_gain)
    if found is not None:
        share = f"under range more members do not help enough; {_share(found)}"
        yield _with_members(advice, ActionType.SET_MEMBER_COUNT, found, share, strategy)


def start_members(advice: Advice) -> Iterator[Action]:
    """The consumers of a group that has none."""
    if not advice.finding.evidence.get("members"):
        yield action(ActionType.SET_MEMBER_COUNT, "Start the group's consumers, or delete the group.", "yes")


def fewer_members(advice: Advice) -> Iterator[Action]:
    """As many members as there is work for."""
    if not _counts_members(advice):
        return
    count = len(advice.model.names) - len(advice.finding.members)
    how = f"Run {counted(count, 'member')} instead of {len(advice.model.names)}, or keep the others as stand-by."
    yield action(ActionType.SET_MEMBER_COUNT, how, "yes", params={"members": count}, durable=True)


def _scaled(advice: Advice, kind: ActionType) -> Iterator[Action]:
    number = advice.finding.evidence.get("needed")
    # None where there are as many members as partitions: another one would stay idle.
    found = (
        advice.counts.relieving(advice.model.policy.min_gain) if number is None else advice.counts.of(number)
    )
    if found is None:
        return
    share = _share(found)
    useful = advice.model.state.useful
    # The number relieves a bad spread, and is not the autoscalers' number.
    if number is None and useful is not None and useful.because == SPREAD_ALONE:
        share = f"{useful.members} are enough if the work is well spread; with {found.members} {share}"
    yield _with_members(advice, kind, found, share)


def _with_members(
    advice: Advice, kind: ActionType, found: Count, share: str, strategy: str | None = None
) -> Action:
    """This number of members, and with them another strategy that deals all topics out together."""
    gain = gain_of_count(advice.model, found.members, together=strategy is not None)
    how, params = (
        _how_to_scale(advice, found.members),
        {"members": found.members, "fitting": list(found.fitting)},
    )
    if strategy is not None:
        how, params = (
            f"{how_to_switch(advice.kind, strategy, BY_TOPIC)} {how}",
            {**params, "strategy": strategy},
        )
    reason = f"{share}; {caught_up(gain, ASSIGNOR_DECIDES)}"
    return action(kind, how, "yes", reason, params=params, gain=gain, durable=True)


def _share(found: Count) -> str:
    return f"the most loaded member would get {found.share_then:.0%} of the inflow instead of {found.share_now:.0%}"


def _how_to_scale(advice: Advice, count: int) -> str:
    have = len(advice.model.names)
    return {
        K.CONNECT: f"Set tasks.max={count} in the connector's configuration (now {have}).",
        K.STREAMS: f"Run {count} stream threads in all: more instances, or num.stream.threads.",
        K.SIMPLE: f"Raise the job's parallelism to {count}.",
        K.FAUST: f"Run {count} workers instead of {have}.",
    }.get(advice.kind, f"Run {count} members instead of {have}.")


def more_parallelism(advice: Advice) -> Iterator[Action]:
    """More stream threads, or a wider job."""
    if advice.kind is K.STREAMS:
        yield from _scaled(advice, ActionType.RAISE_PARALLELISM)
    elif advice.kind is K.SIMPLE:
        yield action(ActionType.RAISE_PARALLELISM, "Raise the job's parallelism.", "unknown", durable=True)


def other_process(advice: Advice) -> Iterator[Action]:
    """More stream threads, or another process of the job for the partition."""
    if advice.kind is K.STREAMS:
        yield from _scaled(advice, ActionType.RAISE_PARALLELISM)
    elif advice.kind is K.SIMPLE:
        how = f"Assign {advice.partition} to another process of the program: the group uses no assignor."
        yield action(ActionType.RAISE_PARALLELISM, how, "unknown", "only the program decides who reads what")


def restart_member(advice: Advice) -> Iterator[Action]:
    """A restart of the members concerned."""
    who = _who(advice.members) or "the group's members"
    how = {
        K.CONNECT: f"Restart the task of {who}: {restart_of_task(advice)}{_likewise(advice)}",
        K.SIMPLE: "Restart the job.",
        K.STREAMS: f"Restart or replace the instance {who}.",
    }.get(advice.kind, f"Restart or replace {who}.")
    yield action(ActionType.RESTART_MEMBER, how, "yes", params=_named(advice.members))


def _who(names: Sequence[str]) -> str:
    """These members, the first few by name."""
    some, rest = [shown(name) for name in names[:NAMED]], len(names[NAMED:])
    *most, last = [*some, *([counted(rest, "other")] if rest else [])] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _named(names: Sequence[str]) -> dict[str, Any]:
    """As the parameters of an action name them: the first apart, as there mostly is but one."""
    return {"member": names[0], **({"others": list(names[1:])} if names[1:] else {})} if names else {}


def restart_silent(advice: Advice) -> Iterator[Action]:
    """A restart of the member that makes no progress while its records are deleted, where there is one."""
    if advice.finding.evidence.get("silent_members"):
        yield from restart_member(advice)


def restart_of_task(advice: Advice) -> str:
    """The request to Connect's REST API; connector and task are in the names of a sink's group and client ids (WorkerSinkTask)."""
    roster, finding = advice.model.roster, advice.finding
    # Where it is not known who holds what, findings name the readers of partitions: they are no members, and may be more.
    named = advice.model.by_member and finding.members
    client = roster.members[finding.members[0]].client_id if roster and named else ""
    task = re.fullmatch(r"connector-consumer-(.+)-(\d+)", client)
    connector = quote_url(task[1], safe="") if task else "<name>"
    number = task[2] if task else "<n>"
    return f"curl -X POST http://<connect worker>:8083/connectors/{connector}/tasks/{number}/restart"


def _likewise(advice: Advice) -> str:
    """That the request is that of one task of several."""
    return ", and likewise for the others" if len(advice.members) > 1 else ""


def assign_anew(advice: Advice) -> Iterator[Action]:
    """A restart that gives partitions without an owner to somebody, where the group has members."""
    if advice.finding.evidence.get("members"):
        how = (
            "Restart one member, so that the group assigns its partitions anew. If they stay without an owner, its assignor is "
            "at fault."
        )
        yield action(ActionType.RESTART_MEMBER, how, "yes")


def steady_number(advice: Advice) -> Iterator[Action]:
    """A number of members that no autoscaler changes over and over."""
    if not advice.finding.evidence.get("together"):
        return
    # https://keda.sh/docs/latest/reference/scaledobject-spec/#cooldownperiod, https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    how = (
        "Keep the number of members steady: if an autoscaler changes it, give it a longer cooldown (KEDA: cooldownPeriod and the HPA's "
        "stabilizationWindowSeconds) or a greater minimum of members; if none does, look at what these members share, such as a machine."
    )
    reason = "members leave and rejoin several at once, and each time the whole group rebalances"
    yield action(ActionType.SET_MEMBER_COUNT, how, "yes", reason, durable=True)


def steady_members(advice: Advice) -> Iterator[Action]:
    """A restart of those that come and go, with what keeps them."""
    names = advice.finding.evidence["come_and_go"]
    who = _who(names) or "its members"
    longer, less, static = POLLING.get(advice.kind, POLLING[K.CLASSIC])
    how = (
        f"Look in the logs of {who} for the reason why members left. After poll timeouts raise {longer} or {less}; after crashes fix "
        f"their cause; then restart them. Static membership ({static}) avoids a rebalance at a restart."
    )
    yield action(ActionType.RESTART_MEMBER, how, "yes", params=_named(names))
