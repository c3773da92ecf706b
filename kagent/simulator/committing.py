"""When members commit, and what a commit names.

Java's and kafka-python's auto-commit looks at its timer only in poll(); librdkafka, aiokafka, sarama and Streams commit by
a timer whatever the loop does; a batch client commits after each poll; franz-go's default and kafkajs commit nothing until
a whole fetch is processed. Java, aiokafka and kafka-python name all their partitions each time, the others those that moved.
"""

from __future__ import annotations

import numpy as np

from kagent.simulator.world import CommitBatch, Flags, Floats, Longs, World

LONGEST_WAY_S = 0.25
"""A commit may take so long to the coordinator: a network and a broker under load."""
GOLDEN = (5**0.5 - 1) / 2


def by_timer(world: World, dt: float, busy: Flags) -> None:
    """Commits of the step that do not wait for a poll to end: by a timer, or by members that have time to poll."""
    if world.coordinator_down_until > world.time or not world.order:
        return
    clients, began = world.clients, world.time - dt
    timed = (clients.timer | clients.by_poll)[:, None]
    ready = np.where(timed, world.due <= world.time, True) & (world.paused_until <= world.time)
    # A busy member commits when its poll ends (after_poll); only a timer in the background does not wait for that.
    ready &= ~(busy & ~clients.timer[:, None]) & (world.away_until == np.inf)
    # A loop that hangs does not stop a timer in the background; it has nothing new to name.
    ready &= ~world.hung | (
        (clients.timer & clients.assigned & ~_plain(world))[:, None] & (world.due < np.inf)
    )
    ready &= ~world.frozen[:, None]
    if not ready.any():
        return
    when = np.clip(world.due, began, world.time)
    every = clients.interval[:, None]
    # Members that are gone are due NEVER, and infinity minus infinity is no number.
    with np.errstate(invalid="ignore"):
        # A timer that was held up does not catch up: it goes on at its own rhythm.
        turns = np.maximum(1.0, np.ceil((world.time - world.due) / every + 1e-9))
        later = world.due + every * turns
    later = np.where(later <= world.time, world.time + every, later)
    world.due = np.where(ready & timed & np.isfinite(world.due), later, world.due)
    count = world.due.shape[1]
    place = np.arange(world.seeds)[:, None] * count + np.maximum(world.owner, 0)
    # Where the member was when it committed, not where it is at the end of the step.
    share = np.where(timed, (when - began) / dt if dt else 1.0, 1.0).ravel()[place]
    offset = np.floor(world.before + share * (world.position - world.before))
    made = ready.ravel()[place] & (world.owner >= 0)
    moved = made & (offset != world.committed)
    some = np.bincount(place.ravel(), moved.ravel(), ready.size).reshape(ready.shape) > 0
    names_all = clients.assigned[:, None] & (timed | some)
    made &= names_all.ravel()[place] | moved
    if not made.any():
        return
    stamp = np.where(timed, when, world.time + _on_the_way_s(world)).ravel()[place]
    if world.poisoned.any():
        offset = _retried(world, offset)
    write(world, stamp, made, offset)


def _on_the_way_s(world: World) -> Floats:
    """How long a commit of each member takes to the coordinator: (seeds, members). No two processes commit together by the clock of
    the simulation alone; drawn from no random numbers, so that a scenario's other chances stay what they are."""
    phase = world.numbers[:, None] * np.sqrt(3) + np.arange(world.due.shape[1]) * GOLDEN
    # Multiples of irrational numbers, modulo 1, are spread evenly: https://en.wikipedia.org/wiki/Equidistribution_theorem
    return np.asarray(LONGEST_WAY_S * ((phase + world.time * np.sqrt(2)) % 1.0))


def _plain(world: World) -> Flags:
    return world.clients.even if world.protocol == "instant" else np.zeros(world.seeds, bool)


def _retried(world: World, offset: Floats) -> Floats:
    """A client that retries a poison record may have it committed as processed, and takes it back the next time."""
    again = world.clients.retries_ahead[:, None] & world.poisoned & (world.committed <= offset)
    return np.where(again & (world.end > offset + 1), offset + 1, offset)


def after_poll(
    world: World, seeds: Longs, slots: Longs, position: Floats, when: Floats, fetched: Floats
) -> None:
    """Commits at the end of these members' polls: (polls, partitions) columns, ``when`` each ended."""
    clients = world.clients
    due = world.due[seeds, slots]
    timed = clients.by_poll[seeds]
    ready = ~clients.timer[seeds] & (~timed | (due <= when)) & (world.coordinator_down_until <= when)
    if not ready.any():
        return
    seeds, slots, position, when = seeds[ready], slots[ready], position[ready], when[ready]
    fetched = fetched[ready]
    world.due[seeds, slots] = when + clients.interval[seeds]
    mine = world.owner[seeds] == slots[:, None]
    offset = np.floor(position + 1e-6)
    for at in np.flatnonzero(clients.ahead[seeds] > 0).tolist():
        if world.randoms[seeds[at]].random() < clients.ahead[seeds[at]]:
            offset[at] = np.minimum(
                np.floor(np.maximum(fetched[at], position[at])), offset[at] + clients.max_poll[seeds[at]]
            )
    polls, part = np.nonzero(mine & (clients.assigned[seeds][:, None] | (offset != world.committed[seeds])))
    made = np.zeros(world.owner.shape, bool)
    columns = np.zeros(world.owner.shape)
    times = np.zeros(world.owner.shape)
    made[seeds[polls], part] = True
    columns[seeds[polls], part] = offset[polls, part]
    times[seeds[polls], part] = when[polls]
    write(world, times, made, columns)


def write(world: World, when: Floats | float, made: Flags, offsets: Floats) -> None:
    """Commits reach the coordinator: where ``made``, at these offsets."""
    world.committed = np.where(made, offsets, world.committed)
    world.commit_time = np.where(made, when, world.commit_time)
    last = world.pending[-1] if world.pending else None
    # One entry per step: a partition that is committed twice within it has one latest commit, as in the collapsed stream.
    if last is not None and last.until == world.time:
        last.made |= made
        last.when = np.where(made, when, last.when)
        last.offset = np.where(made, offsets, last.offset)
    else:
        times = np.where(made, when, 0.0)
        world.pending.append(CommitBatch(world.time, made.copy(), times, np.where(made, offsets, 0.0)))


def taken(world: World, until: float) -> CommitBatch | None:
    """The commits made up to this time that were not taken yet, the latest of each partition."""
    out: CommitBatch | None = None
    while world.pending and world.pending[0].until <= until:
        more = world.pending.popleft()
        if out is None:
            out = more
        else:
            out = CommitBatch(
                more.until,
                out.made | more.made,
                np.where(more.made, more.when, out.when),
                np.where(more.made, more.offset, out.offset),
            )
    return out
