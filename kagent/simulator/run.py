"""Drive the judgement over a scenario as a worker would: events per trigger, samples, ticks, confirmations.

Many seeds of a scenario run side by side. Who is caught up is told from the columns of all of them at once, by the very
rule with which the judgement's own cheap look ends; every other group, at every tick, goes through the judgement itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.advice.judge import confirm, judge, minded
from kagent.advice.state import JudgeState
from kagent.contract.recommendation import Recommendation, Status
from kagent.lag.log_ends import EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation, TopicInfo
from kagent.policy import Policy, make_policy
from kagent.simulator import world as w
from kagent.simulator.events import happen
from kagent.simulator.scenario import Scenario
from kagent.simulator.table import EPOCH, Table
from kagent.simulator.world import World
from kagent.strategies import Member, assign
from kagent.strategies import Scenario as Assignment

LATENCY = 0.4
"""Seconds from a trigger to the event in the worker's hands."""
SCREEN = 3
RECALL = 1_800_000
"""Every group is judged at least so often, in ms."""
CAUGHT_UP = 30.0
LIBRARIES = {
    "classic_java": "java",
    "classic_librdkafka": "librdkafka",
    "classic_python": "python",
}


@dataclass(frozen=True)
class View:
    """A group's view as the fold of records would give it."""

    group: str
    type: str
    state: str
    protocol_type: str | None
    protocol: str | None
    generation: int | None
    members: tuple[MemberView, ...]
    last_change: int
    stale: bool = False
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemberView:
    """A member as the fold of records would give it."""

    member_id: str
    client_id: str
    host: str
    subscriptions: tuple[str, ...]
    assigned: Mapping[str, tuple[int, ...]]
    instance_id: str | None = None
    rack: str | None = None
    regex: str | None = None
    away: bool = False
    library: str | None = None

    @property
    def name(self) -> str:
        return f"{self.client_id}{self.host}"


@dataclass(frozen=True, slots=True)
class Opening:
    """One incident: when it opened (s), with which verdicts, and when it was resolved."""

    at: float
    verdicts: tuple[str, ...]
    resolved: float | None = None
    resolution: str | None = None
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a scenario. ``flaps``: openings within an hour of a resolution; ``detected``: seconds from onset."""

    name: str
    seed: int
    hours: float
    openings: tuple[Opening, ...]
    detected: float | None
    right: bool | None
    flaps: int
    drained: float | None
    """When no member was behind any more, seconds after the onset."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[Recommendation, ...] = field(default=(), repr=False)


@dataclass(slots=True)
class Mind:
    """What is remembered and said of one of the groups."""

    state: JudgeState | None = None
    messages: list[Recommendation] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    drained: float | None = None


@dataclass(slots=True)
class Watcher:
    """kagent's side. ``minds``: one per seed; ``close``: which of them want a close look whatever their lag."""

    policy: Policy
    table: Table
    minds: list[Mind]
    close: npt.NDArray[np.bool_]
    ends: dict[str, EndHistory] = field(default_factory=dict)
    roster: Roster | None = None
    judged: int = -1
    """The generation that was judged last."""
    as_of: int = 0
    looks: int = 0


def run(scenario: Scenario, seed: int = 0, policy: Policy | None = None) -> Report:
    """Let a scenario happen under kagent's eyes."""
    return run_many(scenario, (seed,), policy)[0]


def screen(scenario: Scenario, seeds: Sequence[int]) -> list[Report]:
    """As :func:`run_many`, at a third of the cost for groups that are often behind, and stricter.

    Looks at every third tick, and whatever is found counts as found at the two ticks before it as well: a finding that
    lasts for the usual three evaluations is met by one of these looks, and opens there. So what stays silent here would
    have stayed silent at every tick; what opens is to be run again with :func:`run_many`.
    """
    policy = make_policy(scenario.policy)
    skipped = min(SCREEN, policy.evaluations) - 1
    strict = replace(
        policy,
        evaluations=policy.evaluations - skipped,
        confirmations=1,
        hold=max(0.0, policy.hold - skipped * scenario.tick),
    )
    return run_many(replace(scenario, tick=scenario.tick * (skipped + 1)), seeds, strict)


def run_many(
    scenario: Scenario, seeds: Sequence[int], policy: Policy | None = None, sieve: bool = True
) -> list[Report]:
    """One report per seed, the same as each would give alone. ``sieve``: pass over groups that are caught up."""
    if scenario.follow and len(seeds) > 1:  # each goes its own way once it was told
        return [run_many(scenario, (seed,), policy, sieve)[0] for seed in seeds]
    world = w.begin(scenario, seeds)
    watcher = _watcher(world, policy or make_policy(scenario.policy))
    queue: list[tuple[float, int, Mapping[str, Any]]] = []
    serial = 0
    for event in scenario.events:
        heapq.heappush(queue, (float(event.get("at", 0)), serial, event))
        serial += 1
    next_sample, next_tick, next_trigger = 0.0, scenario.tick, scenario.trigger
    while world.time < scenario.hours * 3600:
        while queue and queue[0][0] <= world.time:
            for more in happen(world, heapq.heappop(queue)[2]):
                heapq.heappush(queue, (float(more["at"]), serial, more))
                serial += 1
        w.step(world, scenario.step)
        if world.time >= next_trigger:
            _deliver(world, watcher)
            next_trigger += scenario.trigger * max(1, np.ceil((world.time - next_trigger) / scenario.trigger))
        if world.time >= next_sample:
            _sample(world, watcher)
            next_sample += scenario.sample
        if world.time >= next_tick:
            _tick(world, watcher, sieve)
            next_tick += scenario.tick
            _drained(world, watcher)
    return [_report(scenario, seed, mind) for seed, mind in zip(seeds, watcher.minds, strict=True)]


