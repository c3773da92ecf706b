"""What really happens: logs grow, members read and commit, groups rebalance.

Groups of one scenario and several seeds go through it side by side: columns have one row a seed, and one entry a partition
or a member. A seed's fate does not depend on which seeds run beside it: each has its own random numbers. How members serve
their partitions is in :mod:`kagent.simulator.service`, when they commit in :mod:`kagent.simulator.committing`, and who
holds what in :mod:`kagent.simulator.rebalancing`; :mod:`kagent.simulator.passing_time` calls them in turn.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.errors import InputError
from kagent.simulator.conditions import Family
from kagent.simulator.scenario_file import ScenarioTopic, SimulatorScenario

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NOBODY = -1
NEVER = np.inf
WAKE = 0.2
"""Seconds between a record's arrival and its reading, by a member that is caught up."""
SLOT = 5.0
"""Seconds between two log ends that the world remembers."""
MEMORY_S = 3600.0
"""For how long log ends are remembered where members read in the order of arrival."""


def _floats() -> Floats:
    return np.zeros((0, 0))


def _flags() -> Flags:
    return np.zeros((0, 0), bool)


@dataclass(slots=True)
class ClientColumns:
    """How each seed's members read and commit: one entry a seed."""

    families: tuple[Family, ...]
    even: Flags
    arrival: Flags
    timer: Flags
    """Commits by a timer, whatever the loop does."""
    by_poll: Flags
    """Commits by a timer that only polls look at."""
    by_partition: Flags
    """One poll is one partition's fetch."""
    everything: Flags
    """One poll is all that was fetched."""
    assigned: Flags
    """A commit names all assigned partitions; else those that moved."""
    retries_ahead: Flags
    max_poll: Floats
    block: Floats
    """Records of one partition in one fetch."""
    interval: Floats
    ahead: Floats


@dataclass(slots=True)
class CommitBatch:
    """Commits of one step, or of several: where ``made``, at ``offset``, when."""

    until: float
    made: Flags
    when: Floats
    offset: Floats


