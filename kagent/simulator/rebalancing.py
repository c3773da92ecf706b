"""Which member holds what: members join and leave, and the group reassigns its partitions as its protocol does.

eager: no member begins another poll until the slowest one has ended (KIP-429 describes what it replaced); cooperative: only what
changes hands stops, in two rounds (KIP-429); kip848: the same in one, by heartbeats (KIP-848); instant: all members pause
for the same time. Static members (KIP-345) that are back within the session timeout cause no rebalance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kagent.simulator import world as w
from kagent.simulator.committing import write
from kagent.simulator.world import NEVER, NOBODY, Longs, World
from kagent.strategies import STRATEGIES, Member, Scenario, assign

Pairs = list[tuple[str, int]]
SLOWEST_S = 300.0
"""No rebalance waits longer for a poll (max.poll.interval.ms)."""
HEARTBEAT_S = 2.0
"""A KIP-848 group is reconciled within about this time."""


def enter(world: World, seed: int, name: str) -> None:
    """Add a member, which gets partitions at the next assignment; one that is in the group already joins again."""
    if name not in world.slots:
        world.slots.append(name)
        w.grown(world, len(world.slots))
    slot = world.slots.index(name)
    if slot in world.order[seed]:
        drop(world, seed, slot)
    random = world.randoms[seed]
    world.order[seed].append(slot)
    world.joined[seed] += 1
    world.member_ids[seed][slot] = f"{name}-{world.joined[seed]:08x}"
    _fresh(world, seed, slot)
    world.due[seed, slot] = world.time + random.uniform(0, world.clients.interval[seed])
    every = world.scenario.world.gc_pause_every_s
    world.next_gc[seed, slot] = world.time + random.exponential(every) if every else NEVER


def _fresh(world: World, seed: int, slot: int) -> None:
    world.speed[seed, slot] = float(world.scenario.speeds.get(world.slots[slot], 1.0))
    world.leak[seed, slot], world.hung[seed, slot] = 0.0, False
    world.away_until[seed, slot], world.poll_left[seed, slot] = NEVER, 0.0


def drop(world: World, seed: int, slot: int) -> None:
    """A member is gone; its partitions have no owner until the next assignment."""
    world.order[seed].remove(slot)
    world.hung[seed, slot] = True
    world.next_gc[seed, slot] = NEVER
    world.due[seed, slot] = NEVER


def leave(world: World, seed: int, name: str) -> None:
    """A member leaves; what it had not committed is read again. A static one is only down, for its session timeout."""
    if name not in world.slots or (slot := world.slots.index(name)) not in world.order[seed]:
        return
    mine = world.owner[seed] == slot
    _reread(world, seed, mine)
    if world.scenario.clients.static:
        world.away_until[seed, slot] = world.time + world.scenario.clients.session_timeout_s
        return
    drop(world, seed, slot)
    rebalance(world, seed)


def join(world: World, seed: int, name: str) -> None:
    """A member joins; a static one that was down goes on with what it had."""
    slot = world.slots.index(name) if name in world.slots else NOBODY
    if slot in world.order[seed] and world.away_until[seed, slot] < NEVER:
        _fresh(world, seed, slot)
        return
    enter(world, seed, name)
    rebalance(world, seed)


def _reread(world: World, seed: int, mine: w.Flags) -> None:
    world.position = world.position.copy()
    world.position[seed, mine] = np.minimum(world.committed[seed, mine], world.position[seed, mine])
    world.block_end[seed, mine] = world.position[seed, mine]


def begin(world: World) -> None:
    """The first assignment, of a group that has been there for a day."""
    for seed in range(world.seeds):
        world.owner[seed] = dealt(world, seed)
        world.generation[seed] += 1
    # A group that has been there: the first generation is in effect, nothing is under way.
    world.target = world.owner.copy()


def rebalance(world: World, seed: int, target: Longs | None = None) -> None:
    """Reassign the group's partitions: at once, or after the time that its protocol takes."""
    world.target[seed] = dealt(world, seed) if target is None else target
    pause, now = world.scenario.pause, world.time
    if world.protocol == "instant":
        for slot in range(len(world.slots)):
            world.paused_until[seed, slot] = max(world.paused_until[seed, slot], now + pause)
        _settle(world, seed, world.target[seed])
        return
    if world.protocol == "kip848":
        world.takes_effect[seed] = now + HEARTBEAT_S
        return
    # Java's consumer joins again only in its next poll(), so all wait for the slowest one's records.
    world.takes_effect[seed] = now + pause + min(SLOWEST_S, _slowest(world, seed))
    world.frozen[seed] = world.protocol == "eager"