def _watcher(world: World, policy: Policy) -> Watcher:
    """kagent when the scenario begins: it has known the group for a week, or sees it for the first time."""
    count = world.seeds
    table = Table.begin(world)
    watcher = Watcher(policy, table, [Mind() for _ in range(count)], np.ones(count, bool))
    _deliver(world, watcher)
    _sample(world, watcher)
    if world.scenario.known_before:
        table.known_before(round(world.scenario.commit * 1000))
        for mind in watcher.minds:
            mind.state = JudgeState(first_seen=EPOCH - 7 * 86_400_000, members_at=EPOCH)
    return watcher


def _ms(time: float) -> int:
    return EPOCH + round(time * 1000)


def _deliver(world: World, watcher: Watcher) -> None:
    """The pipeline's trigger: the latest commit of each partition."""
    watcher.table.take(world)
    watcher.as_of = _ms(world.time)
    watcher.roster = _roster(world, watcher.roster)


def _roster(world: World, known: Roster | None) -> Roster:
    if known is not None and known.generation == world.generation:
        return known
    simple = world.scenario.kind == "simple"
    members = tuple(_described(world, at, m) for at, m in enumerate(world.members.values()))
    return Roster.of(
        View(
            group=world.scenario.name,
            type="simple" if simple else "consumer" if world.scenario.kind == "consumer" else "classic",
            state="Stable" if members else "Empty",
            protocol_type=None if simple else "consumer",
            protocol=world.scenario.assignor,
            generation=world.generation,
            members=() if simple else members,
            last_change=_ms(world.changed_at),
        )
    )


def _described(world: World, at: int, member: w.Member) -> MemberView:
    held = {
        t.name: world.partition[(world.owner == at) & (world.topic == c)] for c, t in enumerate(world.topics)
    }
    return MemberView(
        member_id=member.member_id,
        client_id=f"{world.scenario.name}-{member.name}",
        host="/10.0.0.1",
        subscriptions=tuple(t.name for t in world.topics),
        assigned={topic: tuple(partitions.tolist()) for topic, partitions in held.items() if len(partitions)},
        library=LIBRARIES.get(world.scenario.kind),
    )


def _sample(world: World, watcher: Watcher) -> None:
    """Log ends are polled; of all groups as if they were one topic's partitions, one group after the other."""
    end = w.shown_end(world)
    for topic in world.topics:
        here = slice(*world.span(topic.name))
        open_ = (world.lso[:, here] < end[:, here]).any()
        watcher.ends.setdefault(topic.name, EndHistory(topic.partitions * world.seeds)).add(
            _ms(world.time),
            _ms(world.time) + 20,
            world.start[:, here].astype(np.int64).ravel(),
            end[:, here].ravel(),
            _stable(world, here).ravel() if open_ else None,
            world.ids[topic.name],
        )


def _stable(world: World, here: slice) -> npt.NDArray[np.int64]:
    return np.minimum(world.lso[:, here], np.floor(world.end[:, here])).astype(np.int64)


def _observe(world: World, watcher: Watcher, at: int, now: int) -> Observation:
    return Observation(
        cluster="sim",
        group=world.scenario.name,
        now=now,
        roster=watcher.roster,
        commits=watcher.table.rows(at),
        ends={
            t.name: watcher.ends[t.name].part(at * t.partitions, (at + 1) * t.partitions)
            for t in world.topics
        },
        topics={t.name: TopicInfo(t.partitions, world.ids[t.name], t.compacted) for t in world.topics},
        as_of=watcher.as_of,
    )


def _tick(world: World, watcher: Watcher, sieve: bool) -> None:
    now = _ms(world.time + LATENCY)
    again = (
        watcher.judged != world.generation
        or now // RECALL != (now - round(world.scenario.tick * 1000)) // RECALL
    )
    watcher.judged = world.generation
    for history in watcher.ends.values():
        history.rates()
    loud = watcher.close | watcher.table.loud(watcher.ends, watcher.as_of, watcher.policy)
    for at in range(world.seeds) if again or not sieve else np.flatnonzero(loud).tolist():
        _judge(world, watcher, at, now)