@dataclass(slots=True)
class World:
    """The truth at ``time`` (s). Columns are (seeds, partitions) or (seeds, members) unless stated otherwise."""

    scenario: SimulatorScenario
    randoms: tuple[np.random.Generator, ...]
    numbers: Longs
    """The seeds themselves: what differs from group to group goes by them, never by a group's row."""
    clients: ClientColumns
    protocol: str
    time: float = 0.0
    # Members have slots; ``order``: each seed's members, as slots, in the order in which they joined.
    slots: list[str] = field(default_factory=list)
    order: list[list[int]] = field(default_factory=list)
    member_ids: list[dict[int, str]] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    switched: dict[int, str] = field(default_factory=dict)
    """Seed → the strategy that its group switched to, in place of the scenario's."""
    asked: dict[int, int] = field(default_factory=dict)
    """Seed → how many members its owner asked for: a scaler removes none of them."""
    speed: Floats = field(default_factory=_floats)
    leak: Floats = field(default_factory=_floats)
    """Share of the speed that is lost an hour."""
    hung: Flags = field(default_factory=_flags)
    away_until: Floats = field(default_factory=_floats)
    """Static members that are down: when their session ends; NEVER for those that are not down."""
    paused_until: Floats = field(default_factory=_floats)
    next_gc: Floats = field(default_factory=_floats)
    poll_left: Floats = field(default_factory=_floats)
    due: Floats = field(default_factory=_floats)
    """When each member commits next."""
    # Rebalances, one entry a seed.
    generation: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    changed_at: Floats = field(default_factory=lambda: np.zeros(0))
    takes_effect: Floats = field(default_factory=lambda: np.zeros(0))
    frozen: Flags = field(default_factory=lambda: np.zeros(0, bool))
    """A rebalance waits for polls to end: none is begun."""
    target: Longs = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    resting: bool = False
    topic: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    partition: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    owner: Longs = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    cost: Floats = field(default_factory=lambda: np.zeros(0))
    held: Flags = field(default_factory=_flags)
    poisoned: Flags = field(default_factory=lambda: np.zeros(0, bool))
    priority: Floats = field(default_factory=lambda: np.zeros(0))
    down_until: Floats = field(default_factory=lambda: np.zeros(0))
    """Partitions without a leader."""
    coordinator_down_until: float = 0.0
    outage_until: float = 0.0
    start: Floats = field(default_factory=_floats)
    end: Floats = field(default_factory=_floats)
    sent: Floats = field(default_factory=_floats)
    """Records that producers have, whether they were sent or not."""
    position: Floats = field(default_factory=_floats)
    before: Floats = field(default_factory=_floats)
    block_end: Floats = field(default_factory=_floats)
    """Up to which offset a partition has been fetched, and ``key``: when; served in this order."""
    key: Floats = field(default_factory=_floats)
    committed: Floats = field(default_factory=_floats)
    commit_time: Floats = field(default_factory=_floats)
    pending: deque[CommitBatch] = field(default_factory=deque)
    """Commits that the pipeline has not taken yet."""
    weight: Floats = field(default_factory=_floats)
    burst: Floats = field(default_factory=_floats)
    burst_until: Floats = field(default_factory=lambda: np.zeros(0))
    next_burst: Floats = field(default_factory=lambda: np.zeros(0))
    lso: Floats = field(default_factory=_floats)
    factor: Floats = field(default_factory=lambda: np.zeros(0))
    ids: dict[str, str] = field(default_factory=dict)
    usual: Floats = field(default_factory=_floats)
    """Inflow without its noise, records/s."""
    flow: Floats = field(default_factory=_floats)
    unseen: Floats = field(default_factory=_floats)
    """Records at the log's end that are left alone for now."""
    noise: Floats = field(default_factory=_floats)
    noise_until: Floats = field(default_factory=lambda: np.zeros(0))
    past: deque[tuple[float, Floats]] = field(default_factory=deque)
    """Log ends every SLOT, as far back as anything needs them."""
    memory_s: float = 120.0
    scaled_at: Floats = field(default_factory=lambda: np.zeros(0))
    next_scale: float = 0.0

    @property
    def topics(self) -> tuple[ScenarioTopic, ...]:
        return self.scenario.topics

    @property
    def seeds(self) -> int:
        """How many groups there are."""
        return len(self.randoms)

    def names(self, seed: int) -> list[str]:
        """One group's members in the order in which they joined."""
        return [self.slots[slot] for slot in self.order[seed]]

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


def arrive(world: World, dt: float) -> None:
    due = world.time >= world.noise_until
    if due.any():
        weather(world, dt, np.flatnonzero(due))
    # A log grows by whole records; what is left over arrives with the next step.
    world.sent = world.sent + world.flow * dt
    now, linger = world.time + dt, world.scenario.world.linger_s
    up = world.down_until <= now
    if linger > dt:
        # Batches of the partitions are sent at different moments, not all at once.
        phase = np.modf(world.partition * 0.37)[0] * linger
        up = up & (np.floor((now + phase) / linger) > np.floor((world.time + phase) / linger))
    # A new array each time: ``past`` keeps the old ones.
    world.end = np.where(up, world.sent, world.end) if not up.all() else world.sent
    for topic in world.topics:
        # Transaction markers: offsets that no reader ever sees as records.
        due_now = topic.markers and now // topic.markers > world.time // topic.markers
        if due_now:
            here = slice(*world.span(topic.name))
            world.sent[:, here] += 1.0
            world.end = world.end.copy()
            world.end[:, here] = np.where(up[here], world.sent[:, here], world.end[:, here])
    _remember(world, now)


def _remember(world: World, now: float) -> None:
    if world.past and now < world.past[-1][0] + SLOT - 1e-9:
        return
    world.past.append((now, world.end))
    # One slot beyond the memory stays: the log end at its edge is asked for, too.
    while len(world.past) > 1 and world.past[1][0] <= now - world.memory_s:
        world.past.popleft()


