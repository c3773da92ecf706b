"""Drive the judgement over a scenario as a worker would: events per trigger, samples, ticks, confirmations."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.advice.commits import TopicCommits, apply
from kagent.advice.ends import EndHistory
from kagent.advice.judge import Judgement, confirm, judge
from kagent.advice.observation import Observation, TopicInfo
from kagent.advice.policy import Policy, make_policy
from kagent.advice.recommendation import Recommendation, Status
from kagent.advice.roster import Roster
from kagent.advice.simulator import world as w
from kagent.advice.simulator.events import happen
from kagent.advice.simulator.scenario import Scenario
from kagent.advice.simulator.world import World
from kagent.advice.state import JudgeState
from kagent.events import TopicOffsets
from kagent.strategies import Member, assign
from kagent.strategies import Scenario as Assignment

EPOCH = 1_700_000_000_000
"""The simulated clock starts here, in ms."""
LATENCY = 0.4
"""Seconds from a trigger to the event in the worker's hands."""


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
class Watcher:
    """kagent's side: what it has been told and remembers."""

    policy: Policy
    commits: dict[str, TopicCommits] = field(default_factory=dict)
    ends: dict[str, EndHistory] = field(default_factory=dict)
    roster: Roster | None = None
    state: JudgeState | None = None
    messages: list[Recommendation] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    as_of: int = 0


def run(scenario: Scenario, seed: int = 0, policy: Policy | None = None) -> Report:
    """Let a scenario happen under kagent's eyes."""
    world = w.begin(scenario, seed)
    watcher = Watcher(policy or make_policy(scenario.policy))
    _known_before(world, watcher)
    queue: list[tuple[float, int, Mapping[str, Any]]] = []
    serial = 0
    for event in scenario.events:
        heapq.heappush(queue, (float(event.get("at", 0)), serial, event))
        serial += 1
    next_sample, next_tick, next_trigger = 0.0, scenario.tick, scenario.trigger
    drained: float | None = None
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
            _tick(world, watcher)
            next_tick += scenario.tick
            drained = _drained(world, drained)
    return _report(scenario, seed, watcher, drained)


def _known_before(world: World, watcher: Watcher) -> None:
    _deliver(world, watcher, everything=True)
    _sample(world, watcher)
    if world.scenario.known_before:
        first = EPOCH - 7 * 86_400_000
        watcher.state = JudgeState(first_seen=first, members_at=EPOCH)
        for topic, row in watcher.commits.items():
            gap = int(world.scenario.commit * 1000)
            raw = {**row.to_row(), "commits": 1000, "gaps": [gap] * 5}
            watcher.commits[topic] = TopicCommits.from_row(raw)


def _ms(time: float) -> int:
    return EPOCH + round(time * 1000)


def _deliver(world: World, watcher: Watcher, everything: bool = False) -> None:
    """The pipeline's trigger: the latest commit of each partition, as one event a topic."""
    if everything:
        world.pending.append((-1.0, np.arange(len(world.topic)), world.committed.copy()))
    if world.pending:
        latest: dict[int, tuple[float, float, int]] = {}
        for when, rows, offsets in world.pending:
            for row, offset in zip(rows.tolist(), offsets.tolist(), strict=True):
                world.source_offset += 1
                latest[row] = (when, offset, world.source_offset)
        world.pending.clear()
        for code, topic in enumerate(world.topics):
            mine = sorted(row for row in latest if world.topic[row] == code)
            if mine:
                update = TopicOffsets(
                    topic.name,
                    world.ids[topic.name],
                    [int(world.partition[r]) for r in mine],
                    [int(latest[r][1]) for r in mine],
                    [_ms(latest[r][0]) for r in mine],
                    [latest[r][2] for r in mine],
                )
                watcher.commits[topic.name] = apply(watcher.commits.get(topic.name), update)
    watcher.as_of = _ms(world.time)
    watcher.roster = _roster(world, watcher.roster)


def _roster(world: World, known: Roster | None) -> Roster:
    if known is not None and known.generation == world.generation:
        return known
    kind = world.scenario.kind
    members = tuple(
        MemberView(
            member_id=member.member_id,
            client_id=f"{world.scenario.name}-{member.name}",
            host="/10.0.0.1",
            subscriptions=tuple(t.name for t in world.topics),
            assigned={
                t.name: tuple(world.partition[(world.owner == at) & (world.topic == code)].tolist())
                for code, t in enumerate(world.topics)
                if ((world.owner == at) & (world.topic == code)).any()
            },
            library={
                "classic_java": "java",
                "classic_librdkafka": "librdkafka",
                "classic_python": "python",
            }.get(kind),
        )
        for at, member in enumerate(world.members.values())
    )
    simple = kind == "simple"
    return Roster.of(
        View(
            group=world.scenario.name,
            type="simple" if simple else "consumer" if kind == "consumer" else "classic",
            state="Stable" if members else "Empty",
            protocol_type=None if simple else "consumer",
            protocol=world.scenario.assignor,
            generation=world.generation,
            members=() if simple else members,
            last_change=_ms(world.changed_at),
        )
    )


