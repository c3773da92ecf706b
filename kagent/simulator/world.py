"""What really happens: logs grow, members read and commit, groups rebalance.

Groups of one scenario and several seeds go through it side by side: columns have one row a seed and one entry a partition.
What the scenario fixes (members, who holds what, what is paused) is the same for all of them; records, times of commits
and positions are each seed's own, and do not depend on which seeds run beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.simulator.scenario import Scenario, Topic

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NOBODY = -1
WAKE = 0.2
"""Seconds between a record's arrival and its reading, by a member that is caught up."""


@dataclass(slots=True)
class Member:
    """A member: ``speed`` 1 is usual; ``hung``: in the group but does nothing."""

    name: str
    member_id: str
    speed: float = 1.0
    hung: bool = False


@dataclass(slots=True)
class World:
    """The truth at ``time`` (s). Columns of floats are (seeds, partitions), others (partitions)."""

    scenario: Scenario
    randoms: tuple[np.random.Generator, ...]
    time: float = 0.0
    generation: int = 1
    changed_at: float = 0.0
    stopped_until: float = 0.0
    members: dict[str, Member] = field(default_factory=dict)
    joined: int = 0
    resting: bool = False
    topic: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    partition: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    owner: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cost: Floats = field(default_factory=lambda: np.zeros(0))
    held: Flags = field(default_factory=lambda: np.zeros(0, bool))
    start: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    end: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    position: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    before: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    committed: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    commit_time: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    weight: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    lso: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    pending: Flags = field(default_factory=lambda: np.zeros((0, 0), bool))
    """Where a commit was made that the pipeline has not taken yet."""
    due: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """When each member commits next: (seeds, members)."""
    factor: Floats = field(default_factory=lambda: np.zeros(0))
    ids: dict[str, str] = field(default_factory=dict)
    wave: Floats = field(default_factory=lambda: np.zeros(0))
    usual: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Inflow without its noise, records/s."""
    flow: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    unseen: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Records at the log's end that are left alone for now."""
    noise_until: float = -1.0
    past: deque[tuple[float, Floats]] = field(default_factory=deque)
    """Log ends at every step, as far back as the longest delay of a topic reaches."""

    @property
    def topics(self) -> tuple[Topic, ...]:
        return self.scenario.topics

    @property
    def seeds(self) -> int:
        """How many groups there are."""
        return len(self.randoms)

    @property
    def names(self) -> list[str]:
        """Members in the order of their codes."""
        return list(self.members)

    def rows(self, topic: str) -> Longs:
        """Places of a topic's partitions."""
        return np.arange(*self.span(topic))

    def span(self, topic: str) -> tuple[int, int]:
        """The first place of a topic's partitions, and the one after the last."""
        names = [t.name for t in self.topics]
        if topic not in names:
            raise InputError(
                f"{self.scenario.name}: there is no topic {topic!r}; there are: {', '.join(names)}"
            )
        sizes = [t.partitions for t in self.topics]
        first = sum(sizes[: names.index(topic)])
        return first, first + sizes[names.index(topic)]