def _slowest(world: World, seed: int) -> float:
    """Seconds until every member has ended its poll."""
    longest = 0.0
    for slot in world.order[seed]:
        mine = world.owner[seed] == slot
        if mine.any() and not world.hung[seed, slot] and world.poll_left[seed, slot] > 0:
            behind = mine & (world.block_end[seed] > world.position[seed])
            cost = float(world.cost[behind if behind.any() else mine].mean())
            longest = max(longest, world.poll_left[seed, slot] * cost / max(world.speed[seed, slot], 0.05))
    return longest


def advance(world: World) -> None:
    """Rebalances that come into effect now, and static members whose session ends."""
    late = world.away_until <= world.time
    if late.any():
        for seed, slot in zip(*np.nonzero(late), strict=True):
            world.away_until[seed, slot] = NEVER
            drop(world, int(seed), int(slot))
            rebalance(world, int(seed))
    for seed in np.flatnonzero(world.takes_effect <= world.time).tolist():
        _take_effect(world, seed)


def _take_effect(world: World, seed: int) -> None:
    target, owner = world.target[seed], world.owner[seed]
    alive = np.isin(owner, world.order[seed])
    moving = (owner != target) & alive
    world.takes_effect[seed] = NEVER
    # First round: what moves is given up and has no owner; it is given out in the second.
    if world.protocol == "cooperative" and moving.any():
        _settle(world, seed, np.where(moving, NOBODY, target))
        world.takes_effect[seed] = world.time + world.scenario.pause
        return
    _settle(world, seed, target)


def _settle(world: World, seed: int, owner: Longs) -> None:
    """A new generation: who gives something up has committed it, and everybody reads on from the committed offsets."""
    before = world.owner[seed]
    # Eager members give up all that they hold (KIP-429).
    changed = (before != owner) | (world.protocol == "eager")
    alive = np.isin(before, [s for s in world.order[seed] if not world.hung[seed, s]])
    # Clients commit when partitions are revoked; without a coordinator they cannot, and records are read twice.
    if world.protocol != "instant" and world.coordinator_down_until <= world.time:
        made = np.zeros_like(world.owner, bool)
        made[seed] = changed & alive & (np.floor(world.position[seed]) != world.committed[seed])
        write(world, world.time, made, np.floor(world.position))
    world.owner = world.owner.copy()
    world.owner[seed] = owner
    world.block_end[seed, changed] = world.position[seed, changed]
    # Where all members stop, they lose what they had fetched and begin a new poll.
    if world.protocol in ("eager", "instant"):
        world.poll_left[seed] = 0.0
    world.frozen[seed] = False
    world.generation[seed] += 1
    world.changed_at[seed] = world.time


def clear(world: World, seed: int) -> None:
    """All members are gone."""
    for slot in list(world.order[seed]):
        drop(world, seed, slot)
    world.target[seed] = NOBODY
    world.takes_effect[seed] = NEVER
    _settle(world, seed, world.target[seed].copy())


def dealt(world: World, seed: int) -> Longs:
    """Who gets which partition: by the strategy that the group switched to, else by the scenario's rule."""
    names, slots = world.names(seed), np.array(world.order[seed], np.int64)
    owner = np.full(len(world.topic), NOBODY)
    if not names:
        return owner
    wants = [subscribed(world, name) for name in names]
    if seed in world.switched:
        return _by_strategy(world, seed, world.switched[seed], names, wants)
    fixed = world.scenario.assignment
    if fixed and set(fixed) == set(names):
        for name, slot in zip(names, slots, strict=True):
            for topic, partitions in (fixed[name] or {}).items():
                owner[world.rows(topic)[np.asarray(partitions, np.int64)]] = slot
        return owner
    if world.scenario.assignor == "range":
        return _by_range(world, slots, wants)
    plain = world.scenario.assignor == "roundrobin" and not world.scenario.clients.subscriptions
    if plain or world.scenario.assignor not in STRATEGIES:
        return np.asarray(slots[np.arange(len(owner)) % len(names)])
    return _by_strategy(world, seed, world.scenario.assignor, names, wants)