def _sample(world: World, watcher: Watcher, stable: bool = False) -> None:
    end = w.shown_end(world)
    for code, topic in enumerate(world.topics):
        rows = np.flatnonzero(world.topic == code)
        if topic.name not in watcher.ends:
            watcher.ends[topic.name] = EndHistory(topic.partitions)
        watcher.ends[topic.name].add(
            _ms(world.time),
            _ms(world.time) + 20,
            world.start[rows].astype(np.int64),
            end[rows],
            _stable(world, rows) if stable or (world.lso[rows] < end[rows]).any() else None,
            world.ids[topic.name],
        )


def _stable(world: World, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.minimum(world.lso[rows], np.floor(world.end[rows])).astype(np.int64)


def _observe(world: World, watcher: Watcher, now: int) -> Observation:
    return Observation(
        cluster="sim",
        group=world.scenario.name,
        now=now,
        roster=watcher.roster,
        commits=watcher.commits,
        ends=watcher.ends,
        topics={t.name: TopicInfo(t.partitions, world.ids[t.name], t.compacted) for t in world.topics},
        as_of=watcher.as_of,
    )


def _tick(world: World, watcher: Watcher) -> None:
    now = _ms(world.time + LATENCY)
    judgement = judge(_observe(world, watcher, now), watcher.state, watcher.policy)
    if judgement.candidate is not None:
        watcher.state = judgement.state
        judgement = confirm(judgement.candidate, _ask(world, watcher, now), judgement.state, watcher.policy)
        if judgement.dropped:
            watcher.dropped[judgement.dropped] = watcher.dropped.get(judgement.dropped, 0) + 1
    _take(world, watcher, judgement)


def _ask(world: World, watcher: Watcher, now: int) -> Observation:
    """The coordinator and the logs, asked just now."""
    _deliver(world, watcher)
    fresh = {name: _copy(history) for name, history in watcher.ends.items()}
    asked = Watcher(watcher.policy, watcher.commits, fresh, watcher.roster)
    asked.as_of = watcher.as_of
    end = w.shown_end(world)
    for code, topic in enumerate(world.topics):
        rows = np.flatnonzero(world.topic == code)
        fresh[topic.name].add(
            now,
            now + 20,
            world.start[rows].astype(np.int64),
            end[rows],
            _stable(world, rows),
            world.ids[topic.name],
        )
    return _observe(world, asked, now)


def _copy(history: EndHistory) -> EndHistory:
    return EndHistory.from_row(history.to_row())


def _take(world: World, watcher: Watcher, judgement: Judgement) -> None:
    watcher.state = judgement.state
    watcher.messages.extend(judgement.messages)
    for message in judgement.messages:
        if message.status is not Status.OPEN or not world.scenario.follow:
            continue
        if isinstance(world.scenario.follow, str):
            _switch(world, watcher, world.scenario.follow)
        elif message.moves:
            names = {f"{world.scenario.name}-{n}/10.0.0.1": at for at, n in enumerate(world.names)}
            owner = world.owner.copy()
            for move in message.moves:
                rows = world.rows(move.topic)
                owner[rows[move.partition]] = names[move.to]
            w.assign(world)
            world.owner = owner
            watcher.roster = _roster(world, None)


def _switch(world: World, watcher: Watcher, strategy: str) -> None:
    """The group reassigns itself by one of ``kagent.strategies``, with the lags of this moment."""
    lag = np.floor(np.maximum(world.end - world.position, 0)).astype(np.int64)
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


def _drained(world: World, known: float | None) -> float | None:
    if world.time < world.scenario.onset:
        return None
    rate = np.maximum(world.wave[world.topic] * world.weight, 1.0)
    behind = float(((world.end - world.position) / rate).max())
    if behind > 30.0:
        return None
    return known if known is not None else world.time - world.scenario.onset


def _report(scenario: Scenario, seed: int, watcher: Watcher, drained: float | None) -> Report:
    openings = _openings(watcher.messages)
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
        drained=drained,
        dropped=dict(watcher.dropped),
        messages=tuple(watcher.messages),
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
