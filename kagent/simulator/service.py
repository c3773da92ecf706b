"""Which records a member processes in a step, and in which order.

A member has one worker: a second of work a second, times its speed. Where a step's work fits into it, all is read. Else
most clients empty what one fetch brought of a partition before they turn to the next (Java's Fetcher, aiokafka,
kafka-python, franz-go, kafkajs); librdkafka serves records in the order in which they were fetched, which is the
order of arrival while fetching keeps up, and one deep partition after another when it does not; sarama's goroutines and kafka-go's readers share
the worker evenly.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from kagent.simulator import committing
from kagent.simulator.world import SLOT, Flags, Floats, Longs, World, ended

LITTLE = 1e-6
TURNS = 200
"""A member turns from one partition or poll to the next no more often than this in a step."""


def read(world: World, dt: float) -> Flags:
    """Members read for ``dt`` seconds; (seeds, members): who had more to do than time."""
    budget = _budget(world, dt)
    count = budget.shape[1]
    place = np.arange(world.seeds)[:, None] * count + np.maximum(world.owner, 0)
    # ``place`` numbers (seed, member) through, so that one bincount sums all seeds; partitions without an owner fall to
    # member 0 and are masked out by ``reads``.
    able = (world.speed > 0) & ~world.hung & (world.away_until == np.inf)
    reads = (world.owner >= 0) & ~world.held & able.ravel()[place] & (world.down_until <= world.time)
    _pass_over_deleted(world, reads)
    readable = _readable(world)
    backlog = np.maximum(readable - world.position, 0.0) * reads
    work = backlog * world.cost
    total = np.bincount(place.ravel(), work.ravel(), world.seeds * count).reshape(budget.shape)
    frozen = world.frozen[:, None] & (total > 0) & ~world.clients.even[:, None]
    busy = (total > budget + 1e-12) | frozen
    if not busy.any():
        world.position = world.position + backlog
        _caught_up(world, budget, reads)
        return busy
    slow = busy.ravel()[place]
    world.position = world.position + np.where(slow & (world.cost > 0), 0.0, backlog)
    even = busy & world.clients.even[:, None]
    if even.any():
        _share(world, np.flatnonzero(even.any(axis=1)), even, backlog, budget)
    serial = busy & ~even
    if serial.any():
        _serve(world, serial, reads, readable, budget, dt)
    idle = ~busy
    if idle.any():
        _caught_up(world, np.where(idle, budget, 0.0), reads & ~slow)
    return busy


def _pass_over_deleted(world: World, reads: Flags) -> None:
    """A fetch below the log start fails (OFFSET_OUT_OF_RANGE); with auto.offset.reset=earliest the client goes on at the start. Who hangs
    fetches nothing."""
    deleted = reads & (world.position < world.start)
    if deleted.any():
        world.position = np.where(deleted, world.start, world.position)
        world.block_end = np.maximum(world.block_end, world.position)


def _budget(world: World, dt: float) -> Floats:
    stopped = np.clip(world.paused_until - world.time, 0.0, dt)
    able = ~world.hung & (world.away_until == np.inf)
    return np.asarray((dt - stopped) * world.speed * able)


def _readable(world: World) -> Floats:
    readable = np.minimum(np.floor(world.end - world.unseen), world.lso)
    for topic in world.topics:
        if topic.delay:
            here = slice(*world.span(topic.name))
            readable[:, here] = np.minimum(readable[:, here], np.floor(ended(world, topic.delay)[:, here]))
    return np.asarray(readable)


def _caught_up(world: World, budget: Floats, reads: Flags) -> None:
    """Nothing is left in the buffers of those who had time for all of it."""
    some = budget > 0
    world.poll_left = np.where(some, 0.0, world.poll_left)
    world.block_end = np.where(reads, world.position, world.block_end)


def _share(world: World, groups: Longs, even: Flags, backlog: Floats, budget: Floats) -> None:
    """Each member's time over its partitions in equal parts; what one does not need goes to the others."""
    count = budget.shape[1]
    owner = world.owner[groups]
    place = np.arange(len(groups))[:, None] * count + np.maximum(owner, 0)
    mine = even[groups].ravel()[place] & (owner >= 0) & (world.cost > 0)
    work = backlog[groups] * world.cost * mine
    left = budget[groups].ravel()
    done = np.zeros_like(work)
    # What a partition does not need is shared out again among the others; after eight rounds next to nothing is left.
    for _ in range(8):
        open_ = work - done > 1e-12
        several = np.bincount(place.ravel(), open_.ravel(), len(left))
        share = left / np.maximum(several, 1)
        more = np.where(open_, np.minimum(work - done, share[place]), 0.0)
        done += more
        left = np.maximum(left - np.bincount(place.ravel(), more.ravel(), len(left)), 0.0)
        if (left <= 1e-9).all() or not more.any():
            break
    read_ = np.minimum(done / np.maximum(world.cost, 1e-12), backlog[groups])
    position = world.position.copy()
    position[groups] += np.where(mine, read_, 0.0)
    world.position = position


