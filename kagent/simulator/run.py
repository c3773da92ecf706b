"""Drive the judgement over a scenario as a worker would: events per trigger, samples, ticks, confirmations.

Many seeds of a scenario run side by side. Whether a group is caught up is read from the columns of all of them at once, by the very
rule with which the judgement's own cheap look ends; every other group, at every tick, goes through the judgement itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from kagent.contract.recommendation import Recommendation, Status
from kagent.group_key import group_key
from kagent.groups import GroupView, MemberView
from kagent.lag.commits import GONE
from kagent.lag.log_ends import PAUSE, EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation, TopicInfo
from kagent.policy import Policy, make_policy
from kagent.simulator import following, judging, observing, rebalancing, truth
from kagent.simulator import world as w
from kagent.simulator.commit_table import EPOCH
from kagent.simulator.judging import RecordedSession
from kagent.simulator.kagent_state import KagentState
from kagent.simulator.observing import TOGETHER, ms
from kagent.simulator.passing_time import begin
from kagent.simulator.passing_time import step as pass_time
from kagent.simulator.scenario_events import happen
from kagent.simulator.scenario_file import SimulatorScenario
from kagent.simulator.scenario_report import Report, report_of
from kagent.simulator.world import World

CLUSTER = "sim"
LATENCY = 0.4
"""Seconds from a trigger to the event in the worker's hands."""
RECALL = 1_800_000
"""Every group is judged at least so often, in ms."""
LIBRARIES = {
    "classic_java": "java",
    "classic_librdkafka": "librdkafka",
    "classic_python": "python",
}


def run(scenario: SimulatorScenario, seed: int = 0, policy: Policy | None = None) -> Report:
    """Let a scenario happen under kagent's eyes."""
    return run_many(scenario, (seed,), policy)[0]