def _by_range(world: World, slots: Longs, wants: Sequence[tuple[str, ...]]) -> Longs:
    owner = np.full(len(world.topic), NOBODY)
    for code, topic in enumerate(world.topics):
        takers = slots[[topic.name in want for want in wants]]
        if len(takers):
            quota, extra = divmod(topic.partitions, len(takers))
            counts = [quota + (at < extra) for at in range(len(takers))]
            owner[world.topic == code] = np.repeat(takers, counts)
    return owner


def subscribed(world: World, name: str) -> tuple[str, ...]:
    """The topics that a member subscribes to."""
    given = world.scenario.clients.subscriptions.get(name)
    return tuple(given) if given else tuple(t.name for t in world.topics)


def _by_strategy(
    world: World, seed: int, strategy: str, names: Sequence[str], wants: Iterable[tuple[str, ...]]
) -> Longs:
    """By one of :mod:`kagent.strategies`, from what members hold and the lags of this moment.

    A cooperative strategy keeps back what changes hands until its holder has given it up (KIP-429): it is asked once more.
    """
    members = [Member(name, want) for name, want in zip(names, wants, strict=True)]
    held = {name: _held(world, seed, world.slots.index(name)) for name in names}
    for _round in range(1 + STRATEGIES[strategy].cooperative):
        held = _placed(world, seed, strategy, members, held)
    owner = np.full(len(world.topic), NOBODY)
    for name, parts in held.items():
        for topic, partition in parts:
            owner[world.rows(topic)[partition]] = world.slots.index(name)
    return owner


def _placed(
    world: World, seed: int, strategy: str, members: Sequence[Member], held: dict[str, Pairs]
) -> dict[str, Pairs]:
    # As the members' own leader knows it: the strategies have no view of kagent's samples.
    lag = np.floor(np.maximum(world.end[seed] - world.position[seed], 0)).astype(np.int64)
    scenario = Scenario.of(
        members,
        {t.name: t.partitions for t in world.topics},
        lags={t.name: lag[world.rows(t.name)] for t in world.topics},
        owned=held,
        remembered=held,
    )
    return {name: list(parts) for name, parts in assign(strategy, scenario).to_dict().items()}


def _held(world: World, seed: int, slot: int) -> Pairs:
    return [
        (world.topics[world.topic[row]].name, int(world.partition[row]))
        for row in np.flatnonzero(world.owner[seed] == slot).tolist()
    ]


def switch(world: World, seed: int, strategy: str) -> None:
    """The group reassigns itself by another strategy, now and at every rebalance to come."""
    world.switched[seed] = strategy
    rebalance(world, seed)


def autoscale(world: World) -> None:
    """Each group's own scaler looks at its lag: more members at once, fewer after a cooldown (as KEDA and an HPA do)."""
    scaler = world.scenario.autoscaler
    if scaler is None or world.time < world.next_scale:
        return
    world.next_scale = world.time + scaler.every
    lag = (world.end - world.position).sum(axis=1)
    # As KEDA's Kafka scaler: total lag ÷ lagThreshold, within minReplicaCount and maxReplicaCount.
    wanted = np.clip(np.ceil(lag / scaler.lag_per_member), scaler.least, scaler.greatest).astype(int)
    for seed in range(world.seeds):
        count = max(int(wanted[seed]), world.asked.get(seed, 0))
        more = count - len(world.order[seed])
        if more == 0 or (more < 0 and world.time - world.scaled_at[seed] < scaler.cooldown):
            continue
        world.scaled_at[seed] = world.time
        resize(world, seed, count)


def resize(world: World, seed: int, count: int) -> None:
    """Bring the group to ``count`` members: new ones join at once, or the last ones leave."""
    names = world.names(seed)
    # Names are used again, as a StatefulSet does it.
    free = (n for n in (f"m{i}" for i in range(count + len(names))) if n not in names)
    for _ in range(count - len(names)):
        enter(world, seed, next(free))
    for name in names[count:]:
        slot = world.slots.index(name)
        _reread(world, seed, world.owner[seed] == slot)
        drop(world, seed, slot)
    rebalance(world, seed)