def begin(scenario: Scenario, seeds: Sequence[int]) -> World:
    """The world at its start: everybody caught up but for the scenario's backlog."""
    randoms = tuple(np.random.default_rng(seed) for seed in seeds)
    sizes = [t.partitions for t in scenario.topics]
    topic = np.repeat(np.arange(len(sizes)), sizes)
    count = len(topic)
    weight = np.stack([np.concatenate([_spread(t, r) for t in scenario.topics]) for r in randoms])
    base = np.stack([np.floor(r.uniform(1e5, 1e6, count)) for r in randoms])
    backlog = np.array([t.backlog + t.delay * t.inflow for t in scenario.topics])[topic] * weight
    since = np.array([-r.uniform(0, scenario.commit) for r in randoms])
    world = World(
        scenario=scenario,
        randoms=randoms,
        topic=topic,
        partition=np.concatenate([np.arange(n) for n in sizes]),
        owner=np.full(count, NOBODY),
        cost=np.array([t.cost for t in scenario.topics])[topic],
        held=np.zeros(count, bool),
        start=np.maximum(base - 5e4, 0),
        end=base + np.floor(backlog),
        position=base.copy(),
        before=base.copy(),
        committed=base.copy(),
        commit_time=np.repeat(since[:, None], count, axis=1),
        weight=weight,
        lso=np.full(base.shape, np.inf),
        pending=np.zeros(base.shape, bool),
        due=np.zeros((len(randoms), 0)),
        factor=np.ones(len(scenario.topics)),
        ids={t.name: f"id-{t.name}-0" for t in scenario.topics},
    )
    for number in range(scenario.members):
        enter(world, f"m{number}")
    assign(world)
    world.changed_at = -86_400.0
    _weather(world, scenario.step)
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


def enter(world: World, name: str) -> None:
    """A member that will have its part from the next assignment on; one that was here comes anew."""
    scenario = world.scenario
    if name in world.members:
        _drop(world, name)
    phase = np.array([r.uniform(0, scenario.commit) for r in world.randoms])
    world.joined += 1
    speed = float(scenario.speeds.get(name, 1.0))
    world.members[name] = Member(name, f"{name}-{world.joined:08x}", speed)
    world.due = np.concatenate([world.due, world.time + phase[:, None]], axis=1)


def _drop(world: World, name: str) -> None:
    world.due = np.delete(world.due, world.names.index(name), axis=1)
    del world.members[name]


def clear(world: World) -> None:
    """All members are gone."""
    world.members.clear()
    world.due = world.due[:, :0]


def assign(world: World) -> None:
    """A rebalance: everybody stops for a while, members share the partitions by the scenario's rule."""
    world.generation += 1
    world.changed_at = world.time
    world.stopped_until = world.time + world.scenario.pause
    names = world.names
    world.owner = np.full(len(world.owner), NOBODY)
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
    mine = world.owner == world.names.index(name)
    world.position[:, mine] = world.committed[:, mine]
    _drop(world, name)
    assign(world)


def join(world: World, name: str) -> None:
    """A member joins."""
    enter(world, name)
    assign(world)


def step(world: World, dt: float) -> None:
    """Let ``dt`` seconds pass: records arrive, members read what they can, and commit when it is time."""
    world.before = world.position
    _arrive(world, dt)
    if not world.resting and world.members:
        _read(world, dt)
    world.time += dt
    _commit(world, dt)


def _arrive(world: World, dt: float) -> None:
    if world.time >= world.noise_until:
        _weather(world, dt)
    # A log grows by whole records; what is left over arrives with the next step.
    world.end = world.end + world.flow * dt
    _remember(world, dt)
    for topic in world.topics:
        # Transaction markers: offsets that no reader ever sees as records.
        due = topic.markers and (world.time + dt) // topic.markers > world.time // topic.markers
        if due:
            world.end[:, slice(*world.span(topic.name))] += 1.0


def _remember(world: World, dt: float) -> None:
    longest = max(t.delay for t in world.topics)
    if not longest:
        return
    world.past.append((world.time + dt, world.end))
    while len(world.past) > 1 and world.past[1][0] <= world.time + dt - longest:
        world.past.popleft()


def _ended(world: World, delay: float) -> Floats:
    """Log ends so many seconds before the newest ones; before the scenario began they grew as usual."""
    now = world.past[-1][0]
    before = [end for time, end in world.past if time <= now - delay]
    return before[-1] if before else world.past[0][1] - world.usual * (world.past[0][0] - now + delay)