def run_many(
    scenario: SimulatorScenario, seeds: Sequence[int], policy: Policy | None = None, sieve: bool = True
) -> list[Report]:
    """One report per seed, the same as each would give alone. ``sieve``: pass over groups that are caught up."""
    made = policy or make_policy(scenario.policy)
    some = [tuple(group) for _, group in groupby(seeds, lambda seed: seed // TOGETHER)]
    return [report for group in some for report in _run(scenario, group, made, sieve)]


def _run(scenario: SimulatorScenario, seeds: tuple[int, ...], policy: Policy, sieve: bool) -> list[Report]:
    world = begin(scenario, seeds)
    watcher = _watcher(world, seeds, policy)
    queue: list[tuple[float, int, Mapping[str, Any]]] = []
    # Breaks ties in the heap: events at one time happen in the order of the file, and mappings cannot be compared.
    serial = 0
    for event in scenario.events:
        heapq.heappush(queue, (float(event.get("at", 0)), serial, event))
        serial += 1
    # Pauses, bursts and commits are shorter than a scenario's own step; a harsh world limits it.
    next_tick, step = scenario.tick, min(scenario.step, scenario.world.max_step_s)
    while world.time < scenario.hours * 3600:
        while queue and queue[0][0] <= world.time:
            for more in happen(world, heapq.heappop(queue)[2]):
                heapq.heappush(queue, (float(more["at"]), serial, more))
                serial += 1
        pass_time(world, step)
        observing.look(world, watcher.observed)
        _act(world, watcher)
        if world.time >= next_tick:
            # Without members, the cheap look learns who commits together, so it is not left out.
            _tick(world, watcher, sieve and scenario.kind != "simple")
            next_tick += scenario.tick
            watcher.truth.look(world)
            _scale(world, watcher)
    if scenario.follow == following.FIRST or scenario.world.remember_all:
        watcher.truth.worst = truth.lateness(world)
    return [report_of(scenario, seed, watcher, at) for at, seed in enumerate(seeds)]


def _watcher(world: World, seeds: tuple[int, ...], policy: Policy) -> KagentState:
    """kagent when the scenario begins: it has known the group for a week, or sees it for the first time."""
    count, name = world.seeds, world.scenario.name
    watcher = KagentState(
        policy=policy,
        observed=observing.begin(world, seeds),
        sessions=[RecordedSession.of(policy)] * count
        if world.scenario.together
        else [RecordedSession.of(policy) for _ in range(count)],
        groups=tuple(f"{name}-{seed}" for seed in seeds) if world.scenario.together else (name,) * count,
        close=np.ones(count, bool),
        rosters=[None] * count,
        judged=np.full(count, -1),
        truth=truth.Truth.begin(count),
    )
    if world.scenario.known_before:
        watcher.observed.table.known_before(round(world.scenario.commit * 1000))
        for recorded, group in zip(watcher.sessions, watcher.groups, strict=True):
            recorded.session.assume_known(CLUSTER, group, EPOCH - 7 * 86_400_000, EPOCH)
    return watcher


def _roster(world: World, watcher: KagentState, at: int) -> Roster:
    known = watcher.rosters[at]
    # Within a generation the assignment does not change.
    if known is not None and known.generation == int(world.generation[at]):
        return known
    key = (
        watcher.groups[at],
        int(world.generation[at]),
        float(world.changed_at[at]),
        world.owner[at].tobytes(),
        tuple(world.member_ids[at][slot] for slot in world.order[at]),
    )
    # Seeds of one scenario mostly have the same members and assignment: a roster is made once for all of them.
    made = watcher.known.get(key)
    if made is None:
        made = watcher.known[key] = Roster.of(_view(world, at, watcher.groups[at]))
    watcher.rosters[at] = made
    return made


def _view(world: World, at: int, group: str) -> GroupView:
    simple = world.scenario.kind == "simple"
    members = () if simple else tuple(_described(world, at, slot) for slot in world.order[at])
    return GroupView(
        group=group,
        type="simple" if simple else "consumer" if world.scenario.kind == "consumer" else "classic",
        state="Stable" if world.order[at] else "Empty",
        protocol_type=None if simple else "consumer",
        protocol=_protocol(world, at),
        generation=int(world.generation[at]),
        target_epoch=None,
        members=members,
        last_change=ms(float(world.changed_at[at])),
    )


def _protocol(world: World, at: int) -> str:
    """What the coordinator calls the assignor; Streams has its own."""
    if world.scenario.kind == "streams":
        return "stream"
    return world.switched.get(at, world.scenario.assignor)


def _described(world: World, at: int, slot: int) -> MemberView:
    name, mine = world.slots[slot], world.owner[at] == slot
    held = {t.name: world.partition[mine & (world.topic == c)] for c, t in enumerate(world.topics)}
    return MemberView(
        member_id=world.member_ids[at][slot],
        client_id=f"{world.scenario.name}-{name}",
        host="/10.0.0.1",
        rack=None,
        subscriptions=rebalancing.subscribed(world, name),
        assigned={topic: tuple(partitions.tolist()) for topic, partitions in held.items() if len(partitions)},
        instance_id=name if world.scenario.clients.static else None,
        library=LIBRARIES.get(world.scenario.kind),
    )


def _observe(world: World, watcher: KagentState, at: int, now: int) -> Observation:
    made = world.scenario.world
    # Regular samples leave no doubt about how old one may be; irregular ones need three intervals of patience.
    harsh = bool(made.samples_every_s[1])
    return Observation(
        cluster=CLUSTER,
        group=watcher.groups[at],
        now=now,
        roster=_roster(world, watcher, at),
        commits=watcher.observed.table.rows(at),
        ends={
            t.name: watcher.observed.ends[t.name].part(at * t.partitions, (at + 1) * t.partitions)
            for t in world.topics
        },
        topics={
            t.name: TopicInfo(t.partitions, world.ids[t.name], t.compacted, (0,) * t.partitions)
            for t in world.topics
        },
        as_of=ms(watcher.observed.as_of),
        blind=watcher.observed.blind(world.time + LATENCY, made.fresh_s),
        patience=max(PAUSE, round(3000 * world.scenario.sample)) if harsh else None,
    )


def _tick(world: World, watcher: KagentState, sieve: bool) -> None:
    now = ms(world.time + LATENCY)
    # Now and then everybody is judged, so that what the quick look overlooks shows in the figures.
    again = now // RECALL != (now - round(world.scenario.tick * 1000)) // RECALL
    changed = watcher.judged != world.generation
    watcher.judged = world.generation.copy()
    observed = watcher.observed
    for history in observed.ends.values():
        history.rates()
    loud = watcher.close | changed
    if sieve and not again:
        loud |= judging.loud(observed.table, observed.ends, ms(observed.as_of), watcher.policy)
    looked = range(world.seeds) if again or not sieve else np.flatnonzero(loud).tolist()
    if world.scenario.together:
        _judge(world, watcher, watcher.sessions[0], list(looked), now)
    else:
        for at in looked:
            _judge(world, watcher, watcher.sessions[at], [at], now)


def _judge(
    world: World, watcher: KagentState, recorded: RecordedSession, looked: list[int], now: int
) -> None:
    policy = watcher.policy
    seen = {watcher.groups[at]: _observe(world, watcher, at, now) for at in looked}
    places = dict(zip(seen, looked, strict=True))
    messages = recorded.evaluate(
        tuple(seen.values()),
        lambda one: _ask(world, one, places[one.group], now),
        world.seeds if world.scenario.together else 1,
    )
    watcher.looks += len(looked)
    for group, at in places.items():
        watcher.close[at] = recorded.wants_a_look(seen[group], policy)
    for message in messages:
        if message.status is Status.OPEN and message.group in places:
            _told(world, watcher, places[message.group], message)


def _told(world: World, watcher: KagentState, at: int, message: Recommendation) -> None:
    if world.scenario.follow == following.FIRST:
        if watcher.truth.acted[at] is None and world.time >= world.scenario.onset:
            watcher.acts.setdefault(at, world.time + following.ACT_AFTER_S)
    elif world.scenario.follow:
        following.follow(world, at, message)


def _ask(world: World, seen: Observation, at: int, now: int) -> Observation:
    """The coordinator and the logs, asked just now."""
    end, fresh = w.shown_end(world)[at], {}
    for topic in world.topics:
        here = slice(*world.span(topic.name))
        fresh[topic.name] = EndHistory.from_row(seen.ends[topic.name].to_row())
        fresh[topic.name].add(
            now,
            # The answer comes 20 ms after the question.
            now + 20,
            world.start[at, here].astype(np.int64),
            end[here],
            observing.stable(world, here)[at],
            world.ids[topic.name],
        )
    if not world.scenario.world.newer_commits_at_confirmation:
        return replace(seen, ends=fresh)
    return replace(seen, ends=fresh, commits=_asked_commits(world, seen, at, now))


def _asked_commits(world: World, seen: Observation, at: int, now: int) -> dict[str, Any]:
    """Commits that the tables do not have yet are in the coordinator's answer, without their times."""
    out = {}
    for name, row in seen.commits.items():
        asked = world.committed[at, slice(*world.span(name))].astype(np.int64).tolist()
        newer = [c != GONE and t > c for t, c in zip(asked, row.committed, strict=True)]
        out[name] = replace(
            row,
            committed=[t if n else c for t, c, n in zip(asked, row.committed, newer, strict=True)],
            time=[now if n else t for t, n in zip(row.time, newer, strict=True)],
            moved=[now if n else t for t, n in zip(row.moved, newer, strict=True)],
        )
    return out


def _act(world: World, watcher: KagentState) -> None:
    """Groups that carry out the first action do so a while after the first message, by the latest one."""
    if world.scenario.follow == following.USEFUL:
        return
    for at in [at for at, when in watcher.acts.items() if when <= world.time]:
        del watcher.acts[at]
        messages = [m for m in watcher.sessions[at].messages if m.group == watcher.groups[at]]
        if messages and messages[-1].status in (Status.OPEN, Status.UPDATED):
            following.carry_out(world, at, messages[-1])
            watcher.truth.acted[at] = world.time
            watcher.truth.predicted[at] = following.predicted_s(messages[-1])


def _scale(world: World, watcher: KagentState) -> None:
    """An autoscaler reads the number of useful members at every tick; new members are there a minute later."""
    if world.scenario.follow != following.USEFUL:
        return
    for at in range(world.seeds):
        state = watcher.sessions[at].session.states.get(group_key(CLUSTER, watcher.groups[at]))
        if state is None or state.useful is None:
            continue
        wanted, have = state.useful.members, len(world.order[at])
        if wanted == have:
            watcher.acts.pop(at, None)
        elif watcher.acts.setdefault(at, world.time + following.ACT_AFTER_S * (wanted > have)) <= world.time:
            del watcher.acts[at]
            rebalancing.resize(world, at, wanted)
            watcher.sizes[at].append((world.time, wanted))
