"""What really happens: logs grow, members read and commit, groups rebalance. Columns over all partitions of the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.advice.simulator.scenario import Scenario, Topic
from kagent.errors import InputError

Floats = npt.NDArray[np.float64]
NOBODY = -1
WAKE = 0.2
"""Seconds between a record's arrival and its reading, by a member that is caught up."""


@dataclass(slots=True)
class Member:
    """A member: ``speed`` 1 is usual; ``hung``: in the group but does nothing; ``resting``: on purpose, till then."""

    name: str
    member_id: str
    speed: float = 1.0
    phase: float = 0.0
    next_commit: float = 0.0
    hung: bool = False
    incarnation: int = 0


@dataclass(slots=True)
class World:
    """The truth at ``time`` (s)."""

    scenario: Scenario
    random: np.random.Generator
    time: float = 0.0
    generation: int = 1
    changed_at: float = 0.0
    stopped_until: float = 0.0
    members: dict[str, Member] = field(default_factory=dict)
    resting: bool = False
    source_offset: int = 0
    topic: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    partition: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    start: Floats = field(default_factory=lambda: np.zeros(0))
    end: Floats = field(default_factory=lambda: np.zeros(0))
    position: Floats = field(default_factory=lambda: np.zeros(0))
    before: Floats = field(default_factory=lambda: np.zeros(0))
    committed: Floats = field(default_factory=lambda: np.zeros(0))
    commit_time: Floats = field(default_factory=lambda: np.zeros(0))
    owner: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    weight: Floats = field(default_factory=lambda: np.zeros(0))
    cost: Floats = field(default_factory=lambda: np.zeros(0))
    held: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    lso: Floats = field(default_factory=lambda: np.zeros(0))
    factor: Floats = field(default_factory=lambda: np.zeros(0))
    ids: dict[str, str] = field(default_factory=dict)
    pending: list[tuple[float, npt.NDArray[np.int64], Floats]] = field(default_factory=list)
    wave: Floats = field(default_factory=lambda: np.zeros(0))
    noise_until: float = -1.0
    noise: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def topics(self) -> tuple[Topic, ...]:
        return self.scenario.topics

    @property
    def names(self) -> list[str]:
        """Members in the order of their codes."""
        return list(self.members)

    def rows(self, topic: str) -> npt.NDArray[np.int64]:
        """Places of a topic's partitions."""
        names = [t.name for t in self.topics]
        if topic not in names:
            raise InputError(f"{self.scenario.name}: there is no topic {topic!r}")
        return np.flatnonzero(self.topic == names.index(topic))


def begin(scenario: Scenario, seed: int) -> World:
    """The world at its start: everybody caught up but for the scenario's backlog."""
    random = np.random.default_rng(seed)
    sizes = [t.partitions for t in scenario.topics]
    topic = np.repeat(np.arange(len(sizes)), sizes)
    partition = np.concatenate([np.arange(n) for n in sizes])
    weight = np.concatenate([_spread(t, random) for t in scenario.topics])
    base = np.floor(random.uniform(1e5, 1e6, len(topic)))
    backlog = np.array([t.backlog + t.delay * t.inflow for t in scenario.topics])[topic] * weight
    world = World(
        scenario=scenario,
        random=random,
        topic=topic,
        partition=partition,
        start=np.maximum(base - 5e4, 0),
        end=base + np.floor(backlog),
        position=base.copy(),
        before=base.copy(),
        committed=base.copy(),
        commit_time=np.full(len(topic), -random.uniform(0, scenario.commit)),
        owner=np.full(len(topic), NOBODY),
        weight=weight,
        cost=np.array([t.cost for t in scenario.topics])[topic],
        held=np.zeros(len(topic), bool),
        lso=np.full(len(topic), np.inf),
        factor=np.ones(len(scenario.topics)),
        ids={t.name: f"id-{t.name}-0" for t in scenario.topics},
        noise=np.ones(len(topic)),
    )
    for number in range(scenario.members):
        _join(world, f"m{number}")
    assign(world)
    world.changed_at = -86_400.0
    return world


def _spread(topic: Topic, random: np.random.Generator) -> Floats:
    n = topic.partitions
    if isinstance(topic.spread, list):
        weights = np.resize(np.array(topic.spread, float), n)
    elif topic.spread == "zipf":
        weights = 1.0 / np.arange(1, n + 1)
        random.shuffle(weights)
    elif ":" in topic.spread:
        low, high = (float(x) for x in topic.spread.split(":"))
        weights = np.linspace(low, high, n)
    elif topic.spread == "even":
        weights = np.ones(n)
    else:
        raise InputError(f"topics.{topic.name}.spread: a list, even, zipf or low:high, not {topic.spread!r}")
    return np.asarray(weights / weights.sum())


def _join(world: World, name: str) -> None:
    scenario = world.scenario
    phase = float(world.random.uniform(0, scenario.commit))
    known = world.members.get(name)
    incarnation = known.incarnation + 1 if known else int(world.generation)
    world.members[name] = Member(
        name,
        f"{name}-{world.random.integers(1 << 62):016x}",
        float(scenario.speeds.get(name, 1.0)),
        phase,
        world.time + phase,
        incarnation=incarnation,
    )