def _serve(world: World, serial: Flags, reads: Flags, readable: Floats, budget: Floats, dt: float) -> None:
    """One fetched block after another, poll by poll, until the members' time is over."""
    rows, slots = np.nonzero(serial)
    many = len(rows)
    each = np.arange(many)
    mine = (world.owner[rows] == slots[:, None]) & reads[rows] & (world.cost > 0)
    position, end = world.position[rows], readable[rows]
    block, key = np.minimum(world.block_end[rows], np.maximum(end, position)), world.key[rows]
    left, poll = budget[rows, slots], world.poll_left[rows, slots]
    speed = np.maximum(world.speed[rows, slots], 1e-9)
    frozen = world.frozen[rows]
    now = world.time + dt
    for _ in range(TURNS):
        wants = mine & (position >= block - LITTLE) & (end > position + LITTLE)
        if wants.any():
            _fetch(world, rows, wants, position, end, block, key, now - left / speed)
        # Keys are times in seconds, far below 1e9: the priority decides first, then the order of fetching.
        order = np.where(mine & (block > position + LITTLE), key + world.priority * 1e9, np.inf)
        first = order.argmin(axis=1)
        on = np.isfinite(order[each, first]) & (left > 1e-9) & ~(frozen & (poll <= LITTLE))
        if not on.any():
            break
        new = on & (poll <= LITTLE)
        if new.any():
            poll = np.where(new, _poll_size(world, rows, mine, first, block - position, speed, dt), poll)
        cost = world.cost[first]
        ready = np.minimum(block[each, first] - position[each, first], poll)
        some = np.where(on, np.minimum(ready, left / cost), 0.0)
        position[each, first] += some
        left = left - some * cost
        poll = poll - some
        # A poll ends when its records are processed, or when nothing that was fetched is left for it.
        emptied = on & ~((block > position + LITTLE) & mine).any(axis=1)
        over = on & ((poll <= LITTLE) | emptied)
        if over.any():
            poll = np.where(over, 0.0, poll)
            ended_ = np.flatnonzero(over)
            committing.after_poll(
                world,
                rows[ended_],
                slots[ended_],
                position[ended_],
                (now - left / speed)[ended_],
                block[ended_],
            )
    flat = world.position.copy()
    at = np.nonzero(mine)
    flat[rows[at[0]], at[1]] = position[at]
    world.position = flat
    world.block_end[rows[at[0]], at[1]] = block[at]
    world.key[rows[at[0]], at[1]] = key[at]
    world.poll_left[rows, slots] = poll


def _poll_size(
    world: World, rows: Longs, mine: Flags, first: Longs, buffered: Floats, speed: Floats, dt: float
) -> Floats:
    """Records of the next poll. Polls of one partition that are much shorter than a step are taken together."""
    clients, one = world.clients, buffered[np.arange(len(rows)), first]
    # A step has at most TURNS of them; polls that take less than half a step would need more. Records of the next partition may cost
    # a thousand times as much.
    size = np.maximum(clients.max_poll[rows], np.minimum(one, 0.5 * dt * speed / world.cost[first]))
    size = np.where(clients.everything[rows], (np.maximum(buffered, 0.0) * mine).sum(axis=1), size)
    return np.where(clients.by_partition[rows], one, size)


def _fetch(
    world: World,
    rows: Longs,
    wants: Flags,
    position: Floats,
    end: Floats,
    block: Floats,
    key: Floats,
    when: Floats,
) -> None:
    """The next block of each partition of which nothing is left; it is served after those that were fetched before."""
    at, part = np.nonzero(wants)
    seed = rows[at]
    here, there = position[at, part], end[at, part]
    upto = np.minimum(there, np.ceil(here) + world.clients.block[seed])
    # Fetches of one moment are served in another order for each seed, not always by partition number.
    turn = when[at] + 1e-6 * np.mod(part + world.numbers[seed], len(world.topic))
    by_arrival = world.clients.arrival[seed]
    if by_arrival.any():
        some = np.flatnonzero(by_arrival)
        ahead = np.minimum(there[some], np.ceil(here[some]) + world.scenario.clients.read_ahead_records)
        came, upto_then = _arrival(world, seed[some], part[some], here[some])
        upto[some] = np.minimum(np.maximum(upto_then, here[some] + 1.0), ahead)
        upto[some] = np.minimum(upto[some], there[some])
        turn[some] = came + 1e-6 * part[some]
    block[at, part] = np.maximum(upto, np.minimum(there, here + 1e-3))
    key[at, part] = turn


def _arrival(world: World, seed: Longs, part: Longs, position: Floats) -> tuple[Floats, Floats]:
    """When the next records came, to a SLOT, and where the log ended then. Older than remembered: at the first SLOT."""
    time, newest = world.past[-1]
    when, upto = np.full(len(seed), time + SLOT), world.end[seed, part]
    for at in np.flatnonzero(newest[seed, part] > position + LITTLE).tolist():
        one = (int(seed[at]), int(part[at]))
        # The remembered log ends only grow, so the slot in which a record came is found by halving.
        first = bisect_right(world.past, position[at] + LITTLE, key=lambda slot, one=one: slot[1][one])  # type: ignore[misc]
        when[at], upto[at] = world.past[first][0], world.past[first][1][one]
    return when, upto