def _judge(world: World, watcher: Watcher, at: int, now: int) -> None:
    mind, policy = watcher.minds[at], watcher.policy
    seen = _observe(world, watcher, at, now)
    judgement = judge(seen, mind.state, policy)
    watcher.looks += 1
    if judgement.candidate is not None:
        mind.state = judgement.state
        fresh = _ask(world, watcher, at, now)
        judgement = confirm(judgement.candidate, fresh, judgement.state, policy)
        if judgement.dropped:
            mind.dropped[judgement.dropped] = mind.dropped.get(judgement.dropped, 0) + 1
    state = mind.state = judgement.state
    idle = watcher.roster is not None and any(not m.assigned for m in watcher.roster.members)
    watcher.close[at] = idle or bool(state.incident or state.streak) or minded(state, now, policy)
    mind.messages.extend(judgement.messages)
    for message in judgement.messages:
        if message.status is Status.OPEN and world.scenario.follow:
            _follow(world, watcher, message)


def _ask(world: World, watcher: Watcher, at: int, now: int) -> Observation:
    """The coordinator and the logs, asked just now."""
    seen = _observe(world, watcher, at, now)
    end, fresh = w.shown_end(world)[at], {}
    for topic in world.topics:
        here = slice(*world.span(topic.name))
        fresh[topic.name] = EndHistory.from_row(seen.ends[topic.name].to_row())
        fresh[topic.name].add(
            now,
            now + 20,
            world.start[at, here].astype(np.int64),
            end[here],
            _stable(world, here)[at],
            world.ids[topic.name],
        )
    return replace(seen, ends=fresh)


def _follow(world: World, watcher: Watcher, message: Recommendation) -> None:
    if isinstance(world.scenario.follow, str):
        _switch(world, watcher, world.scenario.follow)
    elif message.moves:
        names = {f"{world.scenario.name}-{n}/10.0.0.1": at for at, n in enumerate(world.names)}
        owner = world.owner.copy()
        for move in message.moves:
            owner[world.rows(move.topic)[move.partition]] = names[move.to]
        w.assign(world)
        world.owner = owner
        watcher.roster = _roster(world, None)


def _switch(world: World, watcher: Watcher, strategy: str) -> None:
    """The group reassigns itself by one of ``kagent.strategies``, with the lags of this moment."""
    lag = np.floor(np.maximum(world.end - world.position, 0)).astype(np.int64)[0]
    topics = {t.name: t.partitions for t in world.topics}
    names = world.names
    scenario = Assignment.of(
        [Member(name, tuple(topics)) for name in names],
        topics,
        lags={t: lag[world.rows(t)] for t in topics},
        owned={
            name: [
                (world.topics[world.topic[row]].name, int(world.partition[row]))
                for row in np.flatnonzero(world.owner == at).tolist()
            ]
            for at, name in enumerate(names)
        },
    )
    owner = world.owner.copy()
    for name, held in assign(strategy, scenario).to_dict().items():
        for topic, partition in held:
            owner[world.rows(topic)[partition]] = names.index(name)
    w.assign(world)
    world.owner = owner
    watcher.roster = _roster(world, None)


def _drained(world: World, watcher: Watcher) -> None:
    """Since when nobody has been behind, seconds after the onset."""
    if world.scenario.healthy or world.time < world.scenario.onset:
        return
    behind = ((world.end - world.position) / np.maximum(world.usual, 1.0)).max(axis=1)
    for mind, late in zip(watcher.minds, (behind > CAUGHT_UP).tolist(), strict=True):
        if late:
            mind.drained = None
        elif mind.drained is None:
            mind.drained = world.time - world.scenario.onset


def _report(scenario: Scenario, seed: int, mind: Mind) -> Report:
    openings = _openings(mind.messages)
    first = next((o for o in openings if o.at >= scenario.onset), None)
    flaps = sum(
        1
        for before, after in pairwise(openings)
        if before.resolved is not None and after.at - before.resolved < 3600
    )
    return Report(
        name=scenario.name,
        seed=seed,
        hours=scenario.hours,
        openings=openings,
        detected=first.at - scenario.onset if first else None,
        right=None if scenario.healthy else bool(first and first.verdicts[0] in scenario.expect),
        flaps=flaps,
        drained=mind.drained,
        dropped=dict(mind.dropped),
        messages=tuple(mind.messages),
    )


def _openings(messages: list[Recommendation]) -> tuple[Opening, ...]:
    by_id: dict[str, list[Recommendation]] = {}
    for message in messages:
        by_id.setdefault(message.id, []).append(message)
    return tuple(
        Opening(
            at=(sent[0].opened_at - EPOCH) / 1000,
            verdicts=tuple(str(v) for v in dict.fromkeys(m.verdict for m in sent)),
            resolved=(sent[-1].as_of - EPOCH) / 1000 if sent[-1].status is Status.RESOLVED else None,
            resolution=str(sent[-1].resolution) if sent[-1].resolution else None,
            actions=tuple(str(a.type) for a in sent[0].actions if a.feasible != "no"),
        )
        for sent in by_id.values()
    )