def assign(world: World) -> None:
    """A rebalance: everybody stops for a while, members share the partitions by the scenario's rule."""
    world.generation += 1
    world.changed_at = world.time
    world.stopped_until = world.time + world.scenario.pause
    names = world.names
    world.owner[:] = NOBODY
    if not names:
        return
    fixed = world.scenario.assignment
    if fixed and set(fixed) == set(names):
        for at, name in enumerate(names):
            for topic, partitions in fixed[name].items():
                world.owner[world.rows(topic)[np.asarray(partitions)]] = at
        return
    if world.scenario.assignor == "range":
        for code, topic in enumerate(world.topics):
            quota, extra = divmod(topic.partitions, len(names))
            counts = [quota + (at < extra) for at in range(len(names))]
            world.owner[world.topic == code] = np.repeat(np.arange(len(names)), counts)
    else:
        world.owner[:] = np.arange(len(world.owner)) % len(names)


def leave(world: World, name: str) -> None:
    """A member leaves; what it had not committed is read again."""
    at = world.names.index(name)
    mine = world.owner == at
    world.position[mine] = world.committed[mine]
    del world.members[name]
    assign(world)


def join(world: World, name: str) -> None:
    """A member joins."""
    _join(world, name)
    assign(world)


def step(world: World, dt: float) -> None:
    """Let ``dt`` seconds pass: records arrive, members read what they can, and commit when it is time."""
    world.before = world.position.copy()
    _arrive(world, dt)
    if not world.resting and world.members:
        _read(world, dt)
    world.time += dt
    _commit(world, dt)


def _arrive(world: World, dt: float) -> None:
    if world.time >= world.noise_until:
        sigma = np.array([t.noise for t in world.topics])[world.topic]
        world.noise = np.maximum(0.0, 1 + sigma * world.random.standard_normal(len(world.topic)))
        daily = np.array([t.daily for t in world.topics])
        inflow = np.array([t.inflow for t in world.topics])
        world.wave = inflow * (1 + daily * np.sin(2 * np.pi * world.time / 86_400)) * world.factor
        world.noise_until = world.time + 60
    # A log grows by whole records; what is left over arrives with the next step.
    grown = world.wave[world.topic] * world.weight * world.noise * dt
    world.end = world.end + grown + _markers(world, dt)


def _markers(world: World, dt: float) -> Floats:
    """Transaction markers: offsets that no reader ever sees as records."""
    every = np.array([t.markers for t in world.topics])[world.topic]
    with np.errstate(divide="ignore", invalid="ignore"):
        due = np.floor((world.time + dt) / every) > np.floor(world.time / every)
    return np.where((every > 0) & due, 1.0, 0.0)


def _read(world: World, dt: float) -> None:
    stopped = min(max(world.stopped_until - world.time, 0.0), dt)
    time = dt - stopped
    if time <= 0:
        return
    owned = world.owner >= 0
    code = np.where(owned, world.owner, 0)
    members = list(world.members.values())
    speed = np.array([0.0 if m.hung else m.speed for m in members])
    readable = np.minimum(np.floor(world.end), world.lso)
    rate = world.wave[world.topic] * world.weight
    delay = np.array([max(t.delay, min(WAKE, dt)) for t in world.topics])
    readable = np.minimum(readable, np.floor(world.end - rate * delay[world.topic]))
    backlog = np.where(owned & ~world.held, np.maximum(readable - world.position, 0.0), 0.0)
    work = backlog * world.cost
    budget = time * speed
    total = np.bincount(code, work, len(members))
    done = np.where(total[code] <= budget[code], work, 0.0)
    busy = total > budget
    if busy.any():
        done = np.where(busy[code], _levelled(work, code, budget, len(members)), done)
    read = np.where(
        world.cost > 0, done / np.maximum(world.cost, 1e-12), np.where(speed[code] > 0, backlog, 0.0)
    )
    world.position = world.position + np.minimum(read, backlog)


def _levelled(work: Floats, code: npt.NDArray[np.int64], budget: Floats, members: int) -> Floats:
    """Each member's time over its partitions in equal parts; what one does not need goes to the others."""
    done = np.zeros(len(work))
    left = budget.astype(float).copy()
    for _ in range(8):
        open_ = work - done > 1e-12
        count = np.bincount(code[open_], minlength=members)
        share = np.where(count > 0, left / np.maximum(count, 1), 0.0)
        more = np.where(open_, np.minimum(work - done, share[code]), 0.0)
        done += more
        left -= np.bincount(code, more, members)
        if (left <= 1e-9).all() or not more.any():
            break
    return done


def _commit(world: World, dt: float) -> None:
    for at, member in enumerate(world.members.values()):
        if member.hung or world.resting or world.time < world.stopped_until:
            continue
        if member.next_commit > world.time:
            continue
        when = max(member.next_commit, world.time - dt)
        every = world.scenario.commit
        member.next_commit += every * max(1, np.ceil((world.time - member.next_commit) / every + 1e-9))
        if member.next_commit <= world.time:
            member.next_commit = world.time + every
        share = (when - (world.time - dt)) / dt if dt else 1.0
        mine = np.flatnonzero(world.owner == at)
        place = np.floor(world.before[mine] + share * (world.position[mine] - world.before[mine]))
        if world.scenario.kind == "classic_librdkafka":
            moved = place != world.committed[mine]
            mine, place = mine[moved], place[moved]
        write(world, when, mine, place)


def write(world: World, when: float, rows: npt.NDArray[np.int64], offsets: Floats) -> None:
    """A commit reaches the coordinator."""
    if len(rows):
        world.committed[rows] = offsets
        world.commit_time[rows] = when
        world.pending.append((when, rows, offsets))


def shown_end(world: World) -> npt.NDArray[np.int64]:
    """Log ends as a broker would tell them."""
    return np.asarray(np.floor(world.end), np.int64)


Event = Mapping[str, Any]