def ended(world: World, seconds: float) -> Floats:
    """Log ends at this many seconds before the newest ones; before the scenario began they grew as usual."""
    now = world.time
    at = len(world.past) - 1 - max(0, int(np.ceil((seconds - (now - world.past[-1][0])) / SLOT)))
    if at >= 0:
        return world.past[at][1]
    first, ends = world.past[0]
    return np.asarray(ends - world.usual * (first - now + seconds))


def weather(world: World, dt: float, seeds: Longs | None = None) -> None:
    """The inflow until the next change."""
    made, topic = world.scenario.world, world.topic
    some = np.arange(world.seeds) if seeds is None else seeds
    for seed in some.tolist():
        random = world.randoms[seed]
        world.noise[seed] = random.standard_normal(len(topic))
        wait = made.inflow_changes_every_s
        if made.inflow_changes_at_random:
            wait = max(1.0, float(random.exponential(wait)))
        world.noise_until[seed] = world.time + wait
    set_flow(world, dt, some)


def set_flow(world: World, dt: float, seeds: Longs) -> None:
    """These groups' inflow by the present weights, noise and bursts; draws no random numbers."""
    topics, topic = world.topics, world.topic
    sigma = np.array([t.noise for t in topics])[topic]
    daily = np.array([t.daily for t in topics])
    inflow = np.array([t.inflow for t in topics])
    wave = inflow * (1 + daily * np.sin(2 * np.pi * world.time / 86_400)) * world.factor
    # Of these alone: a daily wave would move with the other groups' changes, too.
    world.usual[seeds] = wave[topic] * world.weight[seeds]
    world.flow[seeds] = (
        world.usual[seeds] * np.maximum(0.0, 1 + sigma * world.noise[seeds]) * world.burst[seeds]
    )
    # Of what arrives now: with the usual inflow, the last record before a minute without any would wait for its end.
    world.unseen = world.flow * min(WAKE, dt)


def disturb(world: World, dt: float) -> None:
    """Pauses of single members, leaks of speed, bursts of single partitions: at random times of each seed."""
    made, now = world.scenario.world, world.time
    if made.gc_pause_every_s:
        for seed, slot in zip(*np.nonzero(world.next_gc <= now), strict=True):
            random = world.randoms[seed]
            world.paused_until[seed, slot] = max(
                world.paused_until[seed, slot], now + made.gc_pause_s * random.uniform(0.2, 2.0)
            )
            world.next_gc[seed, slot] = now + random.exponential(made.gc_pause_every_s)
    if world.leak.any():
        # Never down to nothing: a leak makes a member slow, hang stops it.
        world.speed = np.maximum(world.speed * (1 - world.leak * dt / 3600), 0.02)
    if made.burst_every_s:
        for seed in np.flatnonzero(world.burst_until <= now).tolist():
            world.burst[seed], world.burst_until[seed] = 1.0, NEVER
            world.noise_until[seed] = min(world.noise_until[seed], now)
        for seed in np.flatnonzero(world.next_burst <= now).tolist():
            random = world.randoms[seed]
            world.burst[seed, random.integers(len(world.topic))] = made.burst_factor
            world.burst_until[seed] = now + made.burst_s * random.uniform(0.5, 1.5)
            world.next_burst[seed] = now + random.exponential(made.burst_every_s)
            world.noise_until[seed] = min(world.noise_until[seed], now)


def shown_end(world: World) -> Longs:
    """Log ends as a broker would tell them."""
    return np.asarray(np.floor(world.end), np.int64)


def grown(world: World, count: int) -> None:
    """Make room for this many members: new columns belong to no member."""
    more = count - world.speed.shape[1] if world.speed.size else count
    if more <= 0:
        return
    empty: dict[str, Any] = {
        "speed": 1.0,
        "leak": 0.0,
        "hung": False,
        "away_until": NEVER,
        "paused_until": 0.0,
        "next_gc": NEVER,
        "poll_left": 0.0,
        "due": NEVER,
    }
    for name, value in empty.items():
        known = getattr(world, name)
        kind = bool if name == "hung" else np.float64
        known = known if known.size else np.zeros((world.seeds, 0), kind)
        setattr(world, name, np.pad(known, ((0, 0), (0, more)), constant_values=value))