def _weather(world: World, dt: float) -> None:
    """The inflow of the next minute."""
    topics, topic = world.topics, world.topic
    sigma = np.array([t.noise for t in topics])[topic]
    noise = np.stack([r.standard_normal(len(topic)) for r in world.randoms])
    daily = np.array([t.daily for t in topics])
    inflow = np.array([t.inflow for t in topics])
    world.wave = inflow * (1 + daily * np.sin(2 * np.pi * world.time / 86_400)) * world.factor
    world.usual = world.wave[topic] * world.weight
    world.flow = world.usual * np.maximum(0.0, 1 + sigma * noise)
    world.unseen = world.usual * min(WAKE, dt)
    world.noise_until = world.time + 60


def _read(world: World, dt: float) -> None:
    stopped = min(max(world.stopped_until - world.time, 0.0), dt)
    time = dt - stopped
    if time <= 0:
        return
    members = list(world.members.values())
    code = np.maximum(world.owner, 0)
    speed = np.array([0.0 if m.hung else m.speed for m in members])
    readable = np.minimum(np.floor(world.end - world.unseen), world.lso)
    for topic in world.topics:
        if topic.delay:
            here = slice(*world.span(topic.name))
            readable[:, here] = np.minimum(readable[:, here], np.floor(_ended(world, topic.delay)[:, here]))
    reads = (world.owner >= 0) & ~world.held & ((world.cost > 0) | (speed[code] > 0))
    backlog = np.maximum(readable - world.position, 0.0) * reads
    holds = (world.owner[:, None] == np.arange(len(members))).astype(float)
    work = backlog * world.cost
    total = work @ holds
    budget = time * speed
    busy = total > budget
    if busy.any():
        groups = np.flatnonzero(busy.any(axis=1))
        done = _levelled(work[groups], holds, budget)
        some = np.where(busy[groups] @ holds.T > 0, done / np.maximum(world.cost, 1e-12), backlog[groups])
        backlog[groups] = np.minimum(np.where(world.cost > 0, some, backlog[groups]), backlog[groups])
    world.position = world.position + backlog


def _levelled(work: Floats, holds: Floats, budget: Floats) -> Floats:
    """Each member's time over its partitions in equal parts; what one does not need goes to the others."""
    done = np.zeros_like(work)
    left = np.repeat(budget[None, :], len(work), axis=0)
    for _ in range(8):
        open_ = work - done > 1e-12
        count = open_ @ holds
        share = np.where(count > 0, left / np.maximum(count, 1), 0.0)
        more = np.where(open_, np.minimum(work - done, share @ holds.T), 0.0)
        done += more
        left = np.maximum(left - more @ holds, 0.0)
        if (left <= 1e-9).all() or not more.any():
            break
    return done


def _commit(world: World, dt: float) -> None:
    if world.resting or not world.members or world.time < world.stopped_until:
        return
    works = np.array([not m.hung for m in world.members.values()])
    ready = (world.due <= world.time) & works
    if not ready.any():
        return
    every, began = world.scenario.commit, world.time - dt
    when = np.maximum(world.due, began)
    turns = np.maximum(1.0, np.ceil((world.time - world.due) / every + 1e-9))
    later = world.due + every * turns
    later = np.where(later <= world.time, world.time + every, later)
    world.due = np.where(ready, later, world.due)
    code = np.maximum(world.owner, 0)
    share = ((when - began) / dt if dt else np.ones_like(when))[:, code]
    place = np.floor(world.before + share * (world.position - world.before))
    made = ready[:, code] & (world.owner >= 0)
    if world.scenario.kind == "classic_librdkafka":
        made &= place != world.committed
    write(world, when[:, code], made, place)


def write(world: World, when: Floats | float, made: Flags, offsets: Floats) -> None:
    """Commits reach the coordinator: where ``made``, at these offsets."""
    world.committed = np.where(made, offsets, world.committed)
    world.commit_time = np.where(made, when, world.commit_time)
    world.pending = world.pending | made


def shown_end(world: World) -> Longs:
    """Log ends as a broker would tell them."""
    return np.asarray(np.floor(world.end), np.int64)
